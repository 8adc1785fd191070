//! What the evaluations of each policy amount to, kept up with every change: nobody has to walk all of them for a number.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use readiness::rollup::{LevelTally, ParentReason};

use crate::evaluation::ParentEvaluation;
use crate::ids::PolicyId;

/// What the evaluations of one policy that have an answer amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySums {
    /// Number of parents.
    pub parents: u64,
    /// Parents by the reason of their answer; a reason that none has is absent.
    pub reasons: BTreeMap<ParentReason, u64>,
    /// Tallies of their children by group; a group without children is absent.
    pub groups: BTreeMap<u8, LevelTally>,
}

impl PolicySums {
    fn add_evaluation(&mut self, held: &ParentEvaluation) {
        let Some(answer) = held.answer() else { return };
        self.parents += 1;
        *self.reasons.entry(answer.reason).or_default() += 1;
        for (group, tally) in held.children.groups.iter().filter(|(_, tally)| *tally != LevelTally::default())
        {
            let sum = self.groups.entry(*group).or_default();
            *sum = sum.sum_with(tally);
        }
    }

    /// Takes an evaluation out, which is as it was when it was added.
    fn remove_evaluation(&mut self, held: &ParentEvaluation) {
        let Some(answer) = held.answer() else { return };
        self.parents -= 1;
        if let Entry::Occupied(mut parents) = self.reasons.entry(answer.reason) {
            *parents.get_mut() -= 1;
            if *parents.get() == 0 {
                parents.remove();
            }
        }
        for (group, tally) in &held.children.groups {
            if let Entry::Occupied(mut sum) = self.groups.entry(*group) {
                *sum.get_mut() = sum.get().sum_without(tally);
                if *sum.get() == LevelTally::default() {
                    sum.remove();
                }
            }
        }
    }
}

/// The sums of all policies.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicySumTable {
    by_policy: BTreeMap<PolicyId, PolicySums>,
}

impl PolicySumTable {
    pub(super) fn find(&self, policy: PolicyId) -> Option<&PolicySums> {
        self.by_policy.get(&policy)
    }

    /// Holds another number of parents than there are.
    #[cfg(test)]
    pub(super) fn spoil(&mut self, policy: PolicyId) {
        self.by_policy.entry(policy).or_default().parents += 1;
    }

    /// Takes what was counted anew, and returns the policies that it differs for.
    pub(super) fn correct(&mut self, counted: PolicySumTable) -> Vec<PolicyId> {
        let held = std::mem::replace(self, counted).by_policy;
        let policies: BTreeSet<_> = held.keys().chain(self.by_policy.keys()).copied().collect();
        policies.into_iter().filter(|policy| held.get(policy) != self.by_policy.get(policy)).collect()
    }

    pub(super) fn add_evaluation(&mut self, held: &ParentEvaluation) {
        if held.answer().is_some() {
            self.by_policy.entry(held.policy).or_default().add_evaluation(held);
        }
    }

    /// Takes an evaluation out, which is as it was when it was added.
    pub(super) fn remove_evaluation(&mut self, held: &ParentEvaluation) {
        let Entry::Occupied(mut sums) = self.by_policy.entry(held.policy) else { return };
        sums.get_mut().remove_evaluation(held);
        if sums.get().parents == 0 {
            sums.remove();
        }
    }
}

/// Sums these evaluations anew.
pub(crate) fn sum_evaluations<'e>(
    all: impl Iterator<Item = &'e ParentEvaluation>,
) -> BTreeMap<PolicyId, PolicySums> {
    let mut table = PolicySumTable::default();
    all.for_each(|held| table.add_evaluation(held));
    table.by_policy
}
