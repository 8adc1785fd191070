//! Search for outcomes that were not observed, in the Events that the Job controller leaves behind for as long as the
//! server keeps them.
//!
//! It answers two questions: the outcome of a Job that was observed and is deleted; and the existence of newer runs
//! that were created and deleted unobserved. The second one is asked per namespace, after the records were read and
//! after each list of Jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use aggregator::KindId;
use anyhow::Context;
use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use http::Request;
use http::header::ACCEPT;
use serde_json::Value;
use tracing::{debug, info, warn};
use watcher::reflector::{DroppedOutcomes, MAX_PARENT_OUTCOMES, RunEnd, RunTrace, UnseenRun};
use watcher::{get_live, resolve_kind, wire::ChildObject};

use crate::kind_tasks::{KindContext, MAX_EVENT_SEARCHES};
use policy::KindPlan;
use rollcall_core::records::JobEvents;

/// Delays after which Events are searched again, because an Event may arrive later than what it reports.
const EVENT_RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
const EVENT_SEARCH_DELAYS: [Duration; 3] = [Duration::ZERO, EVENT_RETRY_DELAYS[0], EVENT_RETRY_DELAYS[1]];
/// Longest delay of the start for the search of Events. 10 s.
const STARTUP_SEARCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of Events per page.
const EVENTS_PAGE_SIZE: u32 = 500;
const EVENTS_FORBIDDEN: &str =
    "not permitted to list Events; grant it with `rollcall rbac -f POLICY | kubectl apply -f -`";

/// Searches in progress.
pub(super) struct EvidenceSearch<'t> {
    search: JobEventSearch<'t>,
    under_way: FuturesUnordered<BoxFuture<'t, Option<Box<str>>>>,
    /// Namespaces with a repeated search already scheduled.
    searched: BTreeSet<Box<str>>,
}

impl<'t> EvidenceSearch<'t> {
    pub(super) fn new(search: JobEventSearch<'t>) -> Self {
        EvidenceSearch { search, under_way: FuturesUnordered::new(), searched: BTreeSet::new() }
    }

    /// Searches each doubtful namespace before any condition is written.
    pub(super) async fn begin_search(&mut self) {
        let search = self.search;
        let namespaces = search.context.reflector.outcomes().take_blind_namespaces();
        let all = stream::iter(&namespaces)
            .for_each_concurrent(MAX_EVENT_SEARCHES, |n| search.search_namespace_once(n));
        if tokio::time::timeout(STARTUP_SEARCH_TIMEOUT, all).await.is_err() {
            warn!(
                seconds = STARTUP_SEARCH_TIMEOUT.as_secs(),
                "listing Events timed out; continuing with recorded outcomes"
            );
        }
        for namespace in namespaces {
            self.searched.insert(namespace.clone());
            self.under_way.push(search.search_namespace(namespace, &EVENT_RETRY_DELAYS).boxed());
        }
    }

    /// Starts searches for new doubts.
    pub(super) fn continue_search(&mut self) {
        let (search, reflector) = (self.search, &self.search.context.reflector);
        search.report_dropped_outcomes(&reflector.outcomes().take_dropped_outcomes());
        for unseen in reflector.outcomes().take_unseen_runs() {
            self.under_way.push(search.search_job_end(unseen).map(|()| None).boxed());
        }
        for namespace in reflector.outcomes().take_blind_namespaces() {
            if self.searched.insert(namespace.clone()) {
                self.under_way.push(search.search_namespace(namespace, &EVENT_SEARCH_DELAYS).boxed());
            }
        }
    }

    /// Waits until the next search is finished; forever if there is none.
    pub(super) async fn next_finished(&mut self) {
        match self.under_way.next().await {
            Some(Some(namespace)) => _ = self.searched.remove(&namespace),
            Some(None) => {}
            None => std::future::pending().await,
        }
    }
}

/// Search of the Events about Jobs.
#[derive(Clone, Copy)]
pub(super) struct JobEventSearch<'t> {
    context: &'t KindContext,
    /// The kind of Jobs, if their outcomes are recorded.
    jobs: Option<KindId>,
}

impl<'t> JobEventSearch<'t> {
    pub(super) fn new(context: &'t KindContext, plan: &KindPlan) -> Self {
        let job = ("batch".to_owned(), "Job".to_owned());
        let jobs = plan.records.as_ref().and_then(|kinds| kinds.get(&job)).copied();
        JobEventSearch { context, jobs }
    }

    /// Searches a namespace after each of these delays.
    async fn search_namespace(self, namespace: Box<str>, waits: &[Duration]) -> Option<Box<str>> {
        for wait in waits {
            tokio::time::sleep(*wait).await;
            self.search_namespace_once(&namespace).await;
        }
        Some(namespace)
    }

