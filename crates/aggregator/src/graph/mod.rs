//! The graph of children and parents. Edges run from a child to the evaluations of its parents; an edge that closes a
//! cycle is kept and not counted.

mod counted_edges;
mod cycle;
mod edge_weights;
mod evaluation_table;
mod graph_node;
mod inline_vec;
mod marked_set;
mod node_table;
mod policy_sums;
mod recount;
mod selector_index;

use std::collections::{BTreeMap, BTreeSet};

use readiness::Time;
use readiness::rollup::{LevelTally, ParentReason};

pub(crate) use graph_node::{ChildEdge, GraphNode, ParentNode, ResyncStage};
use graph_node::{UNSEEN_WEIGHT, weight_by};
pub(crate) use inline_vec::InlineVec;
pub use policy_sums::PolicySums;
pub(crate) use policy_sums::sum_evaluations;

use crate::changed_rules::ChangedRuleGroups;
use crate::evaluation::{
    ChildChange, NamedChildren, ObservedParent, ParentEvaluation, StageEvent, UnreadyEntry,
};
use crate::ids::{EvaluationId, KindId, ObjectId, PolicyId, SelectorId};
use crate::types::{ChildLink, LinkTarget};
use counted_edges::CountedEdges;
use cycle::CycleSearch;
use edge_weights::{EdgeWeights, weigh_with_evaluations, weight_of_evaluations};
use evaluation_table::EvaluationTable;
use node_table::NodeTable;
use recount::{EdgeCorrection, EdgeRecount};
use selector_index::SelectorIndex;

/// All nodes and evaluations.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildGraph {
    nodes: NodeTable,
    evaluations: EvaluationTable,
    pub(crate) selectors: SelectorIndex,
    /// Selectors that objects lend to the parents for which they count; few objects do.
    pub(crate) lent_selectors: BTreeMap<ObjectId, BTreeSet<(PolicyId, SelectorId)>>,
    /// Objects from which an edge was added, or to which one was removed, that may lie on a cycle.
    cycle_doubts: BTreeSet<ObjectId>,
}

impl ChildGraph {
    pub(crate) fn find_node(&self, id: ObjectId) -> Option<&GraphNode> {
        self.nodes.get(id)
    }

    pub(crate) fn node_mut(&mut self, id: ObjectId) -> &mut GraphNode {
        self.nodes.get_or_insert(id)
    }

    pub(crate) fn edges_of(&self, id: ObjectId) -> InlineVec<ChildEdge> {
        self.find_node(id).map(|n| n.edges.clone()).unwrap_or_default()
    }

    pub(crate) fn find_parent(&self, id: ObjectId) -> Option<&ParentNode> {
        self.nodes.find_parent(id)
    }

    pub(crate) fn parent_mut(&mut self, id: ObjectId) -> Option<&mut ParentNode> {
        self.nodes.parent_mut(id)
    }

    /// Returns the part of a parent in the resync, which nothing depends on that is told or counted.
    pub(crate) fn resync_stage_mut(&mut self, id: ObjectId) -> Option<&mut ResyncStage> {
        Some(&mut self.nodes.find_mut(id)?.parent.as_deref_mut()?.resync)
    }

    /// Settles the sums of all policies, and takes the parents that may have changed since the last call: each once.
    pub(crate) fn take_changed_parents(&mut self) -> Vec<ObjectId> {
        self.evaluations.settle_changes(self.nodes.take_changed_parents())
    }

    pub(crate) fn policy_sums(&self, policy: PolicyId) -> Option<&PolicySums> {
        self.evaluations.policy_sums(policy)
    }

    pub(crate) fn correct_sums(&mut self) -> Vec<PolicyId> {
        self.evaluations.correct_sums()
    }

    #[cfg(test)]
    pub(crate) fn spoil_sums(&mut self, policy: PolicyId) {
        self.evaluations.spoil_sums(policy);
    }

    pub(crate) fn change_parents(&mut self, change: impl Fn(&mut ParentNode)) {
        self.nodes.change_parents(change);
    }

    pub(crate) fn find_evaluation(&self, id: EvaluationId) -> Option<&ParentEvaluation> {
        self.evaluations.get(id)
    }

    pub(crate) fn evaluation_mut(&mut self, id: EvaluationId) -> Option<&mut ParentEvaluation> {
        self.evaluations.find_mut(id)
    }

