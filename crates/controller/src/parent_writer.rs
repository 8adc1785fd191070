//! Writer of parents: patches their status, a few at a time, and reports the outcome of each write.

mod reread_pace;
mod settled_write;
mod write_log;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use aggregator::DeliveryOutcome;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use tracing::{debug, info, warn};
use watcher::reflector::{ObjectRow, Reflector};
use watcher::status::{FIELD_MANAGER, patch_body};
use watcher::{ApiKind, ParentObject, get_live, parse_retry_after};

pub(crate) use reread_pace::RereadPace;
pub(crate) use settled_write::{SettledWrite, WriteFailure};
pub(crate) use write_log::WriteLog;

use crate::failing_writes::FailingWrites;
use crate::failure_reporter::FailureReporter;
use crate::failure_traffic::FailureTraffic;
use crate::kind_tasks::{ResolvedKind, ResolvedKinds};
use crate::lease::Leadership;
use crate::live_reader::Drift;
use crate::rule_threads::work_beside;
use rollcall_core::{KnownObject, ParentWrite, WriteReply, refusal, write_reply};

/// Maximum number of status writes in flight. No more are handed to the writer: what follows knows how these ended.
pub(crate) const MAX_IN_FLIGHT_WRITES: usize = 16;
/// Longest time a status write may take before its outcome is unknown. 15 s.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest time a re-read of a parent may take after a write. 5 s.
const REREAD_TIMEOUT: Duration = Duration::from_secs(5);

const PATCH_FAILED: &str = "request failed";
const NOT_PERMITTED: &str = "not permitted; grant it with `rollcall rbac -f POLICY | kubectl apply -f -`";
const PARENT_INVALID: &str = "the parent would be invalid with its conditions: let its definition, or the admission policy, allow them";
const SAID_WITHIN_BOUNDS: &str =
    "the API server refuses these conditions; the same is said within what it allows";
const NOT_THE_PARENT: &str = "the response is not the parent that was written; re-reading the parent";
const CONDITIONS_PRUNED: &str =
    "the API server pruned status.conditions: the CRD's schema does not declare the field";

/// Writes the status of parents.
#[derive(Clone)]
pub(crate) struct ParentWriter {
    /// Kubernetes client without retries; the writer does its own.
    pub(crate) client: kube::Client,
    /// Reflector that ingests the server's responses.
    pub(crate) reflector: Arc<Reflector>,
    /// Resolved API endpoints of kinds.
    pub(crate) resolved: ResolvedKinds,
    /// Leadership that permits a write to start.
    pub(crate) leadership: Leadership,
    /// Reports what keeps failing.
    pub(crate) failures: FailureReporter,
    /// Signals that the API server refused a write for want of a right.
    pub(crate) refusals: Arc<Notify>,
    /// Logs what was written.
    pub(crate) log: Arc<WriteLog>,
    /// Whether writes keep failing.
    pub(crate) failing: Arc<FailingWrites>,
    /// Counts what failing writes ask.
    pub(crate) failure_traffic: Arc<FailureTraffic>,
    /// Pace of the re-reads after writes.
    pub(crate) rereads: Arc<RereadPace>,
    /// Takes what re-reads have shown and the watch has not.
    pub(crate) drifts: UnboundedSender<Vec<Drift>>,
}

