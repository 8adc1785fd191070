//! Keeps what is shown, as fresh as somebody looks at it: made at most every so often, and only where something moved.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aggregator::{ObjectId, PolicyId};
use anyhow::Context;
use readiness::Time;
use rustc_hash::FxHashMap;
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::shown::{Names, Row, Shown};
use super::tree::{Node, Pick};
use crate::clock::ServerClock;
use crate::core::{Core, Words, World};
use crate::snapshot::Snapshot;
use crate::transitions::Transitions;

/// Never more often than this.
const PAUSE: Duration = Duration::from_millis(250);
/// So many times longer than it took, what was made is good enough.
const SHARE: u32 = 20;
/// Where nobody has asked for so long, nothing is kept.
const IDLE: Duration = Duration::from_secs(60);
/// So many batches a stream may be behind.
const BEHIND: usize = 64;
/// More rows than this in one batch, and readers do better to read everything again.
const BATCH: usize = 500;
/// So many messages are asked of the loop at a time.
pub(super) const MESSAGES: usize = 500;

/// So many trees are picked at a time.
const TREES: usize = 2;

/// What the page asks of the loop.
pub(crate) enum Ask {
    /// Where does everybody stand?
    World(oneshot::Sender<World>),
    /// What is said of these?
    Words(Vec<(ObjectId, PolicyId)>, oneshot::Sender<Vec<Words>>),
}

impl Ask {
    /// The loop's part. Whoever asked may be gone.
    pub(crate) fn answer(self, core: &Core, now: Time) {
        match self {
            Ask::World(to) => _ = to.send(core.world(now)),
            Ask::Words(of, to) => {
                _ = to.send(of.into_iter().map(|(parent, policy)| core.words(parent, policy, now)).collect());
            }
        }
    }
}

/// What moved, for streams.
#[derive(Debug)]
pub(super) struct Batch {
    /// When.
    pub(super) now: Time,
    /// New, or shown otherwise, with its message.
    pub(super) changed: Vec<(Row, String)>,
    /// Not there any more.
    pub(super) gone: Vec<Row>,
    /// Too much: read everything again.
    pub(super) reload: bool,
    /// For the names of kinds and policies.
    pub(super) names: Names,
}

#[derive(Default)]
struct Held {
    shown: Option<Arc<Shown>>,
    /// Not made anew before.
    rest: Time,
    asked: Time,
}

/// Where everybody who looks gets it from.
pub(super) struct Desk {
    pub(super) reflector: Arc<Reflector>,
    pub(super) clock: ServerClock,
    asks: mpsc::Sender<Ask>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
    held: Mutex<(Held, watch::Receiver<Arc<Snapshot>>)>,
    pub(super) batches: broadcast::Sender<Arc<Batch>>,
    streams: AtomicUsize,
    trees: Semaphore,
    /// Something turned since it was made.
    turned: AtomicBool,
    pub(super) transitions: Weak<Transitions>,
}

impl Desk {
    pub(super) fn new(
        reflector: Arc<Reflector>,
        clock: ServerClock,
        asks: mpsc::Sender<Ask>,
        snapshot: watch::Receiver<Arc<Snapshot>>,
        transitions: Weak<Transitions>,
    ) -> Desk {
        let held = Mutex::new((Held::default(), snapshot.clone()));
        let batches = broadcast::Sender::new(BEHIND);
        let (streams, turned) = (AtomicUsize::new(0), AtomicBool::new(false));
        let trees = Semaphore::new(TREES);
        Desk { reflector, clock, asks, snapshot, held, batches, streams, trees, turned, transitions }
    }

    /// Where everything stands, at most a moment old.
    pub(super) async fn shown(&self) -> anyhow::Result<Arc<Shown>> {
        let mut guard = self.held.lock().await;
        let (held, moved) = &mut *guard;
        let now = self.clock.now();
        held.asked = now;
        let same = || !moved.has_changed().unwrap_or(true) && !self.turned.load(Ordering::Relaxed);
        if let Some(shown) = held.shown.as_ref().filter(|_| now < held.rest || same()) {
            return Ok(shown.clone());
        }
        self.turned.store(false, Ordering::Relaxed);
        let snapshot = moved.borrow_and_update().clone();
        let (to, world) = oneshot::channel();
        self.asks.send(Ask::World(to)).await.ok().context("the loop is gone")?;
        let world = world.await.context("the loop is gone")?;
        let reflector = self.reflector.clone();
        // Sorting everybody takes a while where there are many: not on a thread that others wait for.
        let made = tokio::task::spawn_blocking(move || Shown::new(world, &reflector, &unready(&snapshot)));
        let shown = Arc::new(made.await.context("failed to sort parents")?);
        let before = held.shown.replace(shown.clone());
        let done = self.clock.now();
        held.rest = done + PAUSE.max((done - now) * SHARE);
        if let Some(before) = before.filter(|_| self.batches.receiver_count() > 0) {
            self.tell(&shown, &before).await?;
        }
        Ok(shown)
    }