    fn report_dropped_outcomes(self, beyond: &DroppedOutcomes) {
        self.context.metrics.outcomes_dropped.inc_by(beyond.count);
        for (whose, UnseenRun { namespace, name, .. }) in &beyond.some {
            warn!(
                parent = format!("{} {}/{}", whose.kind, whose.namespace, whose.name),
                job = format!("{namespace}/{name}"),
                most = MAX_PARENT_OUTCOMES,
                "too many Job outcomes for one parent; this one is forgotten once the Job is deleted"
            );
        }
    }

    async fn search_namespace_once(self, namespace: &str) {
        if let Err(error) = self.try_search_namespace(namespace).await {
            self.report_search_failure(namespace.to_owned(), &error);
        }
    }

    fn report_search_failure(self, searched: String, error: &anyhow::Error) {
        let (cause, error) = (search_failure_cause(error), watcher::error_text(error));
        self.context.failures.report("search outcomes", cause, move |failures| {
            warn!(searched, cause, error, failures, "failed to search Events for missed Job outcomes");
        });
    }

    async fn try_search_namespace(self, namespace: &str) -> anyhow::Result<()> {
        let reflector = &self.context.reflector;
        let runs = reflector.outcomes().runs_in_namespace(namespace);
        let which = "involvedObject.kind=Job";
        let events = self.read_job_events(namespace, which, |trace| runs.may_have_run(&trace.name)).await?;
        let traces = events.map(JobEvents::into_run_traces).unwrap_or_default();
        for trace in &traces {
            reflector.outcomes().apply_evidence(&trace.uid, &trace.end);
        }
        let mut gone = Vec::new();
        for trace in reflector.outcomes().unobserved_traces(namespace, &traces) {
            if !self.job_exists(&trace).await? {
                gone.push(trace);
            }
        }
        for RunTrace { name, uid, end, .. } in &gone {
            warn!(
                job = format!("{namespace}/{name}"),
                uid = &**uid,
                ?end,
                "Events show a Job run that was not observed and name no owner; outcomes recorded under its name are now Unseen"
            );
        }
        reflector.outcomes().supersede_runs(namespace, gone);
        Ok(())
    }

    /// True if the Job exists. Its own watch will then deliver it, if it counts for any parent.
    async fn job_exists(self, trace: &RunTrace) -> anyhow::Result<bool> {
        let known = self.context.resolved.get(&trace.kind).map(|known| known.api.clone());
        let found = if known.is_some() {
            known
        } else {
            resolve_kind(&self.context.client, "batch", None, "Job").await?
        };
        let api = found.context("the server serves no Jobs")?;
        let live =
            get_live::<ChildObject>(&self.context.client, &api, Some(&trace.namespace), &trace.name).await?;
        Ok(live.is_some_and(|live| live.meta.uid == trace.uid))
    }

    /// Searches Events for the outcome of a deleted Job.
    async fn search_job_end(self, unseen: UnseenRun) {
        let UnseenRun { uid, namespace, name } = &unseen;
        let job = format!("{namespace}/{name}");
        for wait in EVENT_SEARCH_DELAYS {
            tokio::time::sleep(wait).await;
            if !self.context.reflector.outcomes().is_unseen(uid) {
                return;
            }
            let which = format!("involvedObject.uid={uid}");
            let events = self.read_job_events(namespace, &which, |trace| trace.uid == *uid).await;
            match events.map(|events| events.map_or(RunEnd::Open, |events| events.end_of(uid))) {
                Ok(RunEnd::Open) => debug!(job, "no Event about the Job's outcome"),
                Ok(end) => {
                    info!(job, ?end, "found the Job's outcome in its Events");
                    self.context.reflector.outcomes().apply_evidence(uid, &end);
                    return;
                }
                Err(error) => self.report_search_failure(job.clone(), &error),
            }
        }
        warn!(job, uid = &**uid, "Job was deleted before its outcome was observed");
    }

    /// Reads the Events of a namespace about Jobs that matter.
    async fn read_job_events(
        self,
        namespace: &str,
        which: &str,
        matters: impl Fn(&RunTrace) -> bool,
    ) -> anyhow::Result<Option<JobEvents>> {
        let Some(jobs) = self.jobs else { return Ok(None) };
        let mut events = JobEvents::new(jobs);
        let mut next = String::new();
        // Whatever is to be searched at once: the server answers too many requests with none.
        let _turn = self.context.records.searches.acquire().await?;
        loop {
            let from = if next.is_empty() { String::new() } else { format!("&continue={next}") };
            let path = format!(
                "/api/v1/namespaces/{namespace}/events?fieldSelector={which}&limit={EVENTS_PAGE_SIZE}{from}"
            );
            let request = Request::get(path).header(ACCEPT, "application/json").body(Vec::new())?;
            let page = self.context.client.request::<Value>(request).await?;
            events.read_page(&page, &matters);
            page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
            if next.is_empty() {
                return Ok(Some(events));
            }
        }
    }
}

fn search_failure_cause(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) if status.code == 403 => EVENTS_FORBIDDEN,
        _ => "request failed",
    }
}
