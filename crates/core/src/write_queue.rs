//! The queue of parents that have something to say. It holds parents, not patches: what is to be said is rendered when
//! the parent's turn comes.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{KindId, ObjectId};

/// Number of writes in a row that failed from which on a parent waits behind all others, whatever it says.
const FAILS_OFTEN: u32 = 5;

/// Which parents come before others. Among those of one rank the order of arrival counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WriteRank {
    /// It takes back a True that does not hold any more, and has not failed often.
    Withdrawal,
    /// Its last write did not fail.
    Answer,
    /// Its last write failed.
    Retry,
}

impl WriteRank {
    /// Rank of a parent whose last writes failed so often in a row; `withdraws` if it takes back a True.
    pub(super) fn of(withdraws: bool, failures: u32) -> WriteRank {
        match failures {
            ..FAILS_OFTEN if withdraws => WriteRank::Withdrawal,
            0 => WriteRank::Answer,
            _ => WriteRank::Retry,
        }
    }
}

/// Turn of a parent within its kind.
type QueueTurn = (WriteRank, u64);

/// Parent whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedParent {
    pub(super) parent: ObjectId,
    /// Its number in the order of arrival.
    pub(super) number: u64,
    pub(super) rank: WriteRank,
}

/// Parents that wait to be written, each at most once, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    kinds: BTreeMap<KindId, BTreeSet<(QueueTurn, ObjectId)>>,
    turns: BTreeMap<ObjectId, (KindId, QueueTurn)>,
    arrivals: u64,
}

impl WriteQueue {
    /// Adds a parent. One that waits already keeps its turn, or gets one before those of a lesser rank.
    pub(super) fn enqueue_parent(&mut self, parent: ObjectId, kind: KindId, rank: WriteRank) {
        let number = match self.turns.get(&parent) {
            Some((_, (held, _))) if *held <= rank => return,
            Some((_, (_, number))) => *number,
            None => {
                self.arrivals += 1;
                self.arrivals - 1
            }
        };
        self.remove_parent(parent);
        let turn = (rank, number);
        self.turns.insert(parent, (kind, turn));
        self.kinds.entry(kind).or_default().insert((turn, parent));
    }

    /// Takes the parent whose turn it is among those that may be written: `may_write` is asked with their kind and rank.
    pub(super) fn take_next(
        &mut self,
        may_write: impl Fn(KindId, WriteRank) -> bool,
    ) -> Option<QueuedParent> {
        let firsts = self.kinds.iter().filter_map(|(kind, waiting)| Some((*kind, *waiting.first()?)));
        let open = firsts.filter(|(kind, ((rank, _), _))| may_write(*kind, *rank));
        let ((rank, number), parent) = open.map(|(_, first)| first).min()?;
        self.remove_parent(parent);
        Some(QueuedParent { parent, number, rank })
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

    /// Kinds of which parents wait, and the rank of the first of each.
    pub(super) fn waiting_kinds(&self) -> impl Iterator<Item = (KindId, WriteRank)> {
        self.kinds.iter().filter_map(|(kind, waiting)| Some((*kind, waiting.first()?.0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::WriteRank::{Answer, Retry, Withdrawal};
    use super::*;

    const FIRST: KindId = KindId(1);
    const OTHER: KindId = KindId(2);

    fn queue_of(parents: &[(u32, KindId, WriteRank)]) -> WriteQueue {
        let mut queue = WriteQueue::default();
        for (parent, kind, rank) in parents {
            queue.enqueue_parent(ObjectId(*parent), *kind, *rank);
        }
        queue
    }

    fn drain(queue: &mut WriteQueue, may_write: impl Fn(KindId, WriteRank) -> bool) -> Vec<u32> {
        std::iter::from_fn(|| queue.take_next(&may_write)).map(|queued| queued.parent.0).collect()
    }

    #[test]
    fn parents_are_written_once_and_in_order_and_those_that_failed_after_the_others() {
        let parents = [
            (9, FIRST, Answer),
            (8, FIRST, Retry),
            (3, OTHER, Answer),
            (9, FIRST, Retry),
            (1, FIRST, Answer),
            (7, OTHER, Withdrawal),
        ];
        assert_eq!(drain(&mut queue_of(&parents), |_, _| true), [7, 9, 3, 1, 8]);
        let held = drain(&mut queue_of(&parents), |_, rank| rank != Retry);
        assert_eq!(held, [7, 9, 3, 1], "they hold up nobody");
    }

    #[test]
    fn a_parent_that_waits_comes_forward_when_it_has_a_true_to_take_back() {
        let parents = [(1, FIRST, Answer), (2, FIRST, Withdrawal), (3, FIRST, Retry), (4, FIRST, Answer)];
        let mut queue = queue_of(&parents);
        queue.enqueue_parent(ObjectId(1), FIRST, Withdrawal);
        queue.enqueue_parent(ObjectId(3), FIRST, Answer);
        queue.enqueue_parent(ObjectId(2), FIRST, Answer);
        assert_eq!((queue.len(), drain(&mut queue, |_, _| true)), (4, vec![1, 2, 3, 4]));
    }

    #[test]
    fn a_kind_that_may_not_be_written_holds_up_no_other() {
        let mut queue = queue_of(&[(1, FIRST, Answer), (2, OTHER, Answer), (3, FIRST, Answer)]);
        assert_eq!(drain(&mut queue, |kind, _| kind == OTHER), [2]);
        assert_eq!((queue.len(), queue.waiting_kinds().collect::<Vec<_>>()), (2, vec![(FIRST, Answer)]));
        queue.remove_parent(ObjectId(1));
        queue.remove_parent(ObjectId(7));
        assert_eq!(drain(&mut queue, |_, _| true), [3]);
        assert_eq!((queue.len(), queue.kinds.len()), (0, 0), "nothing is left behind");
    }
}
