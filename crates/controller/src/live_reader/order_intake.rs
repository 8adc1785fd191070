//! What becomes of an order: reads that wait, and comparisons where these ask less.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aggregator::{KindId, ObjectId};
use rollcall_core::pod_causes::is_explained_by_pods;
use rollcall_core::{LiveRead, live_reads};
use timer::ResyncPace;
use tokio::time::Instant;
use watcher::reflector::Reflector;

use super::folding::{ReadFold, ReadFolder};
use super::place_comparisons::{ComparedPlace, PlaceComparisons, PlaceContent};
use super::read_order::{ReadOrder, ResyncOrder};
use super::resync_queue::ResyncQueue;
use super::workload_explanations::WorkloadExplanations;
use crate::kind_tasks::ResolvedKinds;

/// Maximum number of workloads of one list for which reasons are looked up.
pub(super) const MAX_EXPLAINED_WORKLOADS: usize = 10;

/// Takes orders in.
pub(super) struct OrderIntake {
    reflector: Arc<Reflector>,
    resolved: ResolvedKinds,
    /// Namespaces that are followed; empty for all.
    namespaces: Vec<String>,
    comparisons: Arc<PlaceComparisons>,
    explanations: Arc<WorkloadExplanations>,
    folder: ReadFolder,
}

impl OrderIntake {
    /// Reads of a place go alone for so long after its comparison was not answered.
    pub(super) fn new(
        reflector: Arc<Reflector>,
        resolved: ResolvedKinds,
        namespaces: Vec<String>,
        (comparisons, explanations): (Arc<PlaceComparisons>, Arc<WorkloadExplanations>),
        retry_after: Duration,
    ) -> OrderIntake {
        let folder = ReadFolder::new(retry_after);
        OrderIntake { reflector, resolved, namespaces, comparisons, explanations, folder }
    }

    /// Queues what an order asks for.
    pub(super) fn enqueue_order(&mut self, order: ReadOrder, queue: &mut ResyncQueue) {
        match order {
            ReadOrder::Resync(ResyncOrder { reads, pace }) => {
                self.folder.begin_order(pace, Instant::now());
                for read in reads {
                    self.enqueue_resync(read, pace, queue);
                }
            }
            ReadOrder::Reevaluation(reads) => {
                for read in reads {
                    queue.enqueue_read(read);
                }
            }
        }
    }

    /// Queues a read of a resync, or the comparison of its place where many are ordered there.
    fn enqueue_resync(&mut self, read: LiveRead, pace: ResyncPace, queue: &mut ResyncQueue) {
        let Some((place, objects)) = self.comparable_place(&read) else { return queue.enqueue_read(read) };
        let owns_pods =
            self.reflector.interest(read.kind()).is_some_and(|interest| interest.judge.owns_pods());
        match (self.fold_read((&place, objects), pace, queue), read) {
            (ReadFold::Covered | ReadFold::Compared, read) => {
                // Metadata says of a workload that it is as it was, and nothing of its pods.
                for workload in self.unready_workloads(&read).filter(|_| owns_pods) {
                    self.enqueue_explanation(workload, (&place, objects), pace, queue);
                }
            }
            (ReadFold::Alone, LiveRead::All { kind, namespace }) if !namespace.is_empty() && !owns_pods => {
                // Of what is there the metadata says whether anything of it has to be read.
                let content = PlaceContent::Metadata(kind);
                queue.enqueue_comparison(ComparedPlace { content, namespace: Some(namespace) });
            }
            (ReadFold::Alone, read) => queue.enqueue_read(read),
        }
    }

