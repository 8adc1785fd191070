//! Kubernetes Events (`events.k8s.io/v1`) on parents, for transitions and for what else an operator of a cluster should hear
//! of. In shadow there are none: there nothing is written.
//!
//! Events may be lost, and are counted then; nothing waits for them. [`ledger`] decides what is sent and when, this module
//! sends it.

mod ledger;
mod wire;

use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::client::Body;
use prometheus::IntCounterVec;
use readiness::Time;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::clock::ServerClock;
use crate::lease::Mandate;
use crate::transitions::{Heard, Place, Subscription, Transition};
use ledger::{Ledger, Order};
pub(crate) use wire::host_name;
#[cfg(feature = "history")]
pub(crate) use wire::instance;

/// How an Event may end, as `rollcall_events_total{outcome}` has it.
pub(crate) const OUTCOMES: [&str; 6] = ["created", "repeated", "limited", "forbidden", "gone", "failed"];
/// An Event that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many notices wait at most.
const NOTICES: usize = 1_024;

/// Something that is worth an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// About this object.
    pub(crate) about: Place,
    /// The version of its kind.
    pub(crate) version: String,
    /// Its uid.
    pub(crate) uid: String,
    /// A CamelCase word from a closed set.
    pub(crate) reason: &'static str,
    /// For people; cut to what the API takes.
    pub(crate) note: String,
    /// Somebody should look.
    pub(crate) warning: bool,
}

impl Notice {
    /// What a transition is worth: nothing in shadow, at a first sight, and while all is well but not for long enough.
    fn of(transition: &Transition) -> Option<Notice> {
        use readiness::rollup::ParentReason::{
            AllChildrenReady, ChildrenFailed, ChildrenMissing, ChildrenSettling, ChildrenStuck,
            ChildrenUnknown, DeadlineExceeded, KindNotVisible, OperatorSilent, TemplateFailed,
            TooManyChildren, WatchStale,
        };
        let from = transition.from?;
        if transition.shadow || transition.to == ChildrenSettling {
            return None;
        }
        let warning = match transition.to {
            // On the way up children are missing because they are yet to come.
            ChildrenMissing => from == AllChildrenReady,
            ChildrenFailed | ChildrenStuck | ChildrenUnknown | DeadlineExceeded | KindNotVisible
            | OperatorSilent | TemplateFailed | TooManyChildren | WatchStale => true,
            _ => false,
        };
        Some(Notice {
            about: transition.parent.clone(),
            version: transition.version.clone(),
            uid: transition.uid.clone(),
            reason: transition.to.word(),
            note: transition.message.clone(),
            warning,
        })
    }
}

/// For whoever has something to say beside transitions. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct Notices {
    told: mpsc::Sender<Notice>,
    outcomes: IntCounterVec,
}

impl Notices {
    /// Both ends.
    pub(crate) fn new(outcomes: IntCounterVec) -> (Self, mpsc::Receiver<Notice>) {
        let (told, heard) = mpsc::channel(NOTICES);
        (Notices { told, outcomes }, heard)
    }

    /// Tells this, or counts it as lost.
    pub(crate) fn tell(&self, notice: Notice) {
        if self.told.try_send(notice).is_err() {
            self.outcomes.with_label_values(&["limited"]).inc();
        }
    }
}

/// Sends Events.
pub(crate) struct Events {
    pub(crate) client: kube::Client,
    pub(crate) transitions: Subscription,
    pub(crate) notices: mpsc::Receiver<Notice>,
    pub(crate) clock: ServerClock,
    /// A standby has the same to say, and leaves it to the leader.
    pub(crate) mandate: Mandate,
    pub(crate) outcomes: IntCounterVec,
    /// Who sends them, as people find it in an Event.
    pub(crate) instance: String,
}

/// What sends, apart from what it hears.
struct Sender {
    client: kube::Client,
    mandate: Mandate,
    outcomes: IntCounterVec,
    instance: String,
    was_forbidden: bool,
}

impl Events {
    /// Until `stop`; what is not sent by then is not sent.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let Events { client, mut transitions, mut notices, clock, mandate, outcomes, instance } = self;
        let mut sender = Sender { client, mandate, outcomes, instance, was_forbidden: false };
        let mut ledger = Ledger::default();
        loop {
            let now = clock.now();
            if let Some(order) = ledger.take_due(now) {
                tokio::select! { biased;
                    () = stop.cancelled() => return,
                    () = sender.send(&mut ledger, order, now) => {}
                }
                // Who sends must hear meanwhile, or it would lose what it could still put together.
                while let Some(heard) = transitions.take() {
                    sender.hear(&mut ledger, &heard, clock.now());
                }
                continue;
            }
            let due = ledger.next_due().map(|at| at - now);
            tokio::select! { biased;
                () = stop.cancelled() => return,
                heard = transitions.next() => match heard {
                    Some(heard) => sender.hear(&mut ledger, &heard, clock.now()),
                    None => return,
                },
                Some(notice) = notices.recv() => sender.note(&mut ledger, notice, clock.now()),
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {}
            }
        }
    }
}

