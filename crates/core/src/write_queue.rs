//! The queue of parents that have something to say. It holds parents, not patches: what is to be said is rendered when
//! the parent's turn comes.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{KindId, ObjectId};

/// Turn of a parent within its kind: those whose last write failed come after the others, then the order of arrival
/// counts.
type QueueTurn = (bool, u64);

/// Parents that wait to be written, each at most once, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    kinds: BTreeMap<KindId, BTreeSet<(QueueTurn, ObjectId)>>,
    turns: BTreeMap<ObjectId, (KindId, QueueTurn)>,
    arrivals: u64,
}

impl WriteQueue {
    /// Adds a parent. One that waits already keeps its turn.
    pub(super) fn enqueue_parent(&mut self, parent: ObjectId, kind: KindId, failing: bool) {
        if self.turns.contains_key(&parent) {
            return;
        }
        let turn = (failing, self.arrivals);
        self.arrivals += 1;
        self.turns.insert(parent, (kind, turn));
        self.kinds.entry(kind).or_default().insert((turn, parent));
    }

    /// Takes the parent whose turn it is among the kinds that may be written, with its number in the order of arrival.
    pub(super) fn take_next(&mut self, may_write: impl Fn(KindId) -> bool) -> Option<(ObjectId, u64)> {
        let open = self.kinds.iter().filter(|(kind, _)| may_write(**kind));
        let (turn, parent) = open.filter_map(|(_, waiting)| waiting.first().copied()).min()?;
        self.remove_parent(parent);
        Some((parent, turn.1))
    }

    /// Removes a parent that is gone.
    pub(super) fn remove_parent(&mut self, parent: ObjectId) {
        let Some((kind, turn)) = self.turns.remove(&parent) else { return };
        if let Some(waiting) = self.kinds.get_mut(&kind) {
            waiting.remove(&(turn, parent));
            if waiting.is_empty() {
                self.kinds.remove(&kind);
            }
        }
    }

    /// Number that the next parent gets.
    pub(super) fn next_number(&self) -> u64 {
        self.arrivals
    }

    /// Number of waiting parents.
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// Kinds of which parents wait.
    pub(super) fn waiting_kinds(&self) -> impl Iterator<Item = KindId> {
        self.kinds.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: KindId = KindId(1);
    const OTHER: KindId = KindId(2);

    fn queue_of(parents: &[(u32, KindId, bool)]) -> WriteQueue {
        let mut queue = WriteQueue::default();
        for (parent, kind, failing) in parents {
            queue.enqueue_parent(ObjectId(*parent), *kind, *failing);
        }
        queue
    }

    fn drain(queue: &mut WriteQueue, may_write: impl Fn(KindId) -> bool) -> Vec<u32> {
        std::iter::from_fn(|| queue.take_next(&may_write)).map(|(parent, _)| parent.0).collect()
    }

    #[test]
    fn parents_are_written_once_and_in_order_and_those_that_failed_after_the_others() {
        let parents =
            [(9, FIRST, false), (8, FIRST, true), (3, OTHER, false), (9, FIRST, true), (1, FIRST, false)];
        assert_eq!(drain(&mut queue_of(&parents), |_| true), [9, 3, 1, 8]);
    }

    #[test]
    fn a_kind_that_may_not_be_written_holds_up_no_other() {
        let mut queue = queue_of(&[(1, FIRST, false), (2, OTHER, false), (3, FIRST, false)]);
        assert_eq!(drain(&mut queue, |kind| kind == OTHER), [2]);
        assert_eq!((queue.len(), queue.waiting_kinds().collect::<Vec<_>>()), (2, vec![FIRST]));
        queue.remove_parent(ObjectId(1));
        queue.remove_parent(ObjectId(7));
        assert_eq!(drain(&mut queue, |_| true), [3]);
        assert_eq!((queue.len(), queue.kinds.len()), (0, 0), "nothing is left behind");
    }
}
