//! Task that maintains ReadinessRecords: reads them before any condition is written, updates them, and searches Events
//! for outcomes that were not observed.

mod job_evidence;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use timer::Backoff;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{debug, warn};
use watcher::reflector::OutcomeParent;
use watcher::status::FIELD_MANAGER;
use watcher::{
    ApiFailureCause, ApiKind, Discovered, FollowEvent, ParentObject, discover, follow, get_live,
    wire::ChildObject,
};

use crate::kind_tasks::{KindContext, KindEventSender, RecordsTrouble, report_trouble};
use job_evidence::{EvidenceSearch, JobEventSearch};
use policy::{KindPlan, PolicyReason};
use rollcall_core::KindEvent;
use rollcall_core::records::{RecordOperation, RecordOperationResult, RecordStore};

/// Maximum number of records written concurrently.
const MAX_CONCURRENT_RECORD_WRITES: usize = 8;
/// Longest time that an operation may take. 10 s: one that hangs must not keep others, nor its own record, from being saved.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a write that failed keeps its turn: while all fail, ten are tried a second. 800 ms.
const FAILED_RECORD_WRITE_PAUSE: Duration = Duration::from_millis(800);
/// Backoff between retries, and between writes to one record that another writer keeps changing.
const RECORD_WRITE_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// Interval at which pending decisions are checked again.
const RECORD_RECHECK_INTERVAL: Duration = Duration::from_secs(15);

type FinishedOperation = (String, RecordOperationResult);

/// Task that maintains the records.
pub(crate) struct RecordTask<'t> {
    context: &'t KindContext,
    plan: &'t KindPlan,
    event_sender: &'t KindEventSender,
}

impl<'t> RecordTask<'t> {
    pub(crate) fn new(
        context: &'t KindContext,
        plan: &'t KindPlan,
        event_sender: &'t KindEventSender,
    ) -> Self {
        RecordTask { context, plan, event_sender }
    }