impl Sender {
    fn hear(&self, ledger: &mut Ledger, heard: &Heard, now: Time) {
        match heard {
            Heard::Told(transition) => {
                if let Some(notice) = Notice::of(transition) {
                    self.note(ledger, notice, now);
                }
            }
            Heard::Lost(count) => self.outcomes.with_label_values(&["limited"]).inc_by(*count),
        }
    }

    fn note(&self, ledger: &mut Ledger, notice: Notice, now: Time) {
        if self.mandate.holds() && !ledger.note(notice, now) {
            self.outcomes.with_label_values(&["limited"]).inc();
        }
    }

    async fn send(&mut self, ledger: &mut Ledger, order: Order, now: Time) {
        let (request, created) = match &order {
            Order::Create(event) => (wire::create(event, &self.instance), true),
            Order::Repeat(series) => (wire::repeat(series), false),
        };
        let done = match request {
            Ok(request) => tokio::time::timeout(PATIENCE, self.call(request)).await,
            Err(error) => Ok(Err(error)),
        };
        let (outcome, detail) = match done {
            Ok(Ok((200..=299, _))) => (if created { "created" } else { "repeated" }, String::new()),
            Ok(Ok((404, body))) => ("gone", body),
            // A namespace that is being deleted takes no Events; that is not for want of a right.
            Ok(Ok((403, body))) if body.contains("NamespaceTerminating") => ("gone", body),
            Ok(Ok((403, body))) => ("forbidden", body),
            Ok(Ok((status, body))) => ("failed", format!("{status}: {body}")),
            Ok(Err(error)) => ("failed", format!("{error:#}")),
            Err(_) => ("failed", "no answer".to_owned()),
        };
        self.outcomes.with_label_values(&[outcome]).inc();
        ledger.sent(&order, matches!(outcome, "created" | "repeated"), now);
        match outcome {
            "forbidden" if !std::mem::replace(&mut self.was_forbidden, true) => warn!(
                detail,
                "not permitted to send Events, said once: `rollcall rbac -f POLICY | kubectl apply -f -` grants that; \
                 --events=false sends none"
            ),
            "failed" => warn!(detail, "failed to send an Event"),
            "gone" => debug!(detail, "no Event: its namespace or its forerunner is gone"),
            _ => {}
        }
    }

    /// Status and, where it is no success, what the server says.
    async fn call(&self, (method, target, body): wire::Call) -> anyhow::Result<(u16, String)> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(CONTENT_TYPE, kind)
            .header(ACCEPT, "application/json")
            .body(Body::from(body))?;
        let response = self.client.send(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok((status.as_u16(), String::new()));
        }
        let body = response.into_body().collect().await?.to_bytes();
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let cause = said["details"]["causes"][0]["reason"].as_str().unwrap_or_default();
        let message = said["message"].as_str().unwrap_or_default();
        Ok((status.as_u16(), format!("{message} {cause}").trim().to_owned()))
    }
}

/// The series of `rollcall_events_total`, at 0.
pub(crate) fn show(outcomes: &IntCounterVec) {
    for outcome in OUTCOMES {
        outcomes.with_label_values(&[outcome]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readiness::rollup::ParentReason::{
        self, AllChildrenReady, ChildrenFailed, ChildrenMissing, ChildrenPending,
    };

    fn worth(from: Option<ParentReason>, to: ParentReason, shadow: bool) -> Option<bool> {
        let transition = Transition {
            at: Time(0),
            policy: String::new(),
            parent: Place::default(),
            version: String::new(),
            uid: String::new(),
            generation: None,
            from,
            to,
            message: String::new(),
            causes: Vec::new(),
            shadow,
            kind: aggregator::KindId(0),
        };
        Notice::of(&transition).map(|notice| notice.warning)
    }

    #[test]
    fn a_warning_is_what_somebody_should_look_at() {
        assert_eq!(worth(Some(AllChildrenReady), ChildrenFailed, false), Some(true));
        assert_eq!(worth(Some(ChildrenFailed), AllChildrenReady, false), Some(false));
        assert_eq!(worth(Some(AllChildrenReady), ChildrenMissing, false), Some(true));
        assert_eq!(worth(Some(ChildrenPending), ChildrenMissing, false), Some(false));
    }

    #[test]
    fn there_is_none_in_shadow_nor_at_first_sight_nor_while_it_settles() {
        assert_eq!(worth(Some(AllChildrenReady), ChildrenFailed, true), None);
        assert_eq!(worth(None, ChildrenPending, false), None);
        assert_eq!(worth(Some(ChildrenPending), ParentReason::ChildrenSettling, false), None);
    }
}
