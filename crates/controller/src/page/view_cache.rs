//! Cache of the page's view, refreshed only while clients are connected, at a bounded rate, and only after changes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aggregator::{ObjectId, PolicyId};
use anyhow::Context;
use readiness::Time;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::loop_query::LoopQuery;
use super::tree_reader::TreeReader;
use super::view::{PageDifference, PageRow, PageView};
use crate::clock::ServerClock;
use crate::snapshot::StatsSnapshot;
use crate::transitions::TransitionHub;
use rollcall_core::{ClusterNames, ParentDetail};

/// Minimum interval between two views.
const MIN_VIEW_INTERVAL: Duration = Duration::from_millis(250);
/// A view stays fresh for this many times as long as it took to build.
const VIEW_COST_FACTOR: u32 = 20;
/// Time without requests after which the cached view is dropped.
const VIEW_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of batches that a stream may lag behind.
const STREAM_BACKLOG: usize = 64;
/// Maximum number of rows in one batch; beyond it clients are told to reload everything.
const MAX_ROWS_PER_BATCH: usize = 500;
/// Maximum number of messages requested from the loop at a time.
pub(super) const MAX_MESSAGES_PER_QUERY: usize = 500;

/// Maximum number of lists selected concurrently.
const MAX_CONCURRENT_LISTS: usize = 2;

/// Changes sent to streams.
#[derive(Debug)]
pub(super) struct ChangeBatch {
    /// Number of the view that shows these changes, and all before.
    pub(super) number: u64,
    /// Time of the view.
    pub(super) now: Time,
    /// New or changed rows, with their messages.
    pub(super) changed: Vec<(Arc<PageRow>, String)>,
    /// Deleted rows.
    pub(super) gone: Vec<Arc<PageRow>>,
    /// Too many changes: clients reload everything.
    pub(super) reload: bool,
    /// Names of kinds and policies.
    pub(super) names: Arc<ClusterNames>,
}

#[derive(Default)]
struct CachedView {
    view: Option<Arc<PageView>>,
    /// The view is not rebuilt before this time.
    fresh_until: Time,
    last_asked: Time,
    /// Number of transitions that were known when the view was built.
    turns: u64,
}

/// Shared cache of the view.
pub(super) struct ViewCache {
    pub(super) reflector: Arc<Reflector>,
    pub(super) clock: ServerClock,
    queries: mpsc::Sender<LoopQuery>,
    snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    cached: Mutex<(CachedView, watch::Receiver<Arc<StatsSnapshot>>)>,
    pub(super) batches: broadcast::Sender<Arc<ChangeBatch>>,
    streams: AtomicUsize,
    pub(super) trees: TreeReader,
    pub(super) lists: Arc<Semaphore>,
    /// Number of times that transitions have occurred.
    turns: AtomicU64,
    /// Names this cache: the numbers of another one's views mean nothing here.
    server: String,
    pub(super) transitions: Weak<TransitionHub>,
}

impl ViewCache {
    pub(super) fn new(
        reflector: Arc<Reflector>,
        clock: ServerClock,
        asks: mpsc::Sender<LoopQuery>,
        snapshot: watch::Receiver<Arc<StatsSnapshot>>,
        transitions: Weak<TransitionHub>,
    ) -> ViewCache {
        let held = Mutex::new((CachedView::default(), snapshot.clone()));
        let batches = broadcast::Sender::new(STREAM_BACKLOG);
        let server = clock.now().0.to_string();
        let trees = TreeReader::new(reflector.clone(), clock.clone(), asks.clone());
        ViewCache {
            trees,
            reflector,
            clock,
            queries: asks,
            snapshot,
            cached: held,
            batches,
            streams: AtomicUsize::new(0),
            lists: Arc::new(Semaphore::new(MAX_CONCURRENT_LISTS)),
            turns: AtomicU64::new(0),
            server,
            transitions,
        }
    }

    /// Current view, at most [`MIN_VIEW_INTERVAL`] or its build cost times [`VIEW_COST_FACTOR`] old.
    pub(super) async fn current_view(&self) -> anyhow::Result<Arc<PageView>> {
        let mut guard = self.cached.lock().await;
        let (held, moved) = &mut *guard;
        let now = self.clock.now();
        held.last_asked = now;
        let turns = self.turns.load(Ordering::Relaxed);
        let same = || !moved.has_changed().unwrap_or(true) && held.turns == turns;
        if let Some(shown) = held.view.as_ref().filter(|_| now < held.fresh_until || same()) {
            return Ok(shown.clone());
        }
        // What moves from here on is not in the view. These marks are set with the view alone: a client that goes away meanwhile
        // takes nothing with it.
        let mut looked = moved.clone();
        looked.mark_unchanged();
        let before = held.view.clone();
        let (to, changes) = oneshot::channel();
        let query = LoopQuery::Changes(before.as_ref().map(|before| before.number), to);
        self.queries.send(query).await.ok().context("the loop is gone")?;
        let changes = changes.await.context("the loop is gone")?;
        let reflector = self.reflector.clone();
        let base = before.clone().unwrap_or_default();
        // Sorting many parents takes a while and would block other tasks on this thread.
        let made = tokio::task::spawn_blocking(move || base.with_changes(&changes, &reflector));
        let (shown, difference) = made.await.context("failed to sort parents")?;
        let shown = Arc::new(shown);
        // Before the view counts as shown: where the client for whom it is made goes away, the next one asks for the same
        // changes, and those who stream hear them then.
        if let Some(before) = before.filter(|_| self.batches.receiver_count() > 0) {
            self.publish_changes(&shown, &before, difference).await?;
        }
        held.view = Some(shown.clone());
        held.turns = turns;
        *moved = looked;
        let done = self.clock.now();
        held.fresh_until = done + MIN_VIEW_INTERVAL.max((done - now) * VIEW_COST_FACTOR);
        Ok(shown)
    }

