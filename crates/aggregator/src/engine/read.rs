//! Queries of the driver and the renderer.

use readiness::Level;
use readiness::rollup::{ChildWeight, LevelTally, ParentReason};

use super::Engine;
use crate::critical_tally::min_expected;
use crate::evaluation::{ObservedParent, ParentEvaluation};
use crate::types::{EvaluationId, GroupRole, KindId, ObjectId, PolicyAnswer, PolicyId};

/// A child that is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadyChild {
    /// Weight of the child.
    pub weight: ChildWeight,
    /// Group in the policy.
    pub group: u8,
    /// Its kind.
    pub kind: KindId,
    /// The child.
    pub child: ObjectId,
    /// Which of its verdicts counts.
    pub rule_index: u16,
    /// The rule of this verdict has changed, so the verdict does not count.
    pub rule_changed: bool,
}

/// Evaluation state of one parent under one policy, for metrics and pages.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationState<'a> {
    /// The parent.
    pub parent: ObjectId,
    /// The policy.
    pub policy: PolicyId,
    /// The last answer.
    pub answer: PolicyAnswer,
    /// Another client keeps overwriting the conditions on this parent.
    pub yielding: bool,
    /// The server drops the conditions written to this parent, or its status cannot hold them.
    pub pruned: bool,
    /// Tallies of the children by group; a group without children may be absent.
    pub groups: &'a [(u8, LevelTally)],
}

/// One counted child of one parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildOf {
    /// The child.
    pub child: ObjectId,
    /// The parent.
    pub parent: ObjectId,
    /// The policy under which it counts.
    pub policy: PolicyId,
    /// The group in which it counts.
    pub group: u8,
    /// Which of its verdicts counts.
    pub rule_index: u16,
    /// Role of the group: may the child change the parent's condition?
    pub role: GroupRole,
}

impl Engine {
    /// Returns the generation of `parent` that its answers are about; `None` if no policy applies to it.
    pub fn parent_generation(&self, parent: ObjectId) -> Option<u64> {
        let mut rolls =
            self.graph.evaluations_of(parent).iter().filter_map(|r| self.graph.find_evaluation(*r));
        rolls.find_map(|r| Some(r.observed.as_ref()?.phase.generation))
    }

