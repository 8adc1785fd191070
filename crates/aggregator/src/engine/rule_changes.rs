//! Changed rules: verdicts of the old rule are unknown until the new rule has evaluated every object of the kind.

use readiness::rollup::{LevelTally, ParentReason};
use readiness::{Level, Time};

use super::{ChangeOrigin, Engine};
use crate::evaluate::ListGate;
use crate::evaluation::ParentEvaluation;
use crate::graph::group_bit;
use crate::types::{AnswerView, EnginePolicy, GroupRole, KindId, ObjectId, PolicyAnswer, PolicyId};

impl Engine {
    /// Marks the rule of these groups (a bit mask) as changed. Their kind is about to be relisted; until that list is
    /// complete, the verdicts of its objects are unknown.
    pub fn mark_rule_changed(&mut self, now: Time, policy: PolicyId, groups: u64) {
        if self.find_policy(policy).is_none() {
            return;
        }
        let before = self.graph.changed_rules.groups_of(policy);
        self.set_changed_rule_groups(now, policy, before | groups);
    }

    /// Returns `true` if a rule of this policy has changed and its objects are not evaluated yet.
    pub fn has_changed_rule(&self, policy: PolicyId) -> bool {
        self.graph.changed_rules.groups_of(policy) != 0
    }

    /// Clears the mark for a kind that was listed or is not installed: all its verdicts now come from the new rule.
    pub(super) fn clear_changed_rule(&mut self, now: Time, kind: KindId) {
        for policy in self.graph.changed_rules.changed_policies() {
            let groups = self.find_policy(policy).into_iter().flat_map(EnginePolicy::indexed_groups);
            let listed = groups.filter(|(_, g)| g.kind == kind).fold(0, |bits, (at, _)| bits | group_bit(at));
            let before = self.graph.changed_rules.groups_of(policy);
            self.set_changed_rule_groups(now, policy, before & !listed);
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
        match gate {
            ListGate::Closed => roll.deleting,
            ListGate::RuleChanged => roll.deleting || (roll.evaluated && self.rests_on_changed_rule(roll)),
            ListGate::Refused => roll.answer.is_some_and(|answer| {
                matches!(answer.reason, ParentReason::AllChildrenReady | ParentReason::PolicyRefused)
            }),
            ListGate::Open | ListGate::Blind(_) => true,
        }
    }

    fn rests_on_changed_rule(&self, roll: &ParentEvaluation) -> bool {
        let groups = self.find_policy(roll.policy).into_iter().flat_map(EnginePolicy::indexed_groups);
        let mut critical = groups.filter(|(_, g)| g.role == GroupRole::Critical);
        critical.any(|(at, _)| {
            self.graph.changed_rules.has_group(roll.policy, at)
                && roll.find_group_tally(at).is_some_and(|tally| tally.total_count() > 0)
        })
    }

    /// Returns the answer for a `parent` whose previous answer rests on a changed rule.
    pub(super) fn changed_rule_answer(&self, parent: ObjectId) -> Option<PolicyAnswer> {
        if self.graph.changed_rules.is_empty() {
            return None;
        }
        let rolls = self.graph.evaluations_of(parent).iter().filter_map(|r| self.graph.find_evaluation(*r));
        let mut resting = rolls.filter(|r| r.view.is_some() && !r.deleting && self.rests_on_changed_rule(r));
        let tally =
            resting.next()?.groups.iter().fold(LevelTally::default(), |sum, (_, tally)| sum.sum_with(tally));
        Some(PolicyAnswer {
            reason: ParentReason::ChildrenUnknown,
            total: tally.total_count(),
            ready: tally.count_at(Level::Ready),
            reconciling: true,
            stalled: false,
        })
    }

    /// Carries a changed rule over to the policy that replaces its policy: the new policy has evaluated nothing yet,
    /// but an answer of the old rule is withdrawn all the same.
    pub(super) fn carry_over_changed_rule(
        &mut self,
        now: Time,
        parent: ObjectId,
        answer: &AnswerView,
        word: PolicyAnswer,
    ) {
        let well = answer.written.is_some_and(|told| told.reason == ParentReason::AllChildrenReady);
        let awaited = self.list_gate(answer.policy).awaits_list();
        let roll = self.graph.find_evaluation_for(parent, answer.policy).filter(|_| well && awaited);
        if let Some(roll) = roll.and_then(|id| self.graph.evaluation_mut(id)).filter(|r| r.phase.announced) {
            roll.answer = Some(word);
            (roll.evaluated, roll.rule_changed) = (true, true);
            self.reweigh_child(parent);
            for owner in std::mem::take(&mut self.moved) {
                self.enqueue_evaluation(owner, now, ChangeOrigin::External);
            }
            self.redeliver.set_if_earlier(parent, now);
        }
    }

    /// Handles a change while a list is awaited.
    pub(super) fn touch_unlisted(&mut self, id: crate::types::EvaluationId, now: Time, gate: ListGate) {
        let roll = self.graph.find_evaluation(id);
        if gate.only_takes_back() && roll.is_some_and(|r| !r.rule_changed && self.can_evaluate(r, gate)) {
            self.enqueue_evaluation(id, now, ChangeOrigin::External);
        }
        self.propagate_doubt(id);
    }
}
