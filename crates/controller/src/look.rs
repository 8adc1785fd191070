//! The periodic pass: what is not ready is read again, live, at a bounded rate; what the watch lacks later is drift.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use readiness::Lack;
use rustc_hash::FxHashSet;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{debug, warn};
use watcher::reflector::Reflector;
use watcher::{ApiKind, Cause, Feed, LookError, Parent, look, look_all, wire::Child};

use crate::clock::ServerClock;
use crate::core::below::{self, At};
use crate::core::{Ahead, Below, Read, reads};
use crate::kinds::{Followed, Known};
use crate::metrics::Metrics;

/// The watch may be so much behind a live read; what it lacks after that was lost.
const GRACE: Duration = Duration::from_secs(5);
/// Of the workloads in one list, so many are explained.
const EXPLAINED: usize = 10;
/// So many Events of one workload are read. Its controller leaves about forty in the hour for which they are kept.
const SAID: u32 = 500;

/// Reads what it is told to.
#[derive(Clone)]
pub(crate) struct Looker {
    /// The client.
    pub(crate) client: kube::Client,
    /// Fed with what is read.
    pub(crate) reflector: Arc<Reflector>,
    /// Where kinds are served.
    pub(crate) known: Known,
    /// Counts reads and drift.
    pub(crate) metrics: Arc<Metrics>,
    /// Reads a second, at most.
    pub(crate) rate: u32,
    /// Events are dated by the server's clock.
    pub(crate) clock: ServerClock,
}

impl Looker {
    /// Reads until there is nothing more to come.
    pub(crate) async fn run(self, mut orders: UnboundedReceiver<Vec<Read>>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.rate.max(1));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut checks = FuturesUnordered::new();
        let mut queue = VecDeque::<Read>::new();
        let mut queued = FxHashSet::default();
        let mut below = VecDeque::<Below>::new();
        loop {
            tokio::select! { biased;
                order = orders.recv() => match order {
                    Some(order) => queue.extend(order.into_iter().filter(|read| queued.insert(read.clone()))),
                    None => return,
                },
                Some(()) = checks.next(), if !checks.is_empty() => {}
                _ = ticks.tick(), if !queue.is_empty() || !below.is_empty() => {
                    self.metrics.resync_reads.inc();
                    // What explains the last read comes before the next: the queue may be long.
                    if let Some(one) = below.pop_front() {
                        below.extend(self.look_below(one).await);
                    } else if let Some(read) = queue.pop_front() {
                        queued.remove(&read);
                        let found = self.read(&read).await;
                        below.extend(found.below);
                        if !found.news.is_empty() {
                            checks.push(self.check(found.news, "resync"));
                        }
                    }
                }
            }
        }
    }

    /// Reads; the objects that were news, with the version that the watch had not brought.
    pub(crate) async fn read(&self, read: &Read) -> Found {
        let Some(followed) = self.known.get(&read.kind()).map(|k| Arc::clone(&k)) else {
            return Found::default();
        };
        let whole = followed.interest.reads_whole() || followed.interest.judge.owns_pods();
        let done = if whole {
            self.read_as::<Parent>(&followed, read).await
        } else {
            self.read_as::<Child>(&followed, read).await
        };
        let (ahead, below) = done.unwrap_or_else(|error| {
            complain(&error);
            Default::default()
        });
        let kind = followed.api.to_string();
        Found { news: ahead.into_iter().map(|ahead| Drift { kind: kind.clone(), ahead }).collect(), below }
    }

    async fn read_as<K: Feed>(
        &self,
        followed: &Followed,
        read: &Read,
    ) -> Result<(Vec<Ahead>, Vec<Below>), LookError> {
        let Followed { api, interest } = followed;
        let reflector = &self.reflector;
        let below = |live: &K| below::below(reflector, interest, live.child(), live.text()?);
        match read {
            Read::One { namespace, name, known, .. } => {
                let scope = Some(namespace.as_str()).filter(|n| !n.is_empty());
                let live = look::<K>(&self.client, api, scope, name).await?;
                let ahead = reads::found(reflector, interest, *known, live.as_ref());
                Ok((ahead.into_iter().collect(), live.iter().filter_map(below).collect()))
            }
            Read::All { namespace, .. } => {
                let scope = Some(namespace.as_str()).filter(|n| !n.is_empty() && api.namespaced);
                let live = look_all::<K>(&self.client, api, scope, None).await?;
                let ahead = live.iter().filter_map(|live| reads::listed(reflector, interest, live)).collect();
                // Of many, the first few: those are the ones that a message names.
                Ok((ahead, live.iter().filter_map(below).take(EXPLAINED).collect()))
            }
        }
    }

    /// Looks at the pods of a workload that is not ready, or at its Events; where to look next, if that does not tell all.
    async fn look_below(&self, below: Below) -> Option<Below> {
        let Below { owner, namespace, uid, selector, at, .. } = &below;
        let owner = *owner;
        if let At::Events(lack, cause) = at {
            // Where nobody can say now, what was found before stands.
            let events = self.events(namespace, uid).await?;
            let found = below.events(&events, Lack { now: self.clock.now(), ..*lack }, cause.clone());
            self.reflector.refine(owner, found);
            return None;
        }
        let pods = ApiKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            namespaced: true,
            has_status: true,
        };
        match look_all::<Child>(&self.client, &pods, Some(namespace), Some(selector)).await {
            Ok(pods) => match below.pods(&pods) {
                (found, None) => _ = self.reflector.refine(owner, found),
                (found, Some(lack)) => return Some(Below { at: At::Events(lack, found), ..below }),
            },
            Err(error) => complain(&error),
        }
        None
    }

    /// What is said about a workload that lacks pods: nothing to whoever may not list Events. `None`: no answer.
    async fn events(&self, namespace: &str, uid: &str) -> Option<Value> {
        let path = format!(
            "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid={uid}&limit={SAID}"
        );
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        match self.client.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Some(Value::Null),
            answer => answer.inspect_err(|error| debug!(%error, "Events of a workload that lacks pods")).ok(),
        }
    }

    /// After a while: is what was read live still only known from there?
    pub(crate) async fn check(&self, news: Vec<Drift>, found_by: &str) {
        tokio::time::sleep(GRACE).await;
        for drift in news.iter().filter(|d| self.reflector.still_awaited(&d.ahead.awaited)) {
            let Drift { kind, ahead: Ahead { object, before, live, .. } } = drift;
            warn!(
                kind,
                object,
                held = before,
                live,
                "drift: the watch has not brought what a live read found"
            );
            self.metrics.drift(kind, found_by);
        }
    }
}

/// What one live read brought.
#[derive(Default)]
pub(crate) struct Found {
    /// What the watch had not brought.
    pub(crate) news: Vec<Drift>,
    /// Where to look for reasons.
    below: Vec<Below>,
}

fn complain(error: &LookError) {
    if error.cause == Cause::Forbidden {
        debug!(%error, "a live read");
    } else {
        warn!(%error, "a live read");
    }
}

/// Something that a live read knew before the watch did.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    kind: String,
    ahead: Ahead,
}