impl ParentWriter {
    /// Writes until the channel is closed, then finishes the writes in flight.
    pub(crate) async fn run(
        self,
        mut writes: UnboundedReceiver<ParentWrite>,
        settled: UnboundedSender<SettledWrite>,
    ) {
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! { biased;
                Some(done) = under_way.next(), if !under_way.is_empty() => { _ = settled.send(done); }
                write = writes.recv(), if under_way.len() < MAX_IN_FLIGHT_WRITES => match write {
                    Some(write) => under_way.push(self.write_parent(write)),
                    None => break,
                },
            }
        }
        while let Some(done) = under_way.next().await {
            _ = settled.send(done);
        }
    }

    async fn write_parent(&self, write: ParentWrite) -> SettledWrite {
        let known = self.resolved.get(&write.kind).map(|k| Arc::clone(&k));
        let mut failure = None;
        let (outcome, label) = match known {
            Some(followed) => self.patch_parent(&followed, &write, &mut failure).await,
            // The kind was unfollowed in the meantime; the retry resolves it again.
            None => (DeliveryOutcome::Unsent, "dropped"),
        };
        if failure.as_ref().is_some_and(|failure| failure.status == 403) {
            self.refusals.notify_one();
        }
        if outcome != DeliveryOutcome::Unsent {
            let has_failed = !outcome.is_accepted() && outcome != DeliveryOutcome::Gone;
            self.failing.record_outcome(has_failed);
            // One that stands in other words than it was sent in is sent again, like one that failed.
            if has_failed || (outcome == DeliveryOutcome::Written && self.stands_otherwise(&write)) {
                self.failure_traffic.record_request(Instant::now());
            }
        }
        let turned_to = write.status_transition.filter(|_| outcome.is_accepted());
        let ParentWrite { parent, ticket, kind, policies, .. } = write;
        SettledWrite { parent, ticket, kind, policies, outcome, label, status_transition: turned_to, failure }
    }

    async fn patch_parent(
        &self,
        followed: &Arc<ResolvedKind>,
        write: &ParentWrite,
        failure: &mut Option<WriteFailure>,
    ) -> (DeliveryOutcome, &'static str) {
        let object = format!("{} {}/{}", followed.api, write.namespace, write.name);
        if !self.leadership.may_write() {
            // The write was decided while this replica led. The new leader decides for itself.
            return (DeliveryOutcome::Unsent, "standby");
        }
        let held = self.held_version(write);
        let timeout = WRITE_TIMEOUT.min(self.leadership.write_time_left());
        let response = match tokio::time::timeout(timeout, self.send_patch(&followed.api, write)).await {
            Ok(Ok(response)) => response,
            unsettled => {
                let (detail, label) = match unsettled {
                    Ok(Err(error)) => (watcher::error_text(error), "error"),
                    _ => ("request timed out".to_owned(), "timeout"),
                };
                let unknown = WriteFailure { object, cause: PATCH_FAILED, detail, ..WriteFailure::default() };
                *failure = Some(self.reread_unknown(followed, write, unknown).await);
                return (DeliveryOutcome::Retry(Duration::ZERO), label);
            }
        };
        let PatchResponse { status, retry_after, body } = response;
        let reply = WriteReply::from_status(status, &body, &followed.api, &write.name);
        let outcome = reply.write_outcome(write, retry_after);
        match reply {
            WriteReply::Accepted => {
                self.take_accepted(followed, (write, held), (object, status), &body, failure).await
            }
            WriteReply::Gone => {
                debug!(object, "status patch dropped: parent was deleted");
                self.take_gone(followed, write).await
            }
            WriteReply::Conflict => {
                debug!(object, status, body = %String::from_utf8_lossy(&body), "status patch rejected: precondition failed; re-reading the parent");
                self.report_reread(self.reread_parent(followed, write, true).await);
                (outcome, "conflict")
            }
            WriteReply::Invalid => self.take_invalid(&followed.api, write, (object, status), &body, failure),
            WriteReply::NotPermitted => {
                let detail = format!("{}; grant {}", status_message(&body), missing_rule(&followed.api));
                *failure =
                    Some(WriteFailure { object, cause: NOT_PERMITTED, status: 403, detail, reread: None });
                (outcome, "forbidden")
            }
            WriteReply::Failed => {
                let detail = status_message(&body);
                let mut failed = WriteFailure { object, cause: PATCH_FAILED, status, detail, reread: None };
                if write_reply::is_unknown(status) {
                    failed = self.reread_unknown(followed, write, failed).await;
                }
                *failure = Some(failed);
                (outcome, if status == 429 { "throttled" } else { "error" })
            }
        }
    }

    /// Handles an answer that says that the parent would be invalid with what was written. Where the same can be said within what
    /// is allowed, it is said so at once.
    fn take_invalid(
        &self,
        api: &ApiKind,
        write: &ParentWrite,
        (object, status): (String, u16),
        body: &[u8],
        failure: &mut Option<WriteFailure>,
    ) -> (DeliveryOutcome, &'static str) {
        let detail = status_message(body);
        let outcome = refusal::outcome_of(&self.reflector, write, body);
        if let DeliveryOutcome::Shortened(_) = outcome {
            self.failures.report("status bounds", api, move |times| {
                info!(object, detail, times, "{SAID_WITHIN_BOUNDS}");
            });
            return (outcome, "shortened");
        }
        *failure = Some(WriteFailure { object, cause: PARENT_INVALID, status, detail, reread: None });
        (outcome, "invalid")
    }

    /// Handles an answer that says that the parent is gone. One whose definition has lost the subresource of the status is not
    /// found there, and is there.
    async fn take_gone(
        &self,
        followed: &Arc<ResolvedKind>,
        write: &ParentWrite,
    ) -> (DeliveryOutcome, &'static str) {
        self.report_reread(self.reread_parent(followed, write, true).await);
        if self.held_version(write) > 0 && followed.doubts.find_moved(&self.client, &followed.api).await {
            return (DeliveryOutcome::Unsent, "dropped");
        }
        (DeliveryOutcome::Gone, "gone")
    }

    /// Handles an answer that says that the write was accepted, be it the parent or anything else.
    async fn take_accepted(
        &self,
        followed: &Arc<ResolvedKind>,
        (write, held): (&ParentWrite, u64),
        (object, status): (String, u16),
        body: &[u8],
        failure: &mut Option<WriteFailure>,
    ) -> (DeliveryOutcome, &'static str) {
        let Some(parent) = write_reply::read_accepted(body, write) else {
            let detail = status_message(body);
            let unknown = WriteFailure { object, cause: NOT_THE_PARENT, status, detail, reread: None };
            *failure = Some(self.reread_unknown(followed, write, unknown).await);
            return (DeliveryOutcome::Retry(Duration::ZERO), "error");
        };
        let (outcome, label) = self.on_accepted(write, &object, &parent);
        // Where a definition has gained the subresource of the status, the rest of a parent is written, and its status ignored.
        let is_ignored = outcome == DeliveryOutcome::Pruned || parent.child.meta.resource_version <= held;
        if is_ignored && followed.doubts.find_moved(&self.client, &followed.api).await {
            return (DeliveryOutcome::Unsent, "dropped");
        }
        if outcome == DeliveryOutcome::Pruned {
            *failure =
                Some(WriteFailure { object, cause: CONDITIONS_PRUNED, status, ..WriteFailure::default() });
        }
        (outcome, label)
    }

    async fn send_patch(&self, api: &ApiKind, write: &ParentWrite) -> anyhow::Result<PatchResponse> {
        let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
        let status = if api.has_status { "/status" } else { "" };
        let target =
            format!("{}/{}{status}?fieldManager={FIELD_MANAGER}", api.list_path(namespace), write.name);
        let request = Request::patch(target)
            .header(CONTENT_TYPE, "application/json-patch+json")
            .header(ACCEPT, "application/json")
            .body(Body::from(patch_body(&write.patch)))?;
        let response = self.client.send(request).await?;
        let status = response.status().as_u16();
        let retry_after = parse_retry_after(response.headers()).unwrap_or_default();
        let body = response.into_body().collect().await?.to_bytes().to_vec();
        Ok(PatchResponse { status, retry_after, body })
    }

    /// Handles an accepted write. The response is the parent's current state, which may hold less than what was sent.
    fn on_accepted(
        &self,
        write: &ParentWrite,
        object: &str,
        parent: &ParentObject,
    ) -> (DeliveryOutcome, &'static str) {
        let apply = || write_reply::apply_accepted(&self.reflector, write, parent);
        let outcome = work_beside(self.evaluates_on_ingest(write), apply);
        if outcome.is_accepted() {
            self.log.log_write(object, write);
            return (outcome, "written");
        }
        (outcome, "pruned")
    }

    /// Re-reads the parent after a write whose outcome is unknown, so that the next decision rests on its current state.
    async fn reread_unknown(
        &self,
        followed: &Arc<ResolvedKind>,
        write: &ParentWrite,
        failure: WriteFailure,
    ) -> WriteFailure {
        WriteFailure { reread: self.reread_parent(followed, write, false).await, ..failure }
    }

    /// Returns `true` if the parent says something else than was written, as far as is held of it.
    fn stands_otherwise(&self, write: &ParentWrite) -> bool {
        let shown = |row: &ObjectRow| row.parent.as_ref().map(|parent| parent.view.digest);
        let shown = self.reflector.find_object(&write.uid).and_then(|id| self.reflector.read_row(id, shown));
        shown.flatten().is_some_and(|digest| digest != write.digest)
    }

    /// Version of the parent that is held; 0 where none is.
    fn held_version(&self, write: &ParentWrite) -> u64 {
        let id = self.reflector.find_object(&write.uid);
        id.and_then(|id| self.reflector.read_row(id, |row| row.version)).unwrap_or_default()
    }

    fn report_reread(&self, error: Option<String>) {
        if let Some(error) = error {
            self.failures.report("re-read parent", "", move |failures| {
                warn!(error, failures, "failed to re-read the parent after a write");
            });
        }
    }

    fn evaluates_on_ingest(&self, write: &ParentWrite) -> bool {
        self.reflector.interest(write.kind).is_some_and(|interest| interest.evaluates_on_ingest())
    }

    /// Reads a parent live after a failed precondition or a write whose outcome is unknown, so that the next decision rests on
    /// its current state. What others have changed (`is_by_others`) and the watch has not shown it may have lost; a write of
    /// unknown outcome may be the change itself.
    async fn reread_parent(
        &self,
        followed: &Arc<ResolvedKind>,
        write: &ParentWrite,
        is_by_others: bool,
    ) -> Option<String> {
        self.rereads.wait_for_turn().await;
        self.failure_traffic.record_request(Instant::now());
        let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
        let (start, known) = (self.reflector.start_read(), KnownObject::of(&self.reflector, &write.uid));
        let live = get_live::<ParentObject>(&self.client, &followed.api, namespace, &write.name);
        match tokio::time::timeout(REREAD_TIMEOUT, live).await {
            Ok(Ok(live)) => {
                let apply = || write_reply::apply_reread(&self.reflector, write, start, known, live.as_ref());
                let lags = work_beside(self.evaluates_on_ingest(write), apply);
                let drifts: Vec<_> = lags.into_iter().map(|lag| Drift::new(followed, lag)).collect();
                if is_by_others && !drifts.is_empty() {
                    _ = self.drifts.send(drifts);
                }
                None
            }
            Ok(Err(error)) => Some(watcher::error_text(error)),
            Err(_) => Some("no answer".to_owned()),
        }
    }
}

/// The RBAC rule that a status patch of this kind needs.
fn missing_rule(api: &ApiKind) -> String {
    let status = if api.has_status { "/status" } else { "" };
    format!("apiGroups: [{:?}], resources: [{}{status}], verbs: [patch]", api.group, api.plural)
}

struct PatchResponse {
    status: u16,
    retry_after: Duration,
    body: Vec<u8>,
}

/// Message of a Kubernetes `Status` object, or what there is instead, as far as a log has room for it: a proxy may answer with a
/// page.
fn status_message(body: &[u8]) -> String {
    let status: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let whole = status["message"].as_str().map_or_else(|| String::from_utf8_lossy(body), Cow::Borrowed);
    watcher::error_text(whole)
}