    /// One parent's tree, of at most so many objects.
    pub(super) async fn tree(&self, shown: Arc<Shown>, root: Row, room: usize) -> anyhow::Result<Vec<Node>> {
        // Who looks at large trees waits for others who do, and not the whole service for them.
        let _turn = self.trees.acquire().await.context("the page is gone")?;
        let reflector = self.reflector.clone();
        let picked = tokio::task::spawn_blocking(move || {
            Pick { shown: &shown, reflector: &reflector, room }.tree(&root)
        });
        picked.await.context("failed to pick a tree")
    }

    /// What is said of these parents, in their order. Those who ask at the same time ask the loop once.
    pub(super) async fn words(
        &self,
        shown: &Shown,
        of: &[(ObjectId, PolicyId)],
    ) -> anyhow::Result<Vec<Words>> {
        let mut known = shown.words.lock().await;
        let new: Vec<_> = of.iter().filter(|parent| !known.contains_key(*parent)).copied().collect();
        if !new.is_empty() {
            let (to, words) = oneshot::channel();
            self.asks.send(Ask::Words(new.clone(), to)).await.ok().context("the loop is gone")?;
            known.extend(new.into_iter().zip(words.await.context("the loop is gone")?));
        }
        Ok(of.iter().map(|parent| known.get(parent).cloned().unwrap_or_default()).collect())
    }

    /// What was made has been good for as long as it is without being looked at again.
    #[cfg(test)]
    pub(super) async fn rested(&self) {
        self.held.lock().await.0.rest = self.clock.now();
    }

    /// Somebody who wants to hear what moves, until it is dropped.
    pub(super) fn listen(self: &Arc<Self>) -> Listening {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Listening { desk: self.clone(), batches: self.batches.subscribe() }
    }

    async fn tell(&self, shown: &Shown, before: &Shown) -> anyhow::Result<()> {
        let difference = shown.difference(before);
        let reload = difference.changed.len() + difference.gone.len() > BATCH;
        let (changed, gone) = if reload { Default::default() } else { (difference.changed, difference.gone) };
        if changed.is_empty() && gone.is_empty() && !reload {
            return Ok(());
        }
        let of: Vec<_> = changed.iter().map(|row| (row.parent, row.policy)).collect();
        let words = self.words(shown, &of).await?;
        let changed = changed.into_iter().zip(words).map(|(row, words)| (row, words.message)).collect();
        // A policy that is gone has taken its parents with it, and is named once more.
        let mut names = Names::clone(&before.names);
        names.kinds.extend(shown.names.kinds.clone());
        names.policies.extend(shown.names.policies.clone());
        let batch = Batch { now: shown.now, changed, gone, reload, names };
        _ = self.batches.send(Arc::new(batch));
        Ok(())
    }

    /// Looks for those who listen, until `stop`.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
        let mut moved = self.snapshot.clone();
        let turns = self.transitions.upgrade().map(|transitions| transitions.subscribe("page"));
        let mut turns = turns.context("the loop is gone")?;
        loop {
            tokio::select! { biased;
                () = stop.cancelled() => return Ok(()),
                changed = moved.changed() => changed.context("the loop is gone")?,
                turn = turns.next() => {
                    turn.context("the loop is gone")?;
                    while turns.take().is_some() {}
                    self.turned.store(true, Ordering::Relaxed);
                }
                () = tokio::time::sleep(IDLE) => self.forget().await,
            }
            if self.streams.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let rest = self.held.lock().await.0.rest;
            let pause = tokio::time::sleep(rest - self.clock.now());
            if stop.run_until_cancelled(pause).await.is_some() && !stop.is_cancelled() {
                moved.mark_unchanged();
                self.shown().await?;
            }
        }
    }

    async fn forget(&self) {
        let mut guard = self.held.lock().await;
        if self.clock.now() - guard.0.asked >= IDLE {
            guard.0 = Held::default();
        }
    }
}

fn unready(snapshot: &Snapshot) -> FxHashMap<(ObjectId, PolicyId), Time> {
    snapshot.unready.iter().map(|parent| ((parent.parent, parent.id), parent.since)).collect()
}

/// One reader of what moves.
pub(super) struct Listening {
    desk: Arc<Desk>,
    pub(super) batches: broadcast::Receiver<Arc<Batch>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.desk.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