    /// Decides what becomes of a read, and queues the comparison that takes its place.
    fn fold_read(
        &mut self,
        (place, objects): (&ComparedPlace, usize),
        pace: ResyncPace,
        queue: &mut ResyncQueue,
    ) -> ReadFold {
        let now = Instant::now();
        let fold = self.folder.fold_read(&self.comparisons, (place, objects), pace, now);
        if fold == ReadFold::Compared {
            self.folder.remove_idle();
            self.comparisons.remove_idle(now);
            // What follows a list is ordered with it.
            place.pods_of_workloads().iter().for_each(|pods| self.comparisons.cover(pods, now));
            queue.enqueue_comparison(place.clone());
        }
        fold
    }

    /// The place whose metadata says as much as a read, but for pods, with the number of objects that a list of it has. `None`
    /// where nothing but the read says it.
    fn comparable_place(&self, read: &LiveRead) -> Option<(ComparedPlace, usize)> {
        let followed = self.resolved.get(&read.kind())?;
        let listed = followed.listed.load(Ordering::Relaxed);
        if listed == 0 || self.reflector.interest(read.kind()).is_none() {
            return None;
        }
        let is_everywhere = self.namespaces.is_empty() || !followed.api.namespaced;
        let namespace = (!is_everywhere).then(|| read.namespace().to_owned());
        let place = ComparedPlace { content: PlaceContent::Metadata(read.kind()), namespace };
        let scopes = if is_everywhere { 1 } else { self.namespaces.len() };
        // Of one namespace of several only a list tells how many there are.
        let seen = self.comparisons.listed_objects(&place).filter(|_| !is_everywhere);
        Some((place, seen.unwrap_or(listed / scopes)))
    }

    /// The workloads of a read that pods may explain; of a list the first few, which are those named in a message.
    fn unready_workloads(&self, read: &LiveRead) -> impl Iterator<Item = HeldWorkload> + use<> {
        let unready = |id: &ObjectId| self.reflector.read_row(*id, is_explained_by_pods) == Some(true);
        let workloads = match read {
            LiveRead::One { kind, expected, .. } => expected
                .filter(unready)
                .map_or_else(Vec::new, |id| vec![HeldWorkload { id, kind: *kind, read: read.clone() }]),
            LiveRead::All { kind, namespace } => {
                let scope = Some(namespace.as_str()).filter(|namespace| !namespace.is_empty());
                let mut held = live_reads::held_objects(&self.reflector, *kind, scope);
                held.retain(|held| unready(&held.known.id()));
                held.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
                let first = held.into_iter().take(MAX_EXPLAINED_WORKLOADS);
                first
                    .map(|held| HeldWorkload { id: held.known.id(), kind: *kind, read: held.into_read() })
                    .collect()
            }
        };
        workloads.into_iter()
    }

    /// Queues what tells whether a workload is to be explained again. Where its explanation holds but for its pods, these are
    /// looked at; else it is read with them.
    fn enqueue_explanation(
        &mut self,
        HeldWorkload { id, kind, read }: HeldWorkload,
        (place, objects): (&ComparedPlace, usize),
        pace: ResyncPace,
        queue: &mut ResyncQueue,
    ) {
        let of = |content| ComparedPlace { content, namespace: place.namespace.clone() };
        if let Some(explained) = self.explanations.find_current(&self.reflector, id, Instant::now()) {
            let pods = of(PlaceContent::Pods);
            let listed = self.comparisons.listed_objects(&pods).unwrap_or_default();
            if self.fold_read((&pods, listed), pace, queue) == ReadFold::Alone {
                queue.enqueue_workload(explained.pod_lookup());
            }
            return;
        }
        let listed = of(PlaceContent::Workloads(kind));
        match self.fold_read((&listed, objects), pace, queue) {
            ReadFold::Compared => {}
            ReadFold::Covered if self.comparisons.is_awaited(&listed) => {}
            // What that list has brought does not hold any more.
            ReadFold::Covered | ReadFold::Alone => queue.enqueue_read(read),
        }
    }
}

/// A workload that is not ready, and its read.
struct HeldWorkload {
    id: ObjectId,
    kind: KindId,
    read: LiveRead,
}
