//! Changed rules: verdicts of the old rule are unknown until the new rule has evaluated every object of the kind.

use readiness::Time;

use super::Engine;
use crate::evaluation::ParentEvaluation;
use crate::list_gate::ListGate;
use crate::types::{ChangeOrigin, KindId, PolicyId};

impl Engine {
    /// Withdraws the answers of this policy that rest on its rule for this kind, until the kind is listed: the rule has
    /// changed, and the new one cannot judge the kind.
    pub fn withdraw_changed_rule(&mut self, now: Time, policy: PolicyId, kind: KindId) {
        let before = self.policies.changed_rules().groups_of(policy);
        self.set_changed_rule_groups(now, policy, before | self.policies.groups_of_kind(policy, kind));
    }

    /// Clears the mark for a kind that was listed or is not installed: all its verdicts now come from the new rule.
    pub(super) fn clear_changed_rule(&mut self, now: Time, kind: KindId) {
        for policy in self.policies.changed_rules().changed_policies() {
            let before = self.policies.changed_rules().groups_of(policy);
            self.set_changed_rule_groups(now, policy, before & !self.policies.groups_of_kind(policy, kind));
        }
    }

    pub(super) fn set_changed_rule_groups(&mut self, now: Time, policy: PolicyId, groups: u64) {
        let moved = self.policies.set_changed_groups(policy, groups);
        if moved == 0 {
            return;
        }
        for child in self.graph.children_in(policy, moved) {
            self.reweigh_child(child);
        }
        self.update_list_gate(now, policy);
    }

    /// Handles a change while a list is awaited.
    pub(super) fn touch_unlisted(&mut self, id: crate::types::EvaluationId, now: Time, gate: ListGate) {
        let withdrawn = |r: &ParentEvaluation| r.observed.as_ref().is_some_and(|o| o.stage.is_withdrawn());
        let roll = self.graph.find_evaluation(id);
        if gate.only_takes_back()
            && roll.is_some_and(|r| !withdrawn(r) && self.policies.can_evaluate(r, gate))
        {
            self.enqueue_evaluation(id, now, ChangeOrigin::External);
        }
        self.propagate_doubt(id);
    }
}
