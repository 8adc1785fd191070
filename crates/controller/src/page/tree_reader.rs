//! Trees of parents, from edges that are collected at a bounded rate.

use std::sync::Arc;

use anyhow::Context;
use readiness::Time;
use rustc_hash::FxHashSet;
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot};
use watcher::reflector::Reflector;

use super::edge_list::EdgeList;
use super::loop_query::LoopQuery;
use super::tree::{PageNode, TreePicker};
use super::view::{PageRow, PageView};
use crate::clock::ServerClock;

/// Edges are kept for this many times as long as it took to collect them.
const EDGES_COST_FACTOR: u32 = 20;
/// Maximum number of trees built concurrently.
const MAX_CONCURRENT_TREES: usize = 2;

/// Edges as of the changes of a number, and the time before which they are not collected again.
#[derive(Default)]
struct CachedEdges {
    number: u64,
    edges: Arc<EdgeList>,
    kept_until: Time,
}

/// Builds trees, a few at a time.
pub(super) struct TreeReader {
    reflector: Arc<Reflector>,
    clock: ServerClock,
    queries: mpsc::Sender<LoopQuery>,
    edges: Mutex<CachedEdges>,
    turns: Arc<Semaphore>,
}

impl TreeReader {
    pub(super) fn new(
        reflector: Arc<Reflector>,
        clock: ServerClock,
        queries: mpsc::Sender<LoopQuery>,
    ) -> TreeReader {
        let turns = Arc::new(Semaphore::new(MAX_CONCURRENT_TREES));
        TreeReader { reflector, clock, queries, edges: Mutex::default(), turns }
    }

    /// Frees what is kept for the next tree.
    pub(super) async fn drop_edges(&self) {
        *self.edges.lock().await = CachedEdges::default();
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
        let kept_until = done + (done - asked) * EDGES_COST_FACTOR;
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
        let turn = self.turns.clone().acquire_owned().await.context("the page is gone")?;
        let edges = self.edges_of(&shown).await?;
        let reflector = self.reflector.clone();
        let picked = tokio::task::spawn_blocking(move || {
            // The next tree waits for this one even if its client is gone.
            let _turn = turn;
            let expanded = FxHashSet::default();
            pick(TreePicker { view: &shown, edges: &edges, reflector: &reflector, room, repeats, expanded })
        });
        picked.await.context("failed to pick a tree")
    }
}
