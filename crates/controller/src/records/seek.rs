//! Evidence of what nobody saw: the Events that the Job controller leaves behind, for as long as the server keeps them.
//!
//! Two questions. How did one end that was seen and is gone? And was what is remembered run again, and gone again, while
//! nobody looked? The second is asked per namespace, after the records were read and after each list of Jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use http::Request;
use http::header::ACCEPT;
use serde_json::Value;
use tracing::{debug, info, warn};
use watcher::reflector::{Beyond, End, MOST_OUTCOMES, Trace, Unseen};
use watcher::{look, resolve, wire::Child};

use crate::core::records::Heard;
use crate::kinds::Task;

/// An Event may come later than what it tells of: when it is looked for again.
const AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
const NOW_AND_AGAIN: [Duration; 3] = [Duration::ZERO, AGAIN[0], AGAIN[1]];
/// So long nothing is said at the start for the sake of what Events may tell.
const PATIENCE: Duration = Duration::from_secs(10);
/// Events per page.
const PAGE: u32 = 500;
/// So many namespaces are asked about at once.
const AT_ONCE: usize = 4;

const GRANT: &str = "not permitted to list Events, which may tell how Jobs ended that nobody saw: `rollcall rbac -f POLICY | kubectl apply -f -` grants that";

/// The questions that are under way.
pub(super) struct Seeking<'t> {
    task: &'t Task,
    under_way: FuturesUnordered<BoxFuture<'t, Option<Box<str>>>>,
    /// Namespaces that will be asked about again by themselves.
    asked: BTreeSet<Box<str>>,
}

impl<'t> Seeking<'t> {
    pub(super) fn new(task: &'t Task) -> Self {
        Seeking { task, under_way: FuturesUnordered::new(), asked: BTreeSet::new() }
    }

    /// Asks about each namespace in doubt, before anything is said.
    pub(super) async fn begin(&mut self) {
        let task = self.task;
        let namespaces = task.setting.reflector.take_blind();
        let all = stream::iter(&namespaces).for_each_concurrent(AT_ONCE, |n| task.ask_once(n));
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            warn!(seconds = PATIENCE.as_secs(), "Events are slow to come: it goes on with what is recorded");
        }
        for namespace in namespaces {
            self.asked.insert(namespace.clone());
            self.under_way.push(task.ask(namespace, &AGAIN).boxed());
        }
    }

    /// Takes up what is in doubt by now.
    pub(super) fn go_on(&mut self) {
        let (task, reflector) = (self.task, &self.task.setting.reflector);
        task.tell_beyond(&reflector.take_beyond());
        for unseen in reflector.take_unseen() {
            self.under_way.push(task.seek(unseen).map(|()| None).boxed());
        }
        for namespace in reflector.take_blind() {
            if self.asked.insert(namespace.clone()) {
                self.under_way.push(task.ask(namespace, &NOW_AND_AGAIN).boxed());
            }
        }
    }

    /// Until the next question is done with; for ever where there is none.
    pub(super) async fn next(&mut self) {
        match self.under_way.next().await {
            Some(Some(namespace)) => _ = self.asked.remove(&namespace),
            Some(None) => {}
            None => std::future::pending().await,
        }
    }
}

impl Task {
    /// Asks about a namespace after each of these waits.
    async fn ask(&self, namespace: Box<str>, waits: &[Duration]) -> Option<Box<str>> {
        for wait in waits {
            tokio::time::sleep(*wait).await;
            self.ask_once(&namespace).await;
        }
        Some(namespace)
    }

    fn tell_beyond(&self, beyond: &Beyond) {
        self.setting.metrics.outcomes_dropped.inc_by(beyond.count);
        for (whose, Unseen { namespace, name, .. }) in &beyond.some {
            warn!(
                parent = format!("{} {}/{}", whose.kind, whose.namespace, whose.name),
                job = format!("{namespace}/{name}"),
                most = MOST_OUTCOMES,
                "of one parent no more outcomes are remembered: once it is gone, this one is forgotten"
            );
        }
    }