    /// Returns every counted edge. Iterates over all objects: for pages and tools, not for the loop.
    pub fn counted_children(&self) -> impl Iterator<Item = ChildOf> + '_ {
        self.graph.counted_edges().filter_map(|(child, edge)| {
            let roll = self.graph.find_evaluation(edge.evaluation)?;
            let role = self.policies.find_group(roll.policy, edge.group)?.role;
            Some(ChildOf {
                child,
                parent: roll.parent,
                policy: roll.policy,
                group: edge.group,
                rule_index: edge.rule_index,
                role,
            })
        })
    }

    /// Returns the last answer of `policy` about `parent`.
    pub fn answer_of(&self, parent: ObjectId, policy: PolicyId) -> Option<PolicyAnswer> {
        self.find_observed(self.graph.find_evaluation_for(parent, policy)?)?.stage.answer()
    }

    /// Returns the answers to write to `parent`, by policy; without shadow policies and without types that another
    /// client owns.
    pub fn answers_to_write(&self, parent: ObjectId) -> Vec<(PolicyId, PolicyAnswer)> {
        let seen = self.graph.evaluations_of(parent).iter().filter_map(|r| self.graph.find_evaluation(*r));
        let mut answers: Vec<_> = seen
            .filter(|r| self.has_own_answer(r) && r.observed.as_ref().is_some_and(|o| !o.view.owned_by_other))
            .filter(|r| !self.is_shadow(r.policy))
            .filter_map(|r| Some((r.policy, r.answer()?)))
            .collect();
        answers.sort_by_key(|(policy, _)| *policy);
        answers
    }

    /// Takes the answers about `parent` whose reason changed since the last call, those of shadow policies included:
    /// policy, previous reason (the one on the parent, if this process has not evaluated it before) and current answer.
    pub fn take_changed_answers(
        &mut self,
        parent: ObjectId,
    ) -> Vec<(PolicyId, Option<ParentReason>, PolicyAnswer)> {
        let mut turns = Vec::new();
        for at in 0..self.graph.evaluations_of(parent).len() {
            let id = self.graph.evaluations_of(parent)[at];
            if !self.graph.find_evaluation(id).is_some_and(|r| self.has_own_answer(r)) {
                continue;
            }
            let Some(roll) = self.graph.evaluation_mut(id) else { continue };
            let Some(observed) = &mut roll.observed else { continue };
            let before = observed.last_published;
            let Some(answer) = observed.stage.answer().filter(|a| before != Some(a.reason)) else { continue };
            observed.last_published = Some(answer.reason);
            turns.push((roll.policy, before, answer));
        }
        turns
    }

    /// Returns `true` if `policy` has evaluated `parent` itself. It has not before all lists are complete, nor during a
    /// relist; the existing conditions then stay.
    pub fn has_evaluated(&self, parent: ObjectId, policy: PolicyId) -> bool {
        self.graph
            .find_evaluation_for(parent, policy)
            .and_then(|r| self.graph.find_evaluation(r))
            .is_some_and(|r| self.has_own_answer(r))
    }

    /// Returns `true` if the operator of `parent` has handled the current generation, as far as this is judged under
    /// `policy`.
    pub fn is_handled(&self, parent: ObjectId, policy: PolicyId) -> bool {
        let roll = self.graph.find_evaluation_for(parent, policy);
        roll.and_then(|r| self.find_observed(r)).is_some_and(|o| o.phase.progress.is_handled())
    }

    /// Returns what is observed of the parent of an evaluation.
    pub(super) fn find_observed(&self, id: EvaluationId) -> Option<&ObservedParent> {
        self.graph.find_evaluation(id)?.observed.as_ref()
    }

    pub(super) fn has_own_answer(&self, roll: &ParentEvaluation) -> bool {
        self.policies.may_say(roll)
    }

    /// Returns `true` if the policy is in shadow mode: nothing is written for it.
    pub fn is_shadow(&self, policy: PolicyId) -> bool {
        self.policies.is_shadow(policy)
    }

    /// Returns the unready children of `parent` under `policy`, worst first; those of critical or of optional groups.
    pub fn unready_children(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        role: GroupRole,
    ) -> impl Iterator<Item = UnreadyChild> + '_ {
        let of = self.graph.find_evaluation_for(parent, policy).and_then(|r| self.graph.find_evaluation(r));
        let groups = self.policies.find_policy(policy).map(|p| &p.groups);
        of.into_iter().flat_map(|r| r.children.unready.iter()).filter_map(move |t| {
            let group = groups?.get(usize::from(t.group))?;
            let edges = self.graph.find_node(t.child)?.edges.as_slice();
            let lens = edges.iter().find(|e| e.group == t.group).map_or(0, |e| e.rule_index);
            (group.role == role).then_some(UnreadyChild {
                weight: t.weight,
                group: t.group,
                kind: t.kind,
                child: t.child,
                rule_index: lens,
                rule_changed: self.policies.changed_rules().has_group(policy, t.group),
            })
        })
    }

    /// Returns the role of a group: may its children change the parent's condition?
    pub fn group_role(&self, policy: PolicyId, group: u8) -> Option<GroupRole> {
        self.policies.find_group(policy, group).map(|g| g.role)
    }

    /// Returns the parents and policies for which `child` counts.
    pub fn counted_parents(&self, child: ObjectId) -> Vec<(ObjectId, PolicyId)> {
        let edges = self.graph.find_node(child).map(|node| node.edges.as_slice()).unwrap_or_default();
        let rolls =
            edges.iter().filter(|e| !e.cyclic).filter_map(|e| self.graph.find_evaluation(e.evaluation));
        let mut owners: Vec<_> = rolls.map(|r| (r.parent, r.policy)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// Returns the tally of one group.
    pub fn group_tally(&self, parent: ObjectId, policy: PolicyId, group: u8) -> LevelTally {
        let roll = self.graph.find_evaluation_for(parent, policy).and_then(|r| self.graph.find_evaluation(r));
        roll.map(|r| r.children.group_tally(group)).unwrap_or_default()
    }

    /// How many children `policy` expects of one group of `parent` at least: by its minimum, or by what it computes from this
    /// parent, and by its quorum.
    pub fn expected(&self, parent: ObjectId, policy: PolicyId, group: u8) -> u32 {
        let spec = self.policies.find_group(policy, group);
        let roll = self.graph.find_evaluation_for(parent, policy).and_then(|r| self.graph.find_evaluation(r));
        roll.zip(spec).map_or(0, |(roll, spec)| {
            min_expected(roll.observed.as_ref().map(|observed| &observed.view), group, spec)
        })
    }

    /// Does any policy apply to `id`, as a parent, or does a child name it as one?
    pub fn is_parent(&self, id: ObjectId) -> bool {
        !self.graph.evaluations_of(id).is_empty()
    }

    /// Is `id` a child of anything?
    pub fn has_owners(&self, id: ObjectId) -> bool {
        self.graph.find_node(id).is_some_and(|node| !node.edges.as_slice().is_empty())
    }

    /// Returns `true` if the group has a child whose name has this hash.
    pub fn has_named_child(&self, parent: ObjectId, policy: PolicyId, group: u8, name: u64) -> bool {
        let roll = self.graph.find_evaluation_for(parent, policy).and_then(|r| self.graph.find_evaluation(r));
        roll.is_some_and(|r| r.children.has_name(group, name))
    }

    /// Number of edges of `parent` that would close a cycle and are therefore not counted.
    pub fn cyclic_edge_count(&self, parent: ObjectId, policy: PolicyId) -> u32 {
        let roll = self.graph.find_evaluation_for(parent, policy).and_then(|r| self.graph.find_evaluation(r));
        roll.map_or(0, |r| r.children.cyclic_edges)
    }

    /// Returns the policies that apply to `id` if it is a parent, in an order that does not depend on the order of
    /// observation.
    pub fn policies_of(&self, id: ObjectId) -> impl Iterator<Item = PolicyId> + '_ {
        let rolls = self.graph.evaluations_of(id).iter().filter_map(|r| self.graph.find_evaluation(*r));
        let mut policies: Vec<_> = rolls.filter(|r| r.observed.is_some()).map(|r| r.policy).collect();
        policies.sort_unstable();
        policies.into_iter()
    }

    /// Returns every evaluation that has an answer.
    pub fn evaluation_states(&self) -> impl Iterator<Item = EvaluationState<'_>> {
        self.graph.all_evaluations().filter_map(|(_, r)| {
            let delivery = self.graph.find_node(r.parent)?.parent.as_ref()?.delivery;
            Some(EvaluationState {
                parent: r.parent,
                policy: r.policy,
                answer: r.answer()?,
                yielding: delivery.is_yielding(),
                pruned: delivery.is_pruned(),
                groups: &r.children.groups,
            })
        })
    }

    /// Number of evaluations that are being debounced.
    pub fn debounced_count(&self) -> usize {
        self.quiet.len()
    }

    /// Returns the targets of a resync of `parent`: the unready children under any policy, and the groups in which an
    /// expected child is missing.
    pub fn resync_targets(&self, parent: ObjectId) -> (Vec<ObjectId>, Vec<KindId>) {
        let (mut children, mut kinds) = (Vec::new(), Vec::new());
        for policy in self.policies_of(parent) {
            children.extend(self.unready_children(parent, policy, GroupRole::Critical).map(|t| t.child));
            let Some(spec) = self.policies.find_policy(policy) else { continue };
            let groups = spec.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical);
            let none_at_all =
                groups.clone().all(|(at, _)| self.group_tally(parent, policy, at).total_count() == 0);
            let short = groups.filter(|(at, g)| {
                none_at_all
                    || spec.expects_names
                    || self.group_tally(parent, policy, *at).total_count() < g.min
            });
            kinds.extend(short.map(|(_, g)| g.kind));
        }
        children.sort_unstable();
        children.dedup();
        kinds.sort_unstable();
        kinds.dedup();
        (children, kinds)
    }

    /// Recounts every tally from the edges and returns the first evaluation that disagrees. For tests and the
    /// simulator.
    pub fn find_miscounted(&self) -> Option<(ObjectId, PolicyId)> {
        self.graph
            .all_evaluations()
            .find(|(id, roll)| {
                self.graph.recount_tallies(*id, self.policies.changed_rules())
                    != roll.children.nonempty_tallies()
            })
            .map(|(_, r)| (r.parent, r.policy))
    }

    /// Returns `true` if every set of unready children contains exactly the children that are not ready. For tests and
    /// the simulator.
    pub fn are_unready_children_consistent(&self) -> bool {
        self.graph
            .all_evaluations()
            .all(|(_, r)| r.children.unready.iter().all(|t| t.weight.level != Level::Ready))
    }
}
