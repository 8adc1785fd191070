//! Changed rules: verdicts of the old rule are unknown until the new rule has evaluated every object of the kind.

use readiness::Time;
use readiness::rollup::ParentReason;

use super::Engine;
use crate::evaluation::ParentEvaluation;
use crate::graph::group_bit;
use crate::list_gate::ListGate;
use crate::types::{ChangeOrigin, EnginePolicy, GroupRole, KindId, PolicyId};

impl Engine {
    /// Withdraws the answers of this policy that rest on its rule for this kind, until the kind is listed: the rule has
    /// changed, and the new one cannot judge the kind.
    pub fn withdraw_changed_rule(&mut self, now: Time, policy: PolicyId, kind: KindId) {
        let before = self.graph.changed_rules.groups_of(policy);
        self.set_changed_rule_groups(now, policy, before | self.groups_of_kind(policy, kind));
    }

    /// Returns the groups of this policy that judge this kind, as a bit mask.
    fn groups_of_kind(&self, policy: PolicyId, kind: KindId) -> u64 {
        let groups = self.find_policy(policy).into_iter().flat_map(EnginePolicy::indexed_groups);
        groups.filter(|(_, g)| g.kind == kind).fold(0, |bits, (at, _)| bits | group_bit(at))
    }

    /// Clears the mark for a kind that was listed or is not installed: all its verdicts now come from the new rule.
    pub(super) fn clear_changed_rule(&mut self, now: Time, kind: KindId) {
        for policy in self.graph.changed_rules.changed_policies() {
            let before = self.graph.changed_rules.groups_of(policy);
            self.set_changed_rule_groups(now, policy, before & !self.groups_of_kind(policy, kind));
        }
    }

    pub(super) fn set_changed_rule_groups(&mut self, now: Time, policy: PolicyId, groups: u64) {
        let moved = self.graph.changed_rules.groups_of(policy) ^ groups;
        if moved == 0 {
            return;
        }
        self.graph.changed_rules.set_groups(policy, groups);
        for child in self.graph.children_in(policy, moved) {
            self.reweigh_child(child);
        }
        self.update_list_gate(now, policy);
    }

    /// Returns `true` if the state of the lists allows an evaluation.
    pub(super) fn can_evaluate(&self, roll: &ParentEvaluation, gate: ListGate) -> bool {
        let Some(observed) = &roll.observed else { return false };
        match gate {
            ListGate::Closed => observed.deleting,
            ListGate::RuleChanged => observed.deleting || self.rests_on_changed_rule(roll),
            ListGate::Refused => observed.stage.answer().is_some_and(|answer| {
                matches!(answer.reason, ParentReason::AllChildrenReady | ParentReason::PolicyRefused)
            }),
            ListGate::Open | ListGate::Blind(_) => true,
        }
    }

    /// Returns `true` if what stands rests on a rule that has changed. Where a predecessor of the policy said it, nobody
    /// knows on which children it rests.
    fn rests_on_changed_rule(&self, roll: &ParentEvaluation) -> bool {
        let groups = self.find_policy(roll.policy).into_iter().flat_map(EnginePolicy::indexed_groups);
        let mut critical = groups.filter(|(_, g)| g.role == GroupRole::Critical);
        let is_own = roll.observed.as_ref().is_some_and(|observed| observed.stage.is_own());
        critical.any(|(at, _)| {
            self.graph.changed_rules.has_group(roll.policy, at)
                && (!is_own
                    || roll.children.find_group_tally(at).is_some_and(|tally| tally.total_count() > 0))
        })
    }

    /// Handles a change while a list is awaited.
    pub(super) fn touch_unlisted(&mut self, id: crate::types::EvaluationId, now: Time, gate: ListGate) {
        let withdrawn = |r: &ParentEvaluation| r.observed.as_ref().is_some_and(|o| o.stage.is_withdrawn());
        let roll = self.graph.find_evaluation(id);
        if gate.only_takes_back() && roll.is_some_and(|r| !withdrawn(r) && self.can_evaluate(r, gate)) {
            self.enqueue_evaluation(id, now, ChangeOrigin::External);
        }
        self.propagate_doubt(id);
    }
}
