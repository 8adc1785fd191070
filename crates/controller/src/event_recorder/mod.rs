//! Kubernetes Events (`events.k8s.io/v1`) about parents, for transitions and other occurrences of interest to cluster
//! operators. None in shadow mode, in which nothing is written.
//!
//! Events may be lost, and are counted then; nothing waits for them. [`lasting_turns`] and [`correlator`] decide which are
//! sent at which time, this module sends them.

mod correlator;
mod event_notice;
mod event_requests;
mod lasting_turns;

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::client::Body;
use prometheus::IntCounterVec;
use readiness::Time;
use serde_json::Value;
use timer::{Backoff, Seed};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::clock::ServerClock;
use crate::failing_writes::FailingWrites;
use crate::failure_reporter::FailureReporter;
use crate::lease::Leadership;
use crate::transitions::{TransitionEvent, TransitionSubscription};
use correlator::{EventCorrelator, EventRequest};
pub(crate) use event_notice::EventNotice;
pub(crate) use event_requests::host_name;
pub(crate) use event_requests::instance_name;
use lasting_turns::{LastingTurns, TurnFate};

/// Outcomes of Events, as in `rollcall_events_total{outcome}`.
pub(crate) const EVENT_OUTCOMES: [&str; 7] =
    ["created", "repeated", "folded", "limited", "forbidden", "gone", "failed"];
/// Timeout of a request. 10 s.
const EVENT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a request that failed: one object may be at fault. 500 ms.
const FAILED_EVENT_INTERVAL: Duration = Duration::from_millis(500);
/// Number of requests that may fail in a row before the delay grows.
const FAILED_EVENTS_IN_A_ROW: u32 = 3;
/// Delay after as many of them.
const EVENT_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// Delay after each Event while writes of parents keep failing. 1 s.
const EVENT_INTERVAL_WHILE_WRITES_FAIL: Duration = Duration::from_secs(1);
/// Time since writes kept failing for which Events are that rare. 1 min.
const SPARED_FOR: Duration = Duration::from_mins(1);
/// Delay after an Event whose namespace is gone: three a second, also where a server finds nothing at all. 350 ms.
const GONE_EVENT_INTERVAL: Duration = Duration::from_millis(350);
/// Maximum number of waiting notices.
const NOTICE_QUEUE_SIZE: usize = 1_024;

/// Sender of notices that are not transitions. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct NoticeSender {
    queue: mpsc::Sender<EventNotice>,
    outcomes: IntCounterVec,
}

impl NoticeSender {
    /// Creates both ends of the channel.
    pub(crate) fn new(outcomes: IntCounterVec) -> (Self, mpsc::Receiver<EventNotice>) {
        let (queue, receiver) = mpsc::channel(NOTICE_QUEUE_SIZE);
        (NoticeSender { queue, outcomes }, receiver)
    }

    /// Sends a notice, or counts it as lost.
    pub(crate) fn send_notice(&self, notice: EventNotice) {
        if self.queue.try_send(notice).is_err() {
            self.outcomes.with_label_values(&["limited"]).inc();
        }
    }
}

/// Creates Events.
pub(crate) struct EventRecorder {
    pub(crate) client: kube::Client,
    pub(crate) transitions: TransitionSubscription,
    pub(crate) notices: mpsc::Receiver<EventNotice>,
    pub(crate) clock: ServerClock,
    /// Leadership: a standby has the same notices, and leaves them to the leader.
    pub(crate) leadership: Leadership,
    pub(crate) outcomes: IntCounterVec,
    /// Reporting instance in the Events.
    pub(crate) instance: String,
    /// Reports what keeps failing.
    pub(crate) failures: FailureReporter,
    /// Whether writes of parents keep failing.
    pub(crate) failing: Arc<FailingWrites>,
    /// Seed that spreads the waits after failures.
    pub(crate) seed: Seed,
}

/// Sending part, separate from the receiving one.
struct EventSender {
    client: kube::Client,
    leadership: Leadership,
    outcomes: IntCounterVec,
    instance: String,
    was_forbidden: bool,
    failures: FailureReporter,
    failing: Arc<FailingWrites>,
    seed: Seed,
    /// Requests in a row that failed.
    failed: u32,
    /// No request before this time.
    not_before: Time,
    /// Few requests before this time: writes of parents kept failing.
    spares_server_until: Time,
}

impl EventRecorder {
    /// Runs until `stop`. Events that are still queued then are dropped.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let EventRecorder { mut transitions, mut notices, clock, .. } = self;
        let mut sender = EventSender {
            client: self.client,
            leadership: self.leadership,
            outcomes: self.outcomes,
            instance: self.instance,
            was_forbidden: false,
            failures: self.failures,
            failing: self.failing,
            seed: self.seed,
            failed: 0,
            not_before: Time::default(),
            spares_server_until: Time::default(),
        };
        let (mut turns, mut ledger) = (LastingTurns::default(), EventCorrelator::default());
        loop {
            let now = clock.now();
            while let Some((notice, at)) = turns.take_due(now) {
                match notice {
                    Some(notice) => sender.admit_notice(&mut ledger, notice, at, now),
                    None => sender.outcomes.with_label_values(&["folded"]).inc(),
                }
            }
            let may_send = sender.not_before <= now;
            if let Some(order) = may_send.then(|| ledger.take_due(now)).flatten() {
                tokio::select! { biased;
                    () = stop.cancelled() => return,
                    () = sender.send_event(&mut ledger, order, &clock) => {}
                }
                // Notices are received during a request, or repetitions that could be merged would be lost.
                while let Some(event) = transitions.try_next() {
                    sender.on_transition(&mut turns, &event, clock.now());
                }
                continue;
            }
            let may_be_sent = ledger.next_due().map(|at| at.max(sender.not_before));
            let due = may_be_sent.into_iter().chain(turns.next_due()).min().map(|at| at - now);
            tokio::select! { biased;
                () = stop.cancelled() => return,
                event = transitions.next() => match event {
                    Some(event) => sender.on_transition(&mut turns, &event, clock.now()),
                    None => return,
                },
                Some(notice) = notices.recv() => {
                    let now = clock.now();
                    sender.admit_notice(&mut ledger, notice, now, now);
                }
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {}
            }
        }
    }
}