    /// Maintains the records until their kind is no longer served.
    pub(crate) async fn keep_records(&self, api: &ApiKind) {
        let reflector = &self.context.reflector;
        let mut keeper = RecordStore::new(self.plan.records.clone().unwrap_or_default());
        let mut events = self.follow_records(api);
        let (mut read, mut failures) = (false, BTreeMap::<String, u32>::new());
        let mut under_way = FuturesUnordered::<BoxFuture<'_, FinishedOperation>>::new();
        let mut seeking = EvidenceSearch::new(JobEventSearch::new(self.context, self.plan));
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_RECORD_WRITES));
        let mut leadership = self.context.records.leadership.clone();
        let mut later = tokio::time::interval(RECORD_RECHECK_INTERVAL);
        let mut rechecks = false;
        loop {
            tokio::select! { biased;
                Some((name, done)) = under_way.next(), if !under_way.is_empty() => {
                    match done {
                        RecordOperationResult::Failed => *failures.entry(name.clone()).or_default() += 1,
                        _ => _ = failures.remove(&name),
                    }
                    log_complaints(&name, &keeper.settle_operation(reflector, &name, &done));
                }
                () = seeking.next_finished() => {}
                Some(event) = events.next() => {
                    let through = matches!(event, FollowEvent::InitDone);
                    if self.on_record_event(api, &mut keeper, event) {
                        return;
                    }
                    if through {
                        // Outcomes that were missed are searched for before any condition rests on the records.
                        if !read {
                            seeking.begin_search().await;
                        }
                        read = true;
                        self.event_sender.send(KindEvent::Synced);
                    }
                }
                () = self.context.records.moved.notified(), if read => {}
                _ = later.tick(), if read => {
                    keeper.count_round();
                    rechecks = true;
                }
                _ = leadership.wait_for_change() => {}
            }
            let leads = leadership.may_write();
            keeper.set_leading(leads);
            if read && (leads || std::mem::take(&mut rechecks)) {
                for (name, operation) in keeper.take_operations(reflector) {
                    let failed = failures.get(&name).copied().unwrap_or(0);
                    under_way.push(self.begin_operation(api, (name, operation), failed, permits.clone()));
                }
            }
            if read {
                seeking.continue_search();
            }
        }
    }

    fn follow_records(&self, api: &ApiKind) -> BoxStream<'static, FollowEvent<ParentObject>> {
        let options = self.context.follow_options();
        let (client, of) = (self.context.client.clone(), api.clone());
        let within = self.context.records.namespace.clone();
        let open = move || follow::<ParentObject>(&client, &of, Some(&within), options.clone()).boxed();
        self.context.breaks.reopened_after(open)
    }

    fn begin_operation<'f>(
        &'f self,
        api: &'f ApiKind,
        (name, operation): (String, RecordOperation),
        failed: u32,
        permits: Arc<Semaphore>,
    ) -> BoxFuture<'f, FinishedOperation> {
        async move {
            let done = self.run_operation(api, &name, operation, failed, &permits).await;
            (name, done)
        }
        .boxed()
    }

    /// Handles an event of the records' watch. Returns true if their kind is no longer served.
    fn on_record_event(
        &self,
        api: &ApiKind,
        keeper: &mut RecordStore,
        event: FollowEvent<ParentObject>,
    ) -> bool {
        let reflector = &self.context.reflector;
        match event {
            FollowEvent::Init => {
                keeper.begin_list();
                self.event_sender.send(KindEvent::Listing);
            }
            FollowEvent::InitApply(record) => keeper.stage_record(&content_of(&record)),
            FollowEvent::Apply(record) => {
                let complaints = keeper.observe_record(reflector, &content_of(&record));
                log_complaints(&record.child.meta.name, &complaints);
            }
            FollowEvent::InitDone => {
                for (name, complaints) in keeper.finish_list(reflector) {
                    log_complaints(&name, &complaints);
                }
            }
            FollowEvent::Delete(record) => keeper.observe_deletion(reflector, &record.child.meta.name),
            FollowEvent::Alive => self.event_sender.send(KindEvent::Alive),
            FollowEvent::Failure(trouble) => {
                report_trouble(&self.context.failures, api, &trouble);
                let gone = trouble.cause == ApiFailureCause::NotInstalled;
                self.event_sender.send(KindEvent::Failure(trouble.cause, trouble.detail));
                return gone;
            }
        }
        false
    }

    async fn run_operation(
        &self,
        api: &ApiKind,
        name: &str,
        operation: RecordOperation,
        failures: u32,
        permits: &Semaphore,
    ) -> RecordOperationResult {
        let wait = |n: u32| RECORD_WRITE_BACKOFF.delay_after(n, self.context.seed, u64::from(self.plan.id));
        if let RecordOperation::Patch { again: again @ 1.., .. } = &operation {
            let (record, again) = (name.to_owned(), *again);
            self.context.failures.report("revert record", "", move |failures| {
                warn!(
                    record,
                    again,
                    failures,
                    "ReadinessRecord is repeatedly changed by another writer; reverting it with backoff"
                );
            });
            tokio::time::sleep(wait(again)).await;
        }
        let permit = permits.acquire().await;
        let done = self.perform_operation(api, name, operation).await;
        if matches!(done, Ok(Some(_))) {
            drop(permit);
        } else {
            // What fails takes the turn of others, so that few are tried while all fail.
            tokio::time::sleep(FAILED_RECORD_WRITE_PAUSE).await;
            drop(permit);
        }
        match done {
            Ok(Some(done)) => {
                self.report_trouble(None);
                return done;
            }
            Ok(None) => {}
            Err(error) => {
                let trouble = self.records_trouble(&error);
                let (record, why) = (name.to_owned(), trouble.message.clone());
                self.context.failures.report("save outcomes", trouble.reason, move |failures| {
                    warn!(record, why, failures, "cannot save Job outcomes");
                });
                self.report_trouble(Some(trouble));
            }
        }
        tokio::time::sleep(wait(failures + 1)).await;
        RecordOperationResult::Failed
    }

    /// Asks, or writes if this process still leads: it may have waited long for its turn. Whether an operation that took too long
    /// was done, the next one on the record finds out by its version.
    async fn perform_operation(
        &self,
        api: &ApiKind,
        name: &str,
        operation: RecordOperation,
    ) -> anyhow::Result<Option<RecordOperationResult>> {
        let leadership = &self.context.records.leadership;
        let in_time = if let RecordOperation::CheckParent(whose) = &operation {
            timeout(OPERATION_TIMEOUT, self.check_parent(whose)).await
        } else if leadership.may_write() {
            let time = OPERATION_TIMEOUT.min(leadership.write_time_left());
            timeout(time, self.write_record(api, name, operation)).await
        } else {
            return Ok(None);
        };
        in_time.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {OPERATION_TIMEOUT:?}")))
    }

    /// Tells the policies' status, `/readyz` and the metrics whether outcomes can be saved.
    fn report_trouble(&self, trouble: Option<RecordsTrouble>) {
        self.context.metrics.records_failing.set(i64::from(trouble.is_some()));
        self.context.records.trouble.send_if_modified(|known| {
            let changed = *known != trouble;
            *known = trouble;
            changed
        });
    }

    /// Says what keeps outcomes from being saved, and what mends it.
    fn records_trouble(&self, error: &anyhow::Error) -> RecordsTrouble {
        let namespace = &self.context.records.namespace;
        let status = match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => Some(&**status),
            _ => error.downcast_ref::<Box<kube::core::Status>>().map(|status| &**status),
        };
        let no_namespace = |status: &kube::core::Status| {
            status.code == 404 && status.details.as_ref().is_some_and(|of| of.kind == "namespaces")
        };
        if status.is_some_and(no_namespace) {
            return RecordsTrouble {
                reason: PolicyReason::RecordsNamespaceMissing,
                message: format!(
                    "outcomes of Jobs are not saved: namespace {namespace} does not exist; create it with \
                     `kubectl create namespace {namespace}`, or name another with --records-namespace"
                ),
            };
        }
        if status.is_some_and(|status| status.code == 403) {
            self.context.refusals.notify_one();
        }
        // Without what differs from one record to the next: all fail alike.
        let why =
            status.map_or_else(|| watcher::error_text(error.root_cause()), |status| status.reason.clone());
        RecordsTrouble {
            reason: PolicyReason::RecordsNotSaved,
            message: format!("outcomes of Jobs are not saved in namespace {namespace}: {why}"),
        }
    }

    /// Checks whether the parent of a record still exists.
    async fn check_parent(&self, whose: &OutcomeParent) -> anyhow::Result<Option<RecordOperationResult>> {
        let of = |api: &ApiKind| api.group == *whose.group && api.kind == *whose.kind;
        let known = self.context.resolved.iter().find(|k| of(&k.api)).map(|k| k.api.clone());
        let found = match known {
            Some(api) => Some(api),
            None => match discover(&self.context.client, &whose.group, None, &whose.kind).await? {
                Discovered::Served(api) => Some(api),
                // No version of its group has the kind: it has no objects.
                Discovered::Absent => None,
                // Not being served for a moment is no evidence: the record is kept and asked about again.
                Discovered::Unserved { why, .. } => {
                    anyhow::bail!("{} cannot be looked up: {why}", whose.kind)
                }
            },
        };
        let Some(api) = found else { return Ok(Some(RecordOperationResult::ParentGone)) };
        let scope = Some(&*whose.namespace).filter(|namespace| !namespace.is_empty());
        let live = get_live::<ChildObject>(&self.context.client, &api, scope, &whose.name).await?;
        let there = live.is_some_and(|live| live.meta.uid == whose.uid);
        Ok(Some(if there { RecordOperationResult::ParentExists } else { RecordOperationResult::ParentGone }))
    }

    async fn write_record(
        &self,
        api: &ApiKind,
        name: &str,
        operation: RecordOperation,
    ) -> anyhow::Result<Option<RecordOperationResult>> {
        let path = api.list_path(Some(&self.context.records.namespace));
        let (request, body, kind) = match operation {
            RecordOperation::Create(body) => {
                (Request::post(format!("{path}?fieldManager={FIELD_MANAGER}")), body, "application/json")
            }
            RecordOperation::Patch { patch, .. } => {
                let target = format!("{path}/{name}?fieldManager={FIELD_MANAGER}");
                (Request::patch(target), patch, "application/json-patch+json")
            }
            RecordOperation::Delete { uid, version } => {
                let preconditions = json!({ "uid": uid, "resourceVersion": version });
                let body =
                    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions });
                (Request::delete(format!("{path}/{name}")), body, "application/json")
            }
            RecordOperation::CheckParent(_) => return Ok(None),
        };
        let removes = request.method_ref() == Some(&http::Method::DELETE);
        let request = request
            .header(CONTENT_TYPE, kind)
            .header(ACCEPT, "application/json")
            .body(body.to_string().into_bytes())?;
        match self.context.client.request::<Value>(request).await {
            Ok(_) if removes => Ok(Some(RecordOperationResult::Current(None))),
            Ok(now) => Ok(Some(RecordOperationResult::Current(Some(now)))),
            // Another writer was faster: the current content decides. What an admission refuses stays refused.
            Err(kube::Error::Api(status))
                if matches!(status.code, 404 | 409 | 422) && !is_invalid(&status) =>
            {
                debug!(record = name, code = status.code, "conflict on ReadinessRecord; re-reading it");
                let live = get_live::<ParentObject>(
                    &self.context.client,
                    api,
                    Some(&self.context.records.namespace),
                    name,
                )
                .await?;
                match live {
                    None if status.code != 404 || removes => Ok(Some(RecordOperationResult::Current(None))),
                    // The record was deleted before the patch, or its namespace does not exist.
                    None => Err(status.into()),
                    Some(live) => {
                        Ok(Some(RecordOperationResult::Current(Some(serde_json::from_str(live.text.get())?))))
                    }
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The record would be invalid with what was written: a validation names causes, and a failed precondition none.
fn is_invalid(status: &kube::core::Status) -> bool {
    status.code == 422 && status.details.as_ref().is_some_and(|details| !details.causes.is_empty())
}

fn content_of(record: &ParentObject) -> Value {
    serde_json::from_str(record.text.get()).unwrap_or_default()
}

fn log_complaints(record: &str, complaints: &[String]) {
    for what in complaints {
        warn!(record, what, "ignoring invalid edit to ReadinessRecord");
    }
}
