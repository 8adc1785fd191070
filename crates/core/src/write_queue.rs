//! The queue of parents that have something to say. It holds parents, not patches: what is to be said is rendered when
//! the parent's turn comes.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{KindId, ObjectId};

/// Turn of a parent within its kind: those whose last write failed come after the others, then the order of arrival
/// counts.
type QueueTurn = (bool, u64);

/// Parent whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedParent {
    pub(super) parent: ObjectId,
    /// Its number in the order of arrival.
    pub(super) number: u64,
    /// Its last write failed.
    pub(super) failing: bool,
}

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

    /// Takes the parent whose turn it is among those that may be written: `may_write` is asked with their kind, and whether
    /// their last write failed.
    pub(super) fn take_next(&mut self, may_write: impl Fn(KindId, bool) -> bool) -> Option<QueuedParent> {
        let firsts = self.kinds.iter().filter_map(|(kind, waiting)| Some((*kind, *waiting.first()?)));
        let open = firsts.filter(|(kind, ((failing, _), _))| may_write(*kind, *failing));
        let ((failing, number), parent) = open.map(|(_, first)| first).min()?;
        self.remove_parent(parent);
        Some(QueuedParent { parent, number, failing })
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

    /// Kinds of which parents wait, and whether the last write to each of those failed.
    pub(super) fn waiting_kinds(&self) -> impl Iterator<Item = (KindId, bool)> {
        self.kinds.iter().filter_map(|(kind, waiting)| Some((*kind, waiting.first()?.0.0)))
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

    fn drain(queue: &mut WriteQueue, may_write: impl Fn(KindId, bool) -> bool) -> Vec<u32> {
        std::iter::from_fn(|| queue.take_next(&may_write)).map(|queued| queued.parent.0).collect()
    }

    #[test]
    fn parents_are_written_once_and_in_order_and_those_that_failed_after_the_others() {
        let parents =
            [(9, FIRST, false), (8, FIRST, true), (3, OTHER, false), (9, FIRST, true), (1, FIRST, false)];
        assert_eq!(drain(&mut queue_of(&parents), |_, _| true), [9, 3, 1, 8]);
        assert_eq!(drain(&mut queue_of(&parents), |_, failing| !failing), [9, 3, 1], "they hold up nobody");
    }

    #[test]
    fn a_kind_that_may_not_be_written_holds_up_no_other() {
        let mut queue = queue_of(&[(1, FIRST, false), (2, OTHER, false), (3, FIRST, false)]);
        assert_eq!(drain(&mut queue, |kind, _| kind == OTHER), [2]);
        assert_eq!((queue.len(), queue.waiting_kinds().collect::<Vec<_>>()), (2, vec![(FIRST, false)]));
        queue.remove_parent(ObjectId(1));
        queue.remove_parent(ObjectId(7));
        assert_eq!(drain(&mut queue, |_, _| true), [3]);
        assert_eq!((queue.len(), queue.kinds.len()), (0, 0), "nothing is left behind");
    }
}