    /// Details of these parents, in their order. Concurrent requests query the loop once.
    pub(super) async fn parent_details(
        &self,
        shown: &PageView,
        of: &[(ObjectId, PolicyId)],
    ) -> anyhow::Result<Vec<ParentDetail>> {
        let mut known = shown.details.lock().await;
        let new: Vec<_> = of.iter().filter(|parent| !known.contains_key(*parent)).copied().collect();
        if !new.is_empty() {
            let (to, words) = oneshot::channel();
            self.queries.send(LoopQuery::Details(new.clone(), to)).await.ok().context("the loop is gone")?;
            known.extend(new.into_iter().zip(words.await.context("the loop is gone")?));
        }
        Ok(of.iter().map(|parent| known.get(parent).cloned().unwrap_or_default()).collect())
    }

    /// Selects rows outside the tasks of this thread. Clients that ask for lists wait for each other, so that the service does
    /// not wait for them.
    pub(super) async fn select<R: Send + 'static>(
        &self,
        select: impl FnOnce() -> R + Send + 'static,
    ) -> anyhow::Result<R> {
        let turn = self.lists.clone().acquire_owned().await.context("the page is gone")?;
        let selected = tokio::task::spawn_blocking(move || {
            // The next list waits for this one even if its client is gone.
            let _turn = turn;
            select()
        });
        selected.await.context("failed to select parents")
    }

    /// Names a view: of two with the same server, the one with the higher number shows more.
    pub(super) fn view_json(&self, number: u64) -> Value {
        json!({ "server": self.server, "number": number })
    }

    /// Expires the view, as if its fresh time had passed.
    #[cfg(test)]
    pub(super) async fn expire_view(&self) {
        self.cached.lock().await.0.fresh_until = self.clock.now();
    }

    /// Shows this view for good.
    #[cfg(any(test, feature = "fixtures"))]
    pub(super) async fn hold_view(&self, view: PageView) {
        let (held, _) = &mut *self.cached.lock().await;
        *held =
            CachedView { view: Some(Arc::new(view)), fresh_until: Time(i64::MAX), ..CachedView::default() };
    }

    /// Subscribes to changes until the subscription is dropped.
    pub(super) fn subscribe_changes(self: &Arc<Self>) -> StreamSubscription {
        self.streams.fetch_add(1, Ordering::Relaxed);
        StreamSubscription { views: self.clone(), batches: self.batches.subscribe() }
    }

    async fn publish_changes(
        &self,
        shown: &PageView,
        before: &PageView,
        PageDifference { changed, gone, is_whole }: PageDifference,
    ) -> anyhow::Result<()> {
        let reload = is_whole || changed.len() + gone.len() > MAX_ROWS_PER_BATCH;
        let (changed, gone) = if reload { Default::default() } else { (changed, gone) };
        if changed.is_empty() && gone.is_empty() && !reload {
            return Ok(());
        }
        let of: Vec<_> = changed.iter().map(|row| (row.parent, row.policy)).collect();
        let words = self.parent_details(shown, &of).await?;
        let changed = changed.into_iter().zip(words).map(|(row, words)| (row, words.message)).collect();
        // Where names have changed, everything is told.
        let names = before.names.clone();
        let (number, now) = (shown.number, shown.now);
        _ = self.batches.send(Arc::new(ChangeBatch { number, now, changed, gone, reload, names }));
        Ok(())
    }

    /// Refreshes the view for subscribers until `stop`.
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
                    while turns.try_next().is_some() {}
                    self.turns.fetch_add(1, Ordering::Relaxed);
                }
                () = tokio::time::sleep(VIEW_IDLE_TIMEOUT) => {}
            }
            if self.streams.load(Ordering::Relaxed) == 0 {
                self.drop_idle_view().await;
                continue;
            }
            let rest = self.cached.lock().await.0.fresh_until;
            let pause = tokio::time::sleep(rest - self.clock.now());
            if stop.run_until_cancelled(pause).await.is_some() && !stop.is_cancelled() {
                moved.mark_unchanged();
                self.current_view().await?;
            }
        }
    }

    async fn drop_idle_view(&self) {
        let mut guard = self.cached.lock().await;
        if self.clock.now() - guard.0.last_asked >= VIEW_IDLE_TIMEOUT && guard.0.view.take().is_some() {
            guard.0 = CachedView::default();
            self.trees.drop_edges().await;
            // If the loop is gone, so is what it recorded.
            _ = self.queries.send(LoopQuery::EndChanges).await;
        }
    }
}

/// One subscriber to changes.
pub(super) struct StreamSubscription {
    views: Arc<ViewCache>,
    pub(super) batches: broadcast::Receiver<Arc<ChangeBatch>>,
}

impl Drop for StreamSubscription {
    fn drop(&mut self) {
        self.views.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
