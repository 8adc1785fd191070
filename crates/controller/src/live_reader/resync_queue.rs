//! Requests of the resync that wait: each object waits once, however often it changes, and so does each workload.

use std::collections::hash_map::Entry;

use aggregator::ObjectId;
use rollcall_core::pod_causes::WorkloadLookup;
use rollcall_core::{LiveRead, UnreadyWorkload};
use rustc_hash::{FxHashMap, FxHashSet};
use timer::Seed;
use tokio::time::Instant;
use watcher::reflector::Reflector;

use super::place_comparisons::{ComparedPlace, PlaceContent};
use super::read_queue::{ReadLane, ReadQueue};

/// One request of the resync.
#[derive(Debug)]
pub(super) enum ResyncRequest {
    /// Objects of parents that are not ready.
    Read(LiveRead),
    /// What a place has, instead of many objects there.
    Compare(ComparedPlace),
    /// What is below a workload that is not ready.
    Explain(Box<UnreadyWorkload>),
}

/// What a request is about.
#[derive(Debug)]
enum ResyncKey {
    Read(LiveRead),
    Compare(ComparedPlace),
    /// By the id of the workload.
    Explain(ObjectId),
}

/// Requests of the resync that wait.
///
/// **Invariant:** of what waits, no two are about the same.
#[derive(Debug)]
pub(super) struct ResyncQueue {
    order: ReadQueue<ResyncKey>,
    reads: FxHashSet<LiveRead>,
    comparisons: FxHashSet<ComparedPlace>,
    workloads: FxHashMap<ObjectId, Box<UnreadyWorkload>>,
}

impl ResyncQueue {
    pub(super) fn new(seed: Seed) -> ResyncQueue {
        ResyncQueue {
            order: ReadQueue::new(seed),
            reads: FxHashSet::default(),
            comparisons: FxHashSet::default(),
            workloads: FxHashMap::default(),
        }
    }

    /// Number of requests that wait.
    pub(super) fn len(&self) -> usize {
        self.reads.len() + self.comparisons.len() + self.workloads.len()
    }

    /// Queues a read, unless it waits already.
    pub(super) fn enqueue_read(&mut self, read: LiveRead) {
        if self.reads.insert(read.clone()) {
            self.order.enqueue(ReadLane::Kind(read.kind()), ResyncKey::Read(read));
        }
    }

    /// Queues a comparison, unless it waits already.
    pub(super) fn enqueue_comparison(&mut self, place: ComparedPlace) {
        if self.comparisons.insert(place.clone()) {
            let lane = match place.content {
                PlaceContent::Metadata(kind) | PlaceContent::Workloads(kind) => ReadLane::Kind(kind),
                PlaceContent::Pods => ReadLane::Reasons,
            };
            self.order.enqueue(lane, ResyncKey::Compare(place));
        }
    }

    /// Queues the lookup for a workload, or puts it in the place of the one that waits. Where its Events are still to be read
    /// after its pods, that comes first.
    pub(super) fn enqueue_workload(&mut self, workload: UnreadyWorkload) {
        let owner = workload.owner;
        match self.workloads.entry(owner) {
            Entry::Vacant(place) => {
                place.insert(Box::new(workload));
                self.order.enqueue(ReadLane::Reasons, ResyncKey::Explain(owner));
            }
            Entry::Occupied(mut waiting) => {
                let awaits_events = matches!(waiting.get().lookup, WorkloadLookup::Events(..));
                // The id may belong to another workload by now.
                if !awaits_events || waiting.get().uid != workload.uid {
                    **waiting.get_mut() = workload;
                }
            }
        }
    }

    /// Takes the next request, if there is room for one. Reads of objects that are known to be gone by now are dropped.
    pub(super) fn take_next(
        &mut self,
        now: Instant,
        reflector: &Reflector,
    ) -> Option<(ReadLane, ResyncRequest)> {
        while let Some((lane, key)) = self.order.take_next(now) {
            let request = match key {
                ResyncKey::Read(read) => {
                    self.reads.remove(&read);
                    (!read.is_obsolete(reflector)).then_some(ResyncRequest::Read(read))
                }
                ResyncKey::Compare(place) => {
                    self.comparisons.remove(&place);
                    Some(ResyncRequest::Compare(place))
                }
                ResyncKey::Explain(owner) => self.workloads.remove(&owner).map(ResyncRequest::Explain),
            };
            if let Some(request) = request {
                return Some((lane, request));
            }
            self.order.cancel_read(lane);
        }
        None
    }

    /// Whether a request could be taken now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.order.is_ready(now)
    }

    /// A request ended; `answered` if the server said something useful.
    pub(super) fn settle_request(&mut self, lane: ReadLane, answered: bool, now: Instant) {
        self.order.settle_read(lane, answered, now);
    }

    /// Earliest time at which a lane that did not answer is read again; `None` if none waits for that alone.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.order.next_retry()
    }
}
