//! The periodic pass: what is not ready is read again, live, at a bounded rate; what the watch lacks later is drift.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rustc_hash::FxHashSet;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{debug, warn};
use watcher::reflector::Reflector;
use watcher::{Cause, Feed, LookError, Parent, look, look_all, wire::Child};

use crate::core::{Ahead, Read, reads};
use crate::kinds::{Followed, Known};
use crate::metrics::Metrics;

/// The watch may be so much behind a live read; what it lacks after that was lost.
const GRACE: Duration = Duration::from_secs(5);
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
}

impl Looker {
    /// Reads until there is nothing more to come.
    pub(crate) async fn run(self, mut orders: UnboundedReceiver<Vec<Read>>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.rate.max(1));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut checks = FuturesUnordered::new();
        let mut queue = Vec::<Read>::new();
        let mut queued = FxHashSet::default();
        loop {
            tokio::select! { biased;
                order = orders.recv() => match order {
                    Some(order) => queue.extend(order.into_iter().filter(|read| queued.insert(read.clone()))),
                    None => return,
                },
                Some(()) = checks.next(), if !checks.is_empty() => {}
                _ = ticks.tick(), if !queue.is_empty() => {
                    let read = queue.remove(0);
                    queued.remove(&read);
                    self.metrics.resync_reads.inc();
                    let news = self.read(&read).await;
                    if !news.is_empty() {
                        checks.push(self.check(news, "resync"));
                    }
                }
            }
        }
    }

    /// Reads; the objects that were news, with the version that the watch had not brought.
    pub(crate) async fn read(&self, read: &Read) -> Vec<Drift> {
        let Some(followed) = self.known.get(&read.kind()).map(|k| Arc::clone(&k)) else { return Vec::new() };
        let parents = !followed.interest.parent.is_empty() || followed.interest.release;
        let done = if parents {
            self.read_as::<Parent>(&followed, read).await
        } else {
            self.read_as::<Child>(&followed, read).await
        };
        let ahead = done.unwrap_or_else(|error| {
            if error.cause == Cause::Forbidden {
                debug!(%error, "a live read");
            } else {
                warn!(%error, "a live read");
            }
            Vec::new()
        });
        let kind = followed.api.to_string();
        ahead.into_iter().map(|ahead| Drift { kind: kind.clone(), ahead }).collect()
    }

    async fn read_as<K: Feed>(&self, followed: &Followed, read: &Read) -> Result<Vec<Ahead>, LookError> {
        let Followed { api, interest } = followed;
        match read {
            Read::One { namespace, name, known, .. } => {
                let scope = Some(namespace.as_str()).filter(|n| !n.is_empty());
                let live = look::<K>(&self.client, api, scope, name).await?;
                Ok(reads::found(&self.reflector, interest, *known, live.as_ref()).into_iter().collect())
            }
            Read::All { namespace, .. } => {
                let scope = Some(namespace.as_str()).filter(|n| !n.is_empty() && api.namespaced);
                let live = look_all::<K>(&self.client, api, scope, None).await?;
                Ok(live.iter().filter_map(|live| reads::listed(&self.reflector, interest, live)).collect())
            }
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

/// Something that a live read knew before the watch did.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    kind: String,
    ahead: Ahead,
}