impl EventSender {
    fn on_transition(&self, turns: &mut LastingTurns, event: &TransitionEvent, now: Time) {
        let (outcome, count) = match event {
            TransitionEvent::Received(transition) => {
                let notice = EventNotice::from_transition(transition);
                let Some(notice) = notice.filter(|_| self.leadership.may_write()) else { return };
                match turns.admit_turn(transition, notice, now) {
                    TurnFate::Waits => return,
                    TurnFate::Folds => ("folded", 1),
                    TurnFate::NoRoom => ("limited", 1),
                }
            }
            TransitionEvent::Lost(count) => ("limited", *count),
        };
        self.outcomes.with_label_values(&[outcome]).inc_by(count);
    }

    /// Admits a notice of what happened at `at`.
    fn admit_notice(&self, ledger: &mut EventCorrelator, notice: EventNotice, at: Time, now: Time) {
        if self.leadership.may_write() && !ledger.admit_notice(notice, at, now) {
            self.outcomes.with_label_values(&["limited"]).inc();
        }
    }

    async fn send_event(&mut self, ledger: &mut EventCorrelator, order: EventRequest, clock: &ServerClock) {
        let now = clock.now();
        let (request, created) = match &order {
            EventRequest::Create(event) => (event_requests::create_request(event, &self.instance), true),
            EventRequest::Repeat(series) => (event_requests::series_request(series), false),
        };
        let done = match request {
            Ok(request) => tokio::time::timeout(EVENT_REQUEST_TIMEOUT, self.call_api(request)).await,
            Err(error) => Ok(Err(error)),
        };
        let status = done.as_ref().ok().and_then(|done| Some(done.as_ref().ok()?.0)).unwrap_or_default();
        let (outcome, detail) = match done {
            Ok(Ok((200..=299, _))) => (if created { "created" } else { "repeated" }, String::new()),
            Ok(Ok((404, body))) => ("gone", body),
            // A namespace that is being deleted rejects Events; that is not a missing right.
            Ok(Ok((403, body))) if body.contains("NamespaceTerminating") => ("gone", body),
            Ok(Ok((403, body))) => ("forbidden", watcher::error_text(body)),
            Ok(Ok((status, body))) => ("failed", watcher::error_text(format_args!("{status}: {body}"))),
            Ok(Err(error)) => ("failed", watcher::error_text(error)),
            Err(_) => ("failed", "request timed out".to_owned()),
        };
        self.outcomes.with_label_values(&[outcome]).inc();
        self.back_off(outcome, clock.now());
        if self.spares_server_until > clock.now() {
            ledger.forgo_burst();
        }
        ledger.settle_request(&order, matches!(outcome, "created" | "repeated"), now);
        match outcome {
            "forbidden" if !std::mem::replace(&mut self.was_forbidden, true) => warn!(
                detail,
                "not permitted to create Events (logged once); grant it with `rollcall rbac -f POLICY | kubectl apply -f -`, \
                 or disable them with --events=false"
            ),
            "failed" => self.failures.report("write Event", status, move |failures| {
                warn!(detail, failures, "failed to create or patch Event");
            }),
            "gone" => debug!(detail, "Event not written: namespace or Event series no longer exists"),
            _ => {}
        }
    }

    /// Waits ever longer while requests fail. What is to be told meanwhile waits, or is counted as lost.
    fn back_off(&mut self, outcome: &str, now: Time) {
        match outcome {
            "failed" | "forbidden" => {
                self.failed = self.failed.saturating_add(1);
                let delay = match self.failed.checked_sub(FAILED_EVENTS_IN_A_ROW) {
                    None => FAILED_EVENT_INTERVAL,
                    Some(beyond) => EVENT_BACKOFF.delay_after(beyond + 1, self.seed, u64::from(beyond)),
                };
                self.not_before = now + delay;
            }
            // That may be about one namespace, of which there may be much to tell.
            "gone" => self.not_before = now + GONE_EVENT_INTERVAL,
            _ => {
                self.failed = 0;
                // What is left to the server is for the conditions.
                if self.failing.keep_failing() {
                    self.spares_server_until = now + SPARED_FOR;
                }
                if self.spares_server_until > now {
                    self.not_before = now + EVENT_INTERVAL_WHILE_WRITES_FAIL;
                }
            }
        }
    }

    /// Status of the response and, unless it is a success, what it says. A success that shows no Event is none.
    async fn call_api(
        &self,
        (method, target, body): event_requests::EventCall,
    ) -> anyhow::Result<(u16, String)> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(CONTENT_TYPE, kind)
            .header(ACCEPT, "application/json")
            .body(Body::from(body))?;
        let response = self.client.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        let response: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            anyhow::ensure!(response["kind"] == "Event", "the response to an Event is something else");
            return Ok((status.as_u16(), String::new()));
        }
        let cause = response["details"]["causes"][0]["reason"].as_str().unwrap_or_default();
        let message = response["message"].as_str().unwrap_or_default();
        Ok((status.as_u16(), format!("{message} {cause}").trim().to_owned()))
    }
}

/// Initializes the series of `rollcall_events_total` to 0.
pub(crate) fn init_series(outcomes: &IntCounterVec) {
    for outcome in EVENT_OUTCOMES {
        outcomes.with_label_values(&[outcome]);
    }
}