    async fn ask_once(&self, namespace: &str) {
        if let Err(error) = self.try_ask(namespace).await {
            warn!(namespace, error = format!("{error:#}"), "{}", complaint(&error));
        }
    }

    async fn try_ask(&self, namespace: &str) -> anyhow::Result<()> {
        let reflector = &self.setting.reflector;
        let runs = reflector.runs(namespace);
        let which = "involvedObject.kind=Job";
        let heard = self.hear_of(namespace, which, |trace| runs.may_have(&trace.name)).await?;
        let traces = heard.map(Heard::traces).unwrap_or_default();
        for trace in &traces {
            reflector.evidence(&trace.uid, &trace.end);
        }
        let mut gone = Vec::new();
        for trace in reflector.unheard(namespace, &traces) {
            if !self.is_there(&trace).await? {
                gone.push(trace);
            }
        }
        for Trace { name, uid, end, .. } in &gone {
            warn!(
                job = format!("{namespace}/{name}"),
                uid = &**uid,
                ?end,
                "ran while nobody looked, as Events tell, which do not say whose it was: what is remembered under this name is not known any more"
            );
        }
        reflector.supersede(namespace, gone);
        Ok(())
    }

    /// Is it there? That is for its own watch to bring, if anybody owns it for whom it counts.
    async fn is_there(&self, trace: &Trace) -> anyhow::Result<bool> {
        let known = self.setting.known.get(&trace.kind).map(|known| known.api.clone());
        let found =
            if known.is_some() { known } else { resolve(&self.setting.client, "batch", None, "Job").await? };
        let api = found.context("the server serves no Jobs")?;
        let live = look::<Child>(&self.setting.client, &api, Some(&trace.namespace), &trace.name).await?;
        Ok(live.is_some_and(|live| live.meta.uid == trace.uid))
    }

    /// Looks for Events that tell how a Job ended that is gone.
    async fn seek(&self, unseen: Unseen) {
        let Unseen { uid, namespace, name } = &unseen;
        let job = format!("{namespace}/{name}");
        for wait in NOW_AND_AGAIN {
            tokio::time::sleep(wait).await;
            if !self.setting.reflector.is_unseen(uid) {
                return;
            }
            let which = format!("involvedObject.uid={uid}");
            let heard = self.hear_of(namespace, &which, |trace| trace.uid == *uid).await;
            match heard.map(|heard| heard.map_or(End::Open, |heard| heard.end_of(uid))) {
                Ok(End::Open) => debug!(job, "no Event tells how it ended"),
                Ok(end) => {
                    info!(job, ?end, "its Events tell how it ended");
                    self.setting.reflector.evidence(uid, &end);
                    return;
                }
                Err(error) => warn!(job, error = format!("{error:#}"), "{}", complaint(&error)),
            }
        }
        warn!(job, uid = &**uid, "gone, and nobody saw how it ended");
    }

    /// What Events of a namespace tell of Jobs that matter.
    async fn hear_of(
        &self,
        namespace: &str,
        which: &str,
        matters: impl Fn(&Trace) -> bool,
    ) -> anyhow::Result<Option<Heard>> {
        let jobs = self.plan.records.as_ref().and_then(|k| k.get(&("batch".to_owned(), "Job".to_owned())));
        let Some(jobs) = jobs else { return Ok(None) };
        let mut heard = Heard::new(*jobs);
        let mut next = String::new();
        loop {
            let from = if next.is_empty() { String::new() } else { format!("&continue={next}") };
            let path =
                format!("/api/v1/namespaces/{namespace}/events?fieldSelector={which}&limit={PAGE}{from}");
            let request = Request::get(path).header(ACCEPT, "application/json").body(Vec::new())?;
            let page = self.setting.client.request::<Value>(request).await?;
            heard.read(&page, &matters);
            page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
            if next.is_empty() {
                return Ok(Some(heard));
            }
        }
    }
}

fn complaint(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) if status.code == 403 => GRANT,
        _ => "failed to ask Events what nobody saw",
    }
}
