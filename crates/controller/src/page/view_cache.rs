//! Cache of the page's view, refreshed only while clients are connected, at a bounded rate, and only after changes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aggregator::{ChildOf, ObjectId, PolicyId};
use anyhow::Context;
use readiness::Time;
use rustc_hash::FxHashSet;
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::edge_list::EdgeList;
use super::tree::{PageNode, TreePicker};
use super::view::{PageDifference, PageRow, PageView};
use crate::clock::ServerClock;
use crate::snapshot::StatsSnapshot;
use crate::transitions::TransitionHub;
use rollcall_core::{ClusterNames, Core, ParentChanges, ParentDetail};

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

/// Maximum number of trees built concurrently.
const MAX_CONCURRENT_TREES: usize = 2;

/// Query of the page to the event loop.
pub(crate) enum LoopQuery {
    /// What has changed of all parents after the changes of this number; everything if there is none.
    Changes(Option<u64>, oneshot::Sender<ParentChanges>),
    /// Nobody asks for changes any more.
    EndChanges,
    /// Edges from all parents to their children.
    Edges(oneshot::Sender<Vec<ChildOf>>),
    /// Details of these answers.
    Details(Vec<(ObjectId, PolicyId)>, oneshot::Sender<Vec<ParentDetail>>),
}

impl LoopQuery {
    /// Answers the query on the loop. The requester may be gone.
    pub(crate) fn answer_query(self, core: &mut Core, now: Time) {
        match self {
            LoopQuery::Changes(after, to) => _ = to.send(core.take_parent_changes(after, now)),
            LoopQuery::EndChanges => core.end_parent_feed(),
            LoopQuery::Edges(to) => _ = to.send(core.engine.counted_children().collect()),
            LoopQuery::Details(of, to) => {
                _ = to.send(
                    of.into_iter().map(|(parent, policy)| core.parent_detail(parent, policy, now)).collect(),
                );
            }
        }
    }
}

/// Changes sent to streams.
#[derive(Debug)]
pub(super) struct ChangeBatch {
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

/// Edges as of the changes of a number, and the time before which they are not collected again.
#[derive(Default)]
struct CachedEdges {
    number: u64,
    edges: Arc<EdgeList>,
    kept_until: Time,
}

#[derive(Default)]
struct CachedView {
    view: Option<Arc<PageView>>,
    /// The view is not rebuilt before this time.
    fresh_until: Time,
    last_asked: Time,
}

/// Shared cache of the view.
pub(super) struct ViewCache {
    pub(super) reflector: Arc<Reflector>,
    pub(super) clock: ServerClock,
    queries: mpsc::Sender<LoopQuery>,
    snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    cached: Mutex<(CachedView, watch::Receiver<Arc<StatsSnapshot>>)>,
    edges: Mutex<CachedEdges>,
    pub(super) batches: broadcast::Sender<Arc<ChangeBatch>>,
    streams: AtomicUsize,
    trees: Semaphore,
    /// A transition has occurred since the view was built.
    turned: AtomicBool,
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
        let (streams, turned) = (AtomicUsize::new(0), AtomicBool::new(false));
        let trees = Semaphore::new(MAX_CONCURRENT_TREES);
        ViewCache {
            reflector,
            clock,
            queries: asks,
            snapshot,
            cached: held,
            edges: Mutex::default(),
            batches,
            streams,
            trees,
            turned,
            transitions,
        }
    }

    /// Current view, at most [`MIN_VIEW_INTERVAL`] or its build cost times [`VIEW_COST_FACTOR`] old.
    pub(super) async fn current_view(&self) -> anyhow::Result<Arc<PageView>> {
        let mut guard = self.cached.lock().await;
        let (held, moved) = &mut *guard;
        let now = self.clock.now();
        held.last_asked = now;
        let same = || !moved.has_changed().unwrap_or(true) && !self.turned.load(Ordering::Relaxed);
        if let Some(shown) = held.view.as_ref().filter(|_| now < held.fresh_until || same()) {
            return Ok(shown.clone());
        }
        self.turned.store(false, Ordering::Relaxed);
        moved.mark_unchanged();
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
        let done = self.clock.now();
        held.fresh_until = done + MIN_VIEW_INTERVAL.max((done - now) * VIEW_COST_FACTOR);
        Ok(shown)
    }

    /// Edges that are no older than a view. Collecting all takes the loop a while, so that there is a pause in between.
    async fn edges_of(&self, shown: &PageView) -> anyhow::Result<Arc<EdgeList>> {
        let mut held = self.edges.lock().await;
        if held.number >= shown.number {
            return Ok(held.edges.clone());
        }
        tokio::time::sleep(held.kept_until - self.clock.now()).await;
        let asked = self.clock.now();
        let (to, edges) = oneshot::channel();
        self.queries.send(LoopQuery::Edges(to)).await.ok().context("the loop is gone")?;
        let edges = edges.await.context("the loop is gone")?;
        let sorted = tokio::task::spawn_blocking(move || Arc::new(EdgeList::new(edges)));
        let edges = sorted.await.context("failed to sort edges")?;
        let done = self.clock.now();
        let kept_until = done + (done - asked) * VIEW_COST_FACTOR;
        *held = CachedEdges { number: shown.number, edges: edges.clone(), kept_until };
        Ok(edges)
    }

    /// Tree of one parent, with at most `room` objects, of which so many may stand in it more than once.
    pub(super) async fn pick_tree(
        &self,
        shown: Arc<PageView>,
        root: PageRow,
        (room, repeats): (usize, usize),
    ) -> anyhow::Result<Vec<PageNode>> {
        self.with_picker(shown, (room, repeats), move |mut picker| picker.pick_tree(&root)).await
    }

    /// One object of the tree of a parent, by the label of its kind, its namespace and its name.
    pub(super) async fn find_node(
        &self,
        shown: Arc<PageView>,
        root: PageRow,
        [label, namespace, name]: [String; 3],
    ) -> anyhow::Result<Option<PageNode>> {
        let is_meant =
            move |of: &str, within: &str, named: &str| (of, within, named) == (&*label, &*namespace, &*name);
        self.with_picker(shown, (0, 0), move |picker| picker.find_node(&root, &is_meant)).await
    }

    async fn with_picker<R: Send + 'static>(
        &self,
        shown: Arc<PageView>,
        (room, repeats): (usize, usize),
        pick: impl FnOnce(TreePicker<'_>) -> R + Send + 'static,
    ) -> anyhow::Result<R> {
        // Clients that request large trees wait for each other, so that the service does not wait for them.
        let _turn = self.trees.acquire().await.context("the page is gone")?;
        let edges = self.edges_of(&shown).await?;
        let reflector = self.reflector.clone();
        let picked = tokio::task::spawn_blocking(move || {
            let expanded = FxHashSet::default();
            pick(TreePicker { view: &shown, edges: &edges, reflector: &reflector, room, repeats, expanded })
        });
        picked.await.context("failed to pick a tree")
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

    /// Expires the view, as if its fresh time had passed.
    #[cfg(test)]
    pub(super) async fn expire_view(&self) {
        self.cached.lock().await.0.fresh_until = self.clock.now();
    }

    /// Shows this view for good.
    #[cfg(feature = "fixtures")]
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
        _ = self.batches.send(Arc::new(ChangeBatch { now: shown.now, changed, gone, reload, names }));
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
                    self.turned.store(true, Ordering::Relaxed);
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
            *self.edges.lock().await = CachedEdges::default();
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
