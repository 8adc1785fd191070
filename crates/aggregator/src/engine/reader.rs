//! Queries of the driver and the renderer.

use std::collections::BTreeMap;
use std::time::Duration;

use readiness::rollup::{ChildWeight, LevelTally};

use crate::critical_tally::min_expected;
use crate::delivery::UnwrittenBecause;
use crate::evaluation::{ObservedParent, ParentEvaluation};
use crate::graph::{ChildGraph, PolicySums, sum_evaluations};
use crate::ids::{KindId, ObjectId, PolicyId};
use crate::policy_table::PolicyTable;
use crate::types::{GroupRole, ObjectView, PolicyAnswer};

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
    /// Why this parent cannot be told, if it cannot.
    pub unwritten: Option<UnwrittenBecause>,
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

/// Reads what the engine knows; changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct EngineReader<'e> {
    pub(super) graph: &'e ChildGraph,
    pub(super) policies: &'e PolicyTable,
}

impl<'e> EngineReader<'e> {
    fn find_evaluation(self, parent: ObjectId, policy: PolicyId) -> Option<&'e ParentEvaluation> {
        self.graph.find_evaluation(self.graph.find_evaluation_for(parent, policy)?)
    }

    fn find_observed(self, parent: ObjectId, policy: PolicyId) -> Option<&'e ObservedParent> {
        self.find_evaluation(parent, policy)?.observed.as_ref()
    }

    fn evaluations_of(self, parent: ObjectId) -> impl Iterator<Item = &'e ParentEvaluation> {
        self.graph.evaluations_of(parent).iter().filter_map(move |id| self.graph.find_evaluation(*id))
    }

    /// Returns `true` if a draft may be made: one of its policies has evaluated the parent, or no policy that is accepted
    /// applies to it. What a refused one said stays then, and what others left goes. Before that its conditions stay as they
    /// are. They also stay while an answer is in doubt and cannot be evaluated again.
    #[inline]
    pub(super) fn is_draftable(self, parent: ObjectId) -> bool {
        let Some(parent) = self.graph.find_parent(parent).filter(|held| !held.termination_written) else {
            return false;
        };
        // Asked of every draft: who may speak needs no second look.
        let evaluations = || parent.evaluations.iter().filter_map(|id| self.graph.find_evaluation(*id));
        let mut say = false;
        for evaluation in evaluations() {
            let Some(observed) = &evaluation.observed else {
                say = true;
                continue;
            };
            let open = self.policies.is_open(evaluation.policy);
            if open && observed.stage.is_in_doubt() {
                return false;
            }
            say |= observed.stage.may_speak(open);
        }
        say || !evaluations().any(|evaluation| self.policies.is_accepted(evaluation.policy))
    }

    /// Returns `true` if an answer about the parent is in doubt.
    pub(super) fn is_in_doubt(self, parent: ObjectId) -> bool {
        self.evaluations_of(parent).any(ParentEvaluation::is_in_doubt)
    }

    /// Returns the window that contains at most two writes to a parent: the shortest debounce cap of its policies.
    pub(super) fn write_window(self, parent: ObjectId) -> Duration {
        let policies = self.evaluations_of(parent).filter_map(|held| self.policies.find_policy(held.policy));
        policies.map(|policy| policy.debounce.cap).min().unwrap_or_default()
    }

    pub(super) fn is_observed_as(self, id: ObjectId, view: Option<&ObjectView<'_>>) -> bool {
        match (self.graph.find_node(id).filter(|node| node.present), view) {
            (None, None) => true,
            (Some(node), Some(view)) => node.is_shown_as(view),
            _ => false,
        }
    }

    pub(super) fn parent_generation(self, parent: ObjectId) -> Option<u64> {
        self.evaluations_of(parent).find_map(|held| Some(held.observed.as_ref()?.phase.generation))
    }

    pub(super) fn counted_children(self) -> impl Iterator<Item = ChildOf> + 'e {
        self.graph.counted_edges().filter_map(move |(child, edge)| {
            let evaluation = self.graph.find_evaluation(edge.evaluation)?;
            let role = self.policies.find_group(evaluation.policy, edge.group)?.role;
            Some(ChildOf {
                child,
                parent: evaluation.parent,
                policy: evaluation.policy,
                group: edge.group,
                rule_index: edge.rule_index,
                role,
            })
        })
    }

    pub(super) fn answer_of(self, parent: ObjectId, policy: PolicyId) -> Option<PolicyAnswer> {
        self.find_observed(parent, policy)?.stage.answer()
    }

    pub(super) fn answers_to_write(self, parent: ObjectId) -> Vec<(PolicyId, PolicyAnswer)> {
        let is_written = |held: &&ParentEvaluation| {
            self.policies.may_say(held)
                && held.observed.as_ref().is_some_and(|observed| !observed.view.owned_by_other)
                && !self.policies.is_shadow(held.policy)
        };
        let written = self.evaluations_of(parent).filter(is_written);
        let mut answers: Vec<_> = written.filter_map(|held| Some((held.policy, held.answer()?))).collect();
        answers.sort_by_key(|(policy, _)| *policy);
        answers
    }

    pub(super) fn has_evaluated(self, parent: ObjectId, policy: PolicyId) -> bool {
        self.find_evaluation(parent, policy).is_some_and(|held| self.policies.may_say(held))
    }

    pub(super) fn is_handled(self, parent: ObjectId, policy: PolicyId) -> bool {
        self.find_observed(parent, policy).is_some_and(|observed| observed.phase.progress.is_handled())
    }

    /// Returns `true` if the proof was asked for that the operator of `parent` has handled its generation, and not given yet.
    pub fn lacks_proof(self, parent: ObjectId, policy: PolicyId) -> bool {
        self.find_evaluation(parent, policy).is_some_and(ParentEvaluation::awaits_proof)
    }

    /// Returns the children that count for `parent` under a policy that asks for a proof, in the order of their groups.
    pub fn proof_children(
        self,
        parent: ObjectId,
        policy: PolicyId,
    ) -> impl Iterator<Item = (u8, ObjectId)> + 'e {
        let named = self.find_evaluation(parent, policy).and_then(|held| held.children.named.as_deref());
        named.into_iter().flatten().map(|(group, _, child)| (*group, *child))
    }

    pub(super) fn is_tolerating(self, parent: ObjectId, policy: PolicyId) -> bool {
        self.find_observed(parent, policy).is_some_and(|observed| observed.phase.steady.is_tolerating())
    }

    pub(super) fn unready_children(
        self,
        parent: ObjectId,
        policy: PolicyId,
        role: GroupRole,
    ) -> impl Iterator<Item = UnreadyChild> + 'e {
        let id = self.graph.find_evaluation_for(parent, policy);
        let of = id.and_then(|id| self.graph.find_evaluation(id));
        of.into_iter().flat_map(|held| held.children.unready.iter()).filter_map(move |entry| {
            let group = self.policies.find_group(policy, entry.group)?;
            let mut edges = self.graph.find_node(entry.child)?.edges.iter();
            // Another policy, or another parent, may count the child in a group of the same number by another rule.
            let edge = edges.find(|edge| Some(edge.evaluation) == id && edge.group == entry.group);
            let rule_index = edge.map_or(0, |edge| edge.rule_index);
            (group.role == role).then_some(UnreadyChild {
                weight: entry.weight,
                group: entry.group,
                kind: entry.kind,
                child: entry.child,
                rule_index,
                rule_changed: self.policies.changed_rules().has_group(policy, entry.group),
            })
        })
    }

    /// Returns the parents and policies for which `child` counts.
    pub fn counted_parents(self, child: ObjectId) -> Vec<(ObjectId, PolicyId)> {
        let edges = self.graph.find_node(child).map(|node| node.edges.as_slice()).unwrap_or_default();
        let counted = edges.iter().filter(|edge| !edge.cyclic);
        let evaluations = counted.filter_map(|edge| self.graph.find_evaluation(edge.evaluation));
        let mut owners: Vec<_> = evaluations.map(|held| (held.parent, held.policy)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    pub(super) fn group_tally(self, parent: ObjectId, policy: PolicyId, group: u8) -> LevelTally {
        self.find_evaluation(parent, policy).map(|held| held.children.group_tally(group)).unwrap_or_default()
    }

    pub(super) fn expected(self, parent: ObjectId, policy: PolicyId, group: u8) -> u32 {
        let spec = self.policies.find_group(policy, group);
        self.find_evaluation(parent, policy).zip(spec).map_or(0, |(held, spec)| {
            min_expected(held.observed.as_ref().map(|observed| &observed.view), group, spec)
        })
    }

    /// Returns `true` if the group has a child whose name has this hash.
    pub fn has_named_child(self, parent: ObjectId, policy: PolicyId, group: u8, name: u64) -> bool {
        self.find_evaluation(parent, policy).is_some_and(|held| held.children.has_name(group, name))
    }

    /// Number of edges of `parent` that would close a cycle and are therefore not counted.
    pub fn cyclic_edge_count(self, parent: ObjectId, policy: PolicyId) -> u32 {
        self.find_evaluation(parent, policy).map_or(0, |held| held.children.cyclic_edges)
    }

    pub(super) fn policies_of(self, id: ObjectId) -> impl Iterator<Item = PolicyId> + 'e {
        let observed = self.evaluations_of(id).filter(|held| held.observed.is_some());
        let mut policies: Vec<_> = observed.map(|held| held.policy).collect();
        policies.sort_unstable();
        policies.into_iter()
    }

    fn evaluation_state(self, held: &'e ParentEvaluation) -> Option<EvaluationState<'e>> {
        let delivery = &self.graph.find_parent(held.parent)?.delivery;
        Some(EvaluationState {
            parent: held.parent,
            policy: held.policy,
            answer: held.answer()?,
            yielding: delivery.is_yielding(),
            unwritten: delivery.unwritten(),
            groups: &held.children.groups,
        })
    }

    pub(super) fn evaluation_states(self) -> impl Iterator<Item = EvaluationState<'e>> {
        self.graph.all_evaluations().filter_map(move |(_, held)| self.evaluation_state(held))
    }

    /// Returns the evaluations of one parent that have an answer.
    pub fn states_of(self, parent: ObjectId) -> impl Iterator<Item = EvaluationState<'e>> {
        self.evaluations_of(parent).filter_map(move |held| self.evaluation_state(held))
    }

    /// What the parents of a policy amounted to when changes were last taken; `None` where it has none. Costs nothing to query.
    pub fn policy_sums(self, policy: PolicyId) -> Option<&'e PolicySums> {
        self.graph.policy_sums(policy)
    }

    /// Sums all evaluations anew. For tests and the simulator.
    pub fn recount_sums(self) -> BTreeMap<PolicyId, PolicySums> {
        sum_evaluations(self.graph.all_evaluations().map(|(_, held)| held))
    }

    /// Is `id` a parent that is being deleted?
    pub fn is_deleting(self, id: ObjectId) -> bool {
        let mut observed = self.evaluations_of(id).filter_map(|held| held.observed.as_ref());
        observed.any(|parent| parent.deleting)
    }

    /// Is `id` a child of anything?
    pub fn has_owners(self, id: ObjectId) -> bool {
        self.graph.find_node(id).is_some_and(|node| !node.edges.as_slice().is_empty())
    }

    pub(super) fn resync_targets(self, parent: ObjectId) -> (Vec<ObjectId>, Vec<KindId>) {
        let (mut children, mut kinds) = (Vec::new(), Vec::new());
        for policy in self.policies_of(parent) {
            children.extend(self.unready_children(parent, policy, GroupRole::Critical).map(|t| t.child));
            if self.lacks_proof(parent, policy) {
                children.extend(self.proof_children(parent, policy).map(|(_, child)| child));
            }
            let Some(spec) = self.policies.find_policy(policy) else { continue };
            let groups = spec.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical);
            let total = |at| self.group_tally(parent, policy, at).total_count();
            let none_at_all = groups.clone().all(|(at, g)| g.is_prerequisite || total(at) == 0);
            let short = groups.filter(|(at, _)| {
                none_at_all || spec.expects_names || total(*at) < self.expected(parent, policy, *at)
            });
            kinds.extend(short.map(|(_, g)| g.kind));
        }
        children.sort_unstable();
        children.dedup();
        kinds.sort_unstable();
        kinds.dedup();
        (children, kinds)
    }

    /// Returns `true` if nothing is written for the parent under `policy`, and its state has not become known since this process
    /// began to observe it. For the simulator.
    pub fn is_unsettled(self, parent: ObjectId, policy: PolicyId) -> bool {
        self.find_observed(parent, policy).is_some_and(|observed| observed.stage.is_unsettled())
    }

    /// Recounts every tally from the edges and returns the first evaluation that disagrees. For tests and the
    /// simulator.
    pub fn find_miscounted(self) -> Option<(ObjectId, PolicyId)> {
        let recount = |id| self.graph.recount_tallies(id, self.policies.changed_rules());
        let mut all = self.graph.all_evaluations();
        let wrong = all.find(|(id, held)| recount(*id) != held.children.nonempty_tallies());
        wrong.map(|(_, held)| (held.parent, held.policy))
    }

    /// Returns `true` if every set of unready children contains exactly the children that are not ready. For tests and
    /// the simulator.
    pub fn are_unready_children_consistent(self) -> bool {
        let mut entries = self.graph.all_evaluations().flat_map(|(_, held)| held.children.unready.iter());
        entries.all(|entry| !entry.weight.is_ready())
    }
}