    /// Calls `change` for each evaluation of a parent.
    pub(crate) fn for_each_evaluation_of(
        &mut self,
        parent: ObjectId,
        mut change: impl FnMut(&mut ParentEvaluation),
    ) {
        for id in self.nodes.evaluations_of(parent) {
            if let Some(evaluation) = self.evaluations.find_mut(*id) {
                change(evaluation);
            }
        }
    }

    /// Moves an evaluation to its next stage, where its parent is observed.
    pub(crate) fn advance_stage(&mut self, id: EvaluationId, event: StageEvent) {
        self.evaluations.advance_stage(id, event);
    }

    /// Records whether an evaluation was unsettled before a change and is after it.
    pub(crate) fn count_unsettled(&mut self, before: bool, after: bool) {
        self.evaluations.count_unsettled(before, after);
    }

    pub(crate) fn has_unsettled(&self) -> bool {
        self.evaluations.unsettled_count() > 0
    }

    fn weights<'g>(&'g self, changed_rules: &'g ChangedRuleGroups) -> EdgeWeights<'g> {
        EdgeWeights { nodes: &self.nodes, evaluations: &self.evaluations, changed_rules }
    }

    fn cycles(&self) -> CycleSearch<'_> {
        CycleSearch { nodes: &self.nodes, evaluations: &self.evaluations }
    }

    pub(crate) fn all_evaluations(&self) -> impl Iterator<Item = (EvaluationId, &ParentEvaluation)> {
        self.evaluations.iter()
    }

    pub(crate) fn evaluations_of(&self, id: ObjectId) -> &[EvaluationId] {
        self.nodes.evaluations_of(id)
    }

    pub(crate) fn find_evaluation_for(&self, parent: ObjectId, policy: PolicyId) -> Option<EvaluationId> {
        self.evaluations_of(parent)
            .iter()
            .copied()
            .find(|id| self.find_evaluation(*id).is_some_and(|r| r.policy == policy))
    }

    /// Returns the evaluation of `parent` under `policy`, created if there is none: a child may be observed before its
    /// parent.
    pub(crate) fn ensure_evaluation(&mut self, parent: ObjectId, policy: PolicyId) -> EvaluationId {
        if let Some(id) = self.find_evaluation_for(parent, policy) {
            return id;
        }
        let id = self.evaluations.insert(ParentEvaluation::new(parent, policy));
        self.node_mut(parent).parent.get_or_insert_default().evaluations.push(id);
        id
    }

    /// Evaluations under these policies. Iterates over all evaluations once, however many policies there are.
    pub(crate) fn evaluations_under(&self, policies: &BTreeSet<PolicyId>) -> Vec<EvaluationId> {
        if policies.is_empty() {
            return Vec::new();
        }
        self.all_evaluations().filter(|(_, held)| policies.contains(&held.policy)).map(|(id, _)| id).collect()
    }

    /// Returns `true` if any answer about a parent that is not being deleted says that it is not ready, or stands although
    /// its children are not.
    pub(crate) fn is_parent_unready(&self, parent: ObjectId) -> bool {
        let held = self.evaluations_of(parent).iter().filter_map(|id| self.find_evaluation(*id));
        let observed = held.filter_map(|evaluation| evaluation.observed.as_ref()).filter(|o| !o.deleting);
        let is_unready = |observed: &ObservedParent| {
            let answer = observed.stage.answer();
            answer.is_some_and(|answer| answer.reason != ParentReason::AllChildrenReady)
                || observed.phase.steady.is_tolerating()
        };
        observed.into_iter().any(is_unready)
    }

    /// Drops an evaluation without edges whose parent is not observed; returns `true` if it is gone.
    pub(crate) fn drop_if_idle(&mut self, id: EvaluationId) -> bool {
        let Some(held) = self.find_evaluation(id) else { return true };
        if held.children.edges > 0 || held.observed.is_some() {
            return false;
        }
        let parent = held.parent;
        self.evaluations.remove(id);
        let node = self.node_mut(parent);
        if let Some(p) = &mut node.parent {
            p.evaluations.retain(|r| *r != id);
            if p.evaluations.as_slice().is_empty() && !node.present {
                node.parent = None;
            }
        }
        true
    }

    /// Returns the evaluations that `link` currently leads to.
    pub(crate) fn evaluations_behind(&mut self, link: ChildLink) -> Vec<EvaluationId> {
        match link.target() {
            LinkTarget::Object(parent) => vec![self.ensure_evaluation(parent, link.policy)],
            LinkTarget::Selector(selector) => {
                let parents = self.selectors.selecting_parents(selector, link.policy);
                parents.into_iter().map(|parent| self.ensure_evaluation(parent, link.policy)).collect()
            }
        }
    }

    /// Returns `true` if any link of `child` leads to the target of `edge`.
    pub(crate) fn is_linked(&self, child: ObjectId, edge: &ChildEdge) -> bool {
        let Some((node, held)) = self.find_node(child).zip(self.find_evaluation(edge.evaluation)) else {
            return false;
        };
        let mut links = node
            .links
            .iter()
            .filter(|l| (l.policy, l.group, l.rule_index) == (held.policy, edge.group, edge.rule_index));
        links.any(|link| match link.target() {
            LinkTarget::Object(parent) => parent == held.parent,
            LinkTarget::Selector(selector) => {
                self.selectors.has_selecting_parent(held.parent, held.policy, selector)
            }
        })
    }

    /// Adds an edge from `child`; returns `false` if it already exists. One that may lie on a cycle is not counted before
    /// [`ChildGraph::settle_cycles`].
    pub(crate) fn attach_edge(
        &mut self,
        child: ObjectId,
        id: EvaluationId,
        link: ChildLink,
        naming: bool,
        rules: &ChangedRuleGroups,
    ) -> bool {
        let Some(parent) = self.find_evaluation(id).map(|held| held.parent) else { return false };
        let (group, rule_index) = (link.group, link.rule_index);
        let cyclic = self.cycles().may_close_cycle(child, parent);
        let Some(node) = self.find_node(child) else { return false };
        if node.edges.iter().any(|e| e.evaluation == id && e.group == group) {
            return false;
        }
        let (kind, name) = (node.kind, node.name);
        let weight = self.weights(rules).weigh(child, rule_index, link.policy, group);
        self.node_mut(child).edges.push(ChildEdge { evaluation: id, group, rule_index, cyclic, weight });
        let Some(evaluation) = self.evaluation_mut(id) else { return false };
        evaluation.children.add_edge(
            UnreadyEntry { weight, group, kind, child },
            naming.then_some(name),
            cyclic,
        );
        if cyclic {
            self.cycle_doubts.insert(child);
        }
        true
    }

    /// Removes an edge of `child`. A cycle that it opens is found by [`ChildGraph::settle_cycles`].
    pub(crate) fn detach_edge(&mut self, child: ObjectId, edge: ChildEdge) {
        let node = self.node_mut(child);
        node.edges.retain(|e| *e != edge);
        let (kind, name) = (node.kind, node.name);
        let Some(evaluation) = self.evaluation_mut(edge.evaluation) else { return };
        let entry = UnreadyEntry { weight: edge.weight, group: edge.group, kind, child };
        evaluation.children.remove_edge(entry, name, edge.cyclic);
        let parent = evaluation.parent;
        if edge.cyclic {
            self.cycle_doubts.insert(parent);
        }
    }

    /// Switches whether these evaluations track the names of their children. Iterates over all edges at most once.
    pub(crate) fn track_names(&mut self, ids: &[EvaluationId], on: bool) {
        let differs =
            |id: &EvaluationId| self.find_evaluation(*id).is_some_and(|r| r.children.named.is_some() != on);
        let mut named: BTreeMap<EvaluationId, NamedChildren> =
            ids.iter().copied().filter(differs).map(|id| (id, NamedChildren::default())).collect();
        if on && !named.is_empty() {
            for (child, edge) in self.counted_edges() {
                if let Some((names, node)) = named.get_mut(&edge.evaluation).zip(self.find_node(child)) {
                    names.insert((edge.group, node.name, child));
                }
            }
        }
        for (id, names) in named {
            if let Some(held) = self.evaluation_mut(id) {
                held.children.named = on.then(|| Box::new(names));
            }
        }
    }

    /// Updates the weight of `child` in every evaluation in which it counts and adds those evaluations to `moved`.
    pub(crate) fn reweigh_edges(
        &mut self,
        child: ObjectId,
        rules: &ChangedRuleGroups,
        moved: &mut Vec<EvaluationId>,
    ) {
        let Some(GraphNode { edges, weight, further_weights, kind, parent, .. }) = self.nodes.find_mut(child)
        else {
            return;
        };
        let evaluations = parent.as_ref().map_or(&[][..], |parent| parent.evaluations.as_slice());
        let rolled = weight_of_evaluations(evaluations, &self.evaluations);
        for edge in edges.as_mut_slice().iter_mut().filter(|e| !e.cyclic) {
            let mut own = weight_by(*weight, further_weights, edge.rule_index);
            if !rules.is_empty() {
                let policy = self.evaluations.get(edge.evaluation).map(|held| held.policy);
                if policy.is_some_and(|policy| rules.has_group(policy, edge.group)) {
                    own = UNSEEN_WEIGHT;
                }
            }
            let weight = weigh_with_evaluations(own, rolled);
            let was = std::mem::replace(&mut edge.weight, weight);
            if was != weight
                && let Some(held) = self.evaluations.find_mut(edge.evaluation)
            {
                let entry = UnreadyEntry { weight: was, group: edge.group, kind: *kind, child };
                held.reweigh_child(entry, weight);
                moved.push(edge.evaluation);
            }
        }
    }

    /// Records the last creation, deletion or spec change below an evaluation, and whether a child appeared.
    pub(crate) fn record_child_change(&mut self, id: EvaluationId, at: Time, change: ChildChange) {
        if let Some(held) = self.evaluation_mut(id) {
            held.children.record_change(at, change);
        }
    }

    /// Returns every counted edge with its child.
    pub(crate) fn counted_edges(&self) -> impl Iterator<Item = (ObjectId, ChildEdge)> + '_ {
        CountedEdges::of_nodes(self.nodes.iter())
    }

    /// Returns `true` if edges were added or removed that may lie on a cycle.
    #[inline]
    pub(crate) fn has_cycle_doubts(&self) -> bool {
        !self.cycle_doubts.is_empty()
    }

    /// Finds out which edges lie on a cycle since some were added and removed. Returns the evaluations that gained or lost a
    /// child by it, each once.
    pub(crate) fn settle_cycles(&mut self, rules: &ChangedRuleGroups) -> BTreeSet<EvaluationId> {
        let mut moved = BTreeSet::new();
        let doubts = std::mem::take(&mut self.cycle_doubts);
        let components = self.cycles().components_above(doubts);
        for (child, component) in &components {
            for (at, edge) in self.edges_of(*child).iter().enumerate() {
                let parent = self.find_evaluation(edge.evaluation).map(|held| held.parent);
                let cyclic = parent.is_some_and(|parent| components.get(&parent) == Some(component));
                if cyclic != edge.cyclic {
                    self.set_cyclic(*child, at, ChildEdge { cyclic, ..*edge }, rules);
                    moved.insert(edge.evaluation);
                }
            }
        }
        moved
    }

    fn set_cyclic(&mut self, child: ObjectId, at: usize, edge: ChildEdge, rules: &ChangedRuleGroups) {
        let Some(policy) = self.find_evaluation(edge.evaluation).map(|r| r.policy) else { return };
        let weigh = || self.weights(rules).weigh(child, edge.rule_index, policy, edge.group);
        let (cyclic, weight) = (edge.cyclic, if edge.cyclic { edge.weight } else { weigh() });
        let node = self.node_mut(child);
        if let Some(held) = node.edges.as_mut_slice().get_mut(at) {
            *held = ChildEdge { weight, ..edge };
        }
        let (kind, name) = (node.kind, node.name);
        let trouble = UnreadyEntry { weight, group: edge.group, kind, child };
        if let Some(evaluation) = self.evaluation_mut(edge.evaluation) {
            evaluation.children.set_cyclic(trouble, name, cyclic);
        }
    }

    /// Present objects of these kinds.
    pub(crate) fn present_objects(&self, kinds: &BTreeSet<KindId>) -> Vec<(KindId, ObjectId)> {
        let of_kinds = self.nodes.iter().filter(|(_, node)| node.present && kinds.contains(&node.kind));
        of_kinds.map(|(id, node)| (node.kind, id)).collect()
    }

    /// Recounts the tallies of an evaluation from the edges of all nodes.
    pub(crate) fn recount_tallies(
        &self,
        id: EvaluationId,
        rules: &ChangedRuleGroups,
    ) -> BTreeMap<u8, LevelTally> {
        EdgeRecount { weights: self.weights(rules) }.recount_tallies(id)
    }

    /// Counts all evaluations again, and puts right those that disagree. Returns these.
    pub(crate) fn recount_evaluations(&mut self, rules: &ChangedRuleGroups) -> Vec<EvaluationId> {
        let wrong = EdgeRecount { weights: self.weights(rules) }.find_wrong_sums();
        let ids = wrong.iter().map(|(id, _)| *id).collect();
        for (id, sum) in wrong {
            EdgeCorrection {
                nodes: &mut self.nodes,
                evaluations: &mut self.evaluations,
                changed_rules: rules,
            }
            .put_right(id, sum);
        }
        ids
    }
}
