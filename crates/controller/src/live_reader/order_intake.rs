//! What becomes of an order: reads that wait, and comparisons where these ask less.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rollcall_core::LiveRead;
use timer::ResyncPace;
use tokio::time::Instant;
use watcher::reflector::Reflector;

use super::folding::{ReadFold, ReadFolder};
use super::place_comparisons::{ComparedPlace, PlaceComparisons};
use super::read_order::{ReadOrder, ResyncOrder};
use super::resync_queue::ResyncQueue;
use crate::kind_tasks::ResolvedKinds;

/// Takes orders in.
pub(super) struct OrderIntake {
    reflector: Arc<Reflector>,
    resolved: ResolvedKinds,
    /// Namespaces that are followed; empty for all.
    namespaces: Vec<String>,
    comparisons: Arc<PlaceComparisons>,
    folder: ReadFolder,
}

impl OrderIntake {
    /// Reads of a place go alone for so long after its comparison was not answered.
    pub(super) fn new(
        reflector: Arc<Reflector>,
        resolved: ResolvedKinds,
        namespaces: Vec<String>,
        comparisons: Arc<PlaceComparisons>,
        retry_after: Duration,
    ) -> OrderIntake {
        OrderIntake { reflector, resolved, namespaces, comparisons, folder: ReadFolder::new(retry_after) }
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
        let now = Instant::now();
        let Some((place, objects)) = self.comparable_place(&read) else { return queue.enqueue_read(read) };
        match self.folder.fold_read(&self.comparisons, (&place, objects), pace, now) {
            ReadFold::Covered => {}
            ReadFold::Compared => {
                self.folder.remove_idle();
                self.comparisons.remove_idle(now);
                queue.enqueue_comparison(place);
            }
            ReadFold::Alone => match read {
                LiveRead::All { kind, namespace } if !namespace.is_empty() => {
                    // Of what is there the metadata says whether anything of it has to be read.
                    queue.enqueue_comparison(ComparedPlace { kind, namespace: Some(namespace) });
                }
                read => queue.enqueue_read(read),
            },
        }
    }

    /// The place whose metadata says as much as a read, with the number of objects that a list of it has. `None` where
    /// nothing but the read says it: the pods of a workload are looked for with what it says itself.
    fn comparable_place(&self, read: &LiveRead) -> Option<(ComparedPlace, usize)> {
        let followed = self.resolved.get(&read.kind())?;
        let listed = followed.listed.load(Ordering::Relaxed);
        let interest = self.reflector.interest(read.kind())?;
        if listed == 0 || interest.judge.owns_pods() {
            return None;
        }
        let is_everywhere = self.namespaces.is_empty() || !followed.api.namespaced;
        let namespace = (!is_everywhere).then(|| read.namespace().to_owned());
        let place = ComparedPlace { kind: read.kind(), namespace };
        let scopes = if is_everywhere { 1 } else { self.namespaces.len() };
        // Of one namespace of several only a list tells how many there are.
        let seen = self.comparisons.listed_objects(&place).filter(|_| !is_everywhere);
        Some((place, seen.unwrap_or(listed / scopes)))
    }
}
