//! Changes of policies, of the states of kinds, and of rules.

use std::collections::BTreeSet;

use readiness::Time;

use super::scheduler::EvaluationScheduler;
use crate::changed_rules::group_bit;
use crate::evaluation::StageEvent;
use crate::ids::{EvaluationId, KindId, ObjectId, PolicyId};
use crate::list_gate::ListGate;
use crate::types::{ChangeOrigin, EnginePolicy, KindState};

/// A change of what policies rest on at one instant: their gates follow it, and their evaluations are scheduled.
#[derive(Debug)]
pub(super) struct PolicyUpdate<'e> {
    pub(super) scheduler: &'e mut EvaluationScheduler,
    pub(super) now: Time,
}

impl PolicyUpdate<'_> {
    /// Sets a policy that is new or changed, or removes it (`None`).
    pub(super) fn set_policy(&mut self, id: PolicyId, policy: Option<EnginePolicy>) {
        self.scheduler.policies.reserve_policy(id);
        let names = policy.as_ref().is_some_and(EnginePolicy::tracks_names);
        let is_shadow = policy.as_ref().is_some_and(|policy| policy.shadow);
        let before = self.scheduler.policies.find_policy(id);
        let is_new = before.is_none();
        let writes = policy.as_ref().is_some_and(|policy| !policy.shadow);
        let begins_to_write = writes && before.is_none_or(|before| before.shadow);
        self.set_changed_groups(id, 0);
        self.scheduler.policies.set_policy(id, policy);
        let evaluations = self.scheduler.graph.evaluations_under(&BTreeSet::from([id]));
        self.scheduler.graph.track_names(&evaluations, names);
        for evaluation in evaluations {
            // The answer of another policy that used the same id is not an answer of this one.
            self.scheduler.graph.advance_stage(evaluation, StageEvent::Outdated);
            if is_shadow {
                self.announce_unwritten(evaluation);
            }
            if begins_to_write {
                self.resume_terminating(evaluation);
            }
            if is_new {
                self.scheduler.settle_record(evaluation, !is_shadow, self.now);
            }
        }
        self.update_list_gates([id]);
        self.doubt_answers(&BTreeSet::from([id]));
    }

    /// A parent that was observed before the policy was known, or wrote, has not said its end for this one.
    fn resume_terminating(&mut self, evaluation: EvaluationId) {
        let parent = self.scheduler.graph.find_evaluation(evaluation).map(|held| held.parent);
        if let Some(parent) = parent.and_then(|id| self.scheduler.graph.parent_mut(id)) {
            parent.termination_written = false;
        }
    }

    /// Lets a parent go on that was observed before its policy was known: under a policy in shadow mode no write and no echo
    /// of one will tell that its generation was announced.
    fn announce_unwritten(&mut self, evaluation: EvaluationId) {
        let held = self.scheduler.graph.evaluation_mut(evaluation);
        if let Some(observed) = held.and_then(|held| held.observed.as_mut()) {
            observed.phase.progress.announce();
        }
    }

    /// Sets the list and watch state of a kind.
    pub(super) fn set_kind_state(&mut self, kind: KindId, state: KindState) {
        if !self.scheduler.policies.set_kind_state(kind, state) {
            return;
        }
        if state != KindState::Listing {
            self.clear_changed_rule(kind);
        }
        let policies = self.scheduler.policies.policies_over(kind);
        self.update_list_gates(policies);
    }

    /// Withdraws the answers of this policy that rest on its rule for this kind, until the kind is listed.
    pub(super) fn withdraw_changed_rule(&mut self, policy: PolicyId, kind: KindId) {
        let policies = &self.scheduler.policies;
        let groups = policies.changed_rules().groups_of(policy) | policies.groups_of_kind(policy, kind);
        self.set_changed_groups(policy, groups);
    }

    /// Clears the mark for a kind that was listed or is not installed: all its verdicts now come from the new rule.
    fn clear_changed_rule(&mut self, kind: KindId) {
        for policy in self.scheduler.policies.changed_rules().changed_policies() {
            let policies = &self.scheduler.policies;
            let groups = policies.changed_rules().groups_of(policy) & !policies.groups_of_kind(policy, kind);
            self.set_changed_groups(policy, groups);
        }
    }

    fn set_changed_groups(&mut self, policy: PolicyId, groups: u64) {
        let moved = self.scheduler.policies.set_changed_groups(policy, groups);
        if moved == 0 {
            return;
        }
        for child in self.children_in(policy, moved) {
            self.scheduler.reweigh_child(child);
        }
        self.update_list_gates([policy]);
    }

    /// Returns every child in these groups of this policy. Iterates over all objects: rules change rarely.
    fn children_in(&self, policy: PolicyId, groups: u64) -> Vec<ObjectId> {
        let graph = &self.scheduler.graph;
        let within = |id| graph.find_evaluation(id).is_some_and(|r| r.policy == policy);
        let mut children: Vec<_> = graph
            .counted_edges()
            .filter(|(_, edge)| group_bit(edge.group) & groups != 0 && within(edge.evaluation))
            .map(|(child, _)| child)
            .collect();
        children.sort_unstable();
        children.dedup();
        children
    }

    fn update_list_gates(&mut self, ids: impl IntoIterator<Item = PolicyId>) {
        let (mut due, mut closed, mut has_moved) = (BTreeSet::new(), BTreeSet::new(), false);
        for id in ids {
            let before = self.scheduler.policies.list_gate(id);
            let Some(gate) = self.scheduler.policies.update_list_gate(id, self.now) else { continue };
            has_moved = true;
            if gate != ListGate::Closed {
                due.insert(id);
            } else if before != ListGate::Closed {
                closed.insert(id);
            }
        }
        self.scheduler.enqueue_policies(&due, self.now);
        self.doubt_answers(&closed);
        if has_moved {
            self.scheduler.resume_all_deferred(self.now);
        }
    }

    /// Doubts the answers under these policies that say True, where that is called for.
    fn doubt_answers(&mut self, policies: &BTreeSet<PolicyId>) {
        for evaluation in self.scheduler.graph.evaluations_under(policies) {
            self.scheduler.propagate_doubt(evaluation, self.now, ChangeOrigin::PossiblyOwn);
        }
    }
}
