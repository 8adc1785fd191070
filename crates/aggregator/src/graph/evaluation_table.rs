//! Evaluations indexed by small integers.

use super::marked_set::MarkedSet;
use super::policy_sums::{PolicySumTable, PolicySums};
use crate::evaluation::{ParentEvaluation, StageEvent};
use crate::ids::{EvaluationId, ObjectId, PolicyId};

/// All evaluations. The id of one that was dropped is given to a later one.
///
/// **Invariant:** the sums hold every evaluation that is not marked as changed. Whoever may change one has it marked first,
/// so that no change is ever missed.
#[derive(Clone, Debug, Default)]
pub(super) struct EvaluationTable {
    slots: Vec<Option<Box<ParentEvaluation>>>,
    free: Vec<EvaluationId>,
    /// Number of unsettled evaluations.
    unsettled_count: usize,
    sums: PolicySumTable,
    /// Evaluations that are marked as changed, and were taken out of the sums.
    changed: MarkedSet,
    /// Parents of evaluations that were dropped.
    dropped: Vec<ObjectId>,
}

impl EvaluationTable {
    pub(super) fn get(&self, id: EvaluationId) -> Option<&ParentEvaluation> {
        self.slots.get(id.index())?.as_deref()
    }

    /// Returns an evaluation that may change.
    #[inline]
    pub(super) fn find_mut(&mut self, id: EvaluationId) -> Option<&mut ParentEvaluation> {
        let held = self.slots.get_mut(id.index())?.as_deref_mut()?;
        if self.changed.insert(id.0) {
            self.sums.remove_evaluation(held);
        }
        Some(held)
    }

    /// Adds the evaluations that may have changed to the sums again. Returns their parents with `parents`: each once, in order.
    pub(super) fn settle_changes(&mut self, mut parents: Vec<ObjectId>) -> Vec<ObjectId> {
        parents.append(&mut self.dropped);
        for id in self.changed.take_all().into_iter().map(EvaluationId) {
            if let Some(held) = self.slots.get(id.index()).and_then(Option::as_deref) {
                self.sums.add_evaluation(held);
                parents.push(held.parent);
            }
        }
        parents.sort_unstable();
        parents.dedup();
        parents
    }

    /// What the evaluations of a policy amounted to when changes were last settled, without those that may have changed since.
    pub(super) fn policy_sums(&self, policy: PolicyId) -> Option<&PolicySums> {
        self.sums.find(policy)
    }

    /// Sums all evaluations that may not have changed anew, and puts right what differs. Returns the policies of which something
    /// did.
    pub(super) fn correct_sums(&mut self) -> Vec<PolicyId> {
        let mut counted = PolicySumTable::default();
        let settled = self.iter().filter(|(id, _)| !self.changed.contains(id.0));
        settled.for_each(|(_, held)| counted.add_evaluation(held));
        self.sums.correct(counted)
    }

    #[cfg(test)]
    pub(super) fn spoil_sums(&mut self, policy: PolicyId) {
        self.sums.spoil(policy);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EvaluationId, &ParentEvaluation)> {
        (0..u32::MAX).zip(&self.slots).filter_map(|(at, held)| Some((EvaluationId(at), held.as_deref()?)))
    }

    /// Number of slots, empty ones included.
    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Returns the id of the evaluation in a slot.
    pub(super) fn id_at(&self, slot: usize) -> Option<EvaluationId> {
        self.slots.get(slot)?.as_ref()?;
        u32::try_from(slot).ok().map(EvaluationId)
    }

    pub(super) fn insert(&mut self, evaluation: ParentEvaluation) -> EvaluationId {
        let evaluation = Some(Box::new(evaluation));
        let id = if let Some(id) = self.free.pop() {
            self.slots[id.index()] = evaluation;
            id
        } else {
            let next = u32::try_from(self.slots.len());
            self.slots.push(evaluation);
            EvaluationId(next.expect("invariant: fewer than 2^32 evaluations fit into memory"))
        };
        // That of an earlier one with this id may still be there.
        self.changed.insert(id.0);
        id
    }

    pub(super) fn remove(&mut self, id: EvaluationId) {
        let Some(held) = self.slots[id.index()].take() else { return };
        if !self.changed.contains(id.0) {
            self.sums.remove_evaluation(&held);
        }
        self.dropped.push(held.parent);
        self.free.push(id);
    }

    /// Moves an evaluation to its next stage, where its parent is observed.
    pub(super) fn advance_stage(&mut self, id: EvaluationId, event: StageEvent) {
        let observed = self.find_mut(id).and_then(|evaluation| evaluation.observed.as_mut());
        if let Some(observed) = observed {
            let before = observed.advance_stage(event);
            let is_unsettled = observed.stage.is_unsettled();
            self.count_unsettled(before.is_unsettled(), is_unsettled);
        }
    }

    /// Records whether an evaluation was unsettled before a change and is after it.
    pub(super) fn count_unsettled(&mut self, before: bool, after: bool) {
        self.unsettled_count += usize::from(after);
        self.unsettled_count -= usize::from(before);
    }

    pub(super) fn unsettled_count(&self) -> usize {
        self.unsettled_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_evaluation_that_was_dropped_is_given_to_a_later_one() {
        let mut table = EvaluationTable::default();
        let mut insert = |parent| table.insert(ParentEvaluation::new(ObjectId(parent), PolicyId(1)));
        let (first, second) = (insert(1), insert(2));
        assert_ne!(first, second);
        table.remove(first);
        assert!(table.get(first).is_none() && table.find_mut(first).is_none());
        assert_eq!(table.iter().map(|(id, _)| id).collect::<Vec<_>>(), [second]);
        assert_eq!(table.insert(ParentEvaluation::new(ObjectId(3), PolicyId(1))), first);
        assert_eq!(table.get(first).map(|evaluation| evaluation.parent), Some(ObjectId(3)));
    }

    #[test]
    fn what_becomes_unsettled_is_counted_until_it_is_settled() {
        let mut table = EvaluationTable::default();
        let steps =
            [(false, true), (false, false), (false, true), (true, true), (true, false), (true, false)];
        let counts = steps.map(|(before, after)| {
            table.count_unsettled(before, after);
            table.unsettled_count()
        });
        assert_eq!(counts, [1, 1, 2, 2, 1, 0]);
    }
}
