//! The periodic pass: what is not ready is read again, live, at a bounded rate; what the watch lacks later is drift.

use std::sync::Arc;
use std::time::Duration;

use aggregator::{KindId, ObjectId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rustc_hash::FxHashSet;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{debug, warn};
use watcher::reflector::{Applied, Awaited, Reflector};
use watcher::{Cause, Feed, LookError, Parent, look, look_all, wire::Child};

use crate::kinds::{Followed, Known};
use crate::metrics::Metrics;

/// The watch may be so much behind a live read; what it lacks after that was lost.
const GRACE: Duration = Duration::from_secs(5);
/// Beyond so many children of one kind and namespace one list is cheaper than reads one by one.
const ONE_BY_ONE: usize = 20;

/// What the pass of one parent reads.
#[derive(Clone, Debug)]
pub(crate) struct LookOrder {
    /// The parent.
    pub(crate) parent: ObjectId,
    /// The children that hold it back.
    pub(crate) children: Vec<ObjectId>,
    /// Kinds of which a child is expected but unseen.
    pub(crate) kinds: Vec<KindId>,
}

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

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Read {
    One { kind: KindId, namespace: String, name: String, uid: Option<ObjectId> },
    All { kind: KindId, namespace: String },
}

impl Looker {
    /// Reads until there is nothing more to come.
    pub(crate) async fn run(self, mut orders: UnboundedReceiver<LookOrder>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.rate.max(1));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut checks = FuturesUnordered::new();
        let mut queue = Vec::<Read>::new();
        let mut queued = FxHashSet::default();
        loop {
            tokio::select! { biased;
                order = orders.recv() => match order {
                    Some(order) => self.queue(&order, &mut queue, &mut queued),
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

    fn queue(&self, order: &LookOrder, queue: &mut Vec<Read>, queued: &mut FxHashSet<Read>) {
        let mut namespace = String::new();
        let one = |id: ObjectId| {
            self.reflector.read(id, |row| {
                let (namespace, name) = (row.namespace.to_string(), row.name.to_string());
                Read::One { kind: row.kind, namespace, name, uid: Some(id) }
            })
        };
        let mut reads = Vec::new();
        if let Some(read) = one(order.parent) {
            if let Read::One { namespace: n, .. } = &read {
                namespace.clone_from(n);
            }
            reads.push(read);
        }
        if order.children.len() > ONE_BY_ONE {
            let places = order.children.iter().filter_map(|id| {
                self.reflector
                    .read(*id, |row| Read::All { kind: row.kind, namespace: row.namespace.to_string() })
            });
            reads.extend(places.collect::<FxHashSet<_>>());
        } else {
            reads.extend(order.children.iter().filter_map(|id| one(*id)));
        }
        reads.extend(order.kinds.iter().map(|kind| Read::All { kind: *kind, namespace: namespace.clone() }));
        for read in reads {
            if queued.insert(read.clone()) {
                queue.push(read);
            }
        }
    }

    /// Reads; the objects that were news, with the version that the watch had not brought.
    async fn read(&self, read: &Read) -> Vec<Drift> {
        let (Read::One { kind, .. } | Read::All { kind, .. }) = read;
        let Some(followed) = self.known.get(kind).map(|k| Arc::clone(&k)) else { return Vec::new() };
        let parents = !followed.interest.parent.is_empty();
        let done = match read {
            Read::One { namespace, name, uid, .. } if parents => {
                self.one::<Parent>(&followed, namespace, name, *uid).await
            }
            Read::One { namespace, name, uid, .. } => {
                self.one::<Child>(&followed, namespace, name, *uid).await
            }
            Read::All { namespace, .. } if parents => self.all::<Parent>(&followed, namespace).await,
            Read::All { namespace, .. } => self.all::<Child>(&followed, namespace).await,
        };
        done.unwrap_or_else(|error| {
            if error.cause == Cause::Forbidden {
                debug!(%error, "the pass");
            } else {
                warn!(%error, "the pass");
            }
            Vec::new()
        })
    }

    async fn one<K: Feed>(
        &self,
        followed: &Followed,
        namespace: &str,
        name: &str,
        known: Option<ObjectId>,
    ) -> Result<Vec<Drift>, LookError> {
        let scope = Some(namespace).filter(|n| !n.is_empty());
        let object = look::<K>(&self.client, &followed.api, scope, name).await?;
        Ok(self.found(followed, name, known, object.as_ref()).into_iter().collect())
    }

    /// What one live read found; `known` is the object that was expected there.
    pub(crate) fn found<K: Feed>(
        &self,
        followed: &Followed,
        name: &str,
        known: Option<ObjectId>,
        object: Option<&K>,
    ) -> Option<Drift> {
        match object {
            Some(object) => self.apply(followed, object),
            None => self.vanished(followed, known?, name),
        }
    }

    async fn all<K: Feed>(&self, followed: &Followed, namespace: &str) -> Result<Vec<Drift>, LookError> {
        let scope = Some(namespace).filter(|n| !n.is_empty() && followed.api.namespaced);
        let objects = look_all::<K>(&self.client, &followed.api, scope, None).await?;
        Ok(objects.iter().filter_map(|object| self.apply(followed, object)).collect())
    }

    /// What a live read says is applied like any event. Where it was news, the watch is given a while to bring it too.
    fn apply<K: Feed>(&self, followed: &Followed, object: &K) -> Option<Drift> {
        let meta = &object.child().meta;
        let (applied, awaited) = self.reflector.apply_live(&followed.interest, object.child(), object.text());
        let Applied::Moved(before) = applied else { return None };
        let object = format!("{}/{}", meta.namespace, meta.name);
        Some(Drift {
            kind: followed.api.to_string(),
            object,
            before,
            live: meta.resource_version,
            awaited: awaited?,
        })
    }

    /// A live read found it gone.
    fn vanished(&self, followed: &Followed, id: ObjectId, name: &str) -> Option<Drift> {
        let (before, namespace) = self.reflector.read(id, |row| (row.version, row.namespace.to_string()))?;
        let awaited = self.reflector.vanish(id)?;
        Some(Drift {
            kind: followed.api.to_string(),
            object: format!("{namespace}/{name}"),
            before,
            live: 0,
            awaited,
        })
    }

    /// After a while: is what was read live still only known from there?
    pub(crate) async fn check(&self, news: Vec<Drift>, found_by: &str) {
        tokio::time::sleep(GRACE).await;
        for drift in news.iter().filter(|d| self.reflector.still_awaited(&d.awaited)) {
            let Drift { kind, object, before, live, .. } = drift;
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
    object: String,
    before: u64,
    live: u64,
    awaited: Awaited,
}
