//! The graph of children and parents. Edges run from a child to the evaluations of its parents; an edge that closes a
//! cycle is kept and not counted.

mod changed_rules;
mod cycle;
mod graph_node;
mod inline_vec;
mod node_table;
mod recount;
mod selector_index;

use std::collections::{BTreeMap, BTreeSet};

use readiness::Time;
use readiness::rollup::{ChildWeight, LevelTally};

pub(crate) use graph_node::{ChildEdge, GraphNode, ParentNode, ResyncStage};
pub(crate) use inline_vec::{InlineVec, ObjectWeights, UNSEEN_WEIGHT, weigh_with_evaluations};

use crate::evaluation::{NamedChildren, ObservedParent, ParentEvaluation, UnreadyEntry};
use crate::types::{ChildLink, EvaluationId, LinkTarget, ObjectId, PolicyId, SelectorId};
pub(crate) use changed_rules::{ChangedRuleGroups, group_bit};
use node_table::NodeTable;
use selector_index::SelectorIndex;

/// All nodes and evaluations.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildGraph {
    nodes: NodeTable,
    evaluations: Vec<Option<Box<ParentEvaluation>>>,
    free: Vec<EvaluationId>,
    pub(crate) selectors: SelectorIndex,
    pub(crate) changed_rules: ChangedRuleGroups,
    /// Selectors that objects lend to the parents for which they count; few objects do.
    pub(crate) lent_selectors: BTreeMap<ObjectId, BTreeSet<(PolicyId, SelectorId)>>,
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
        self.find_node(id)?.parent.as_deref()
    }

    pub(crate) fn parent_mut(&mut self, id: ObjectId) -> Option<&mut ParentNode> {
        self.nodes.find_mut(id)?.parent.as_deref_mut()
    }

    pub(crate) fn parents_mut(&mut self) -> impl Iterator<Item = &mut ParentNode> {
        self.nodes.iter_mut().filter_map(|node| node.parent.as_deref_mut())
    }

    pub(crate) fn find_evaluation(&self, id: EvaluationId) -> Option<&ParentEvaluation> {
        self.evaluations.get(id.0 as usize)?.as_deref()
    }

    pub(crate) fn evaluation_mut(&mut self, id: EvaluationId) -> Option<&mut ParentEvaluation> {
        self.evaluations.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(crate) fn all_evaluations(&self) -> impl Iterator<Item = (EvaluationId, &ParentEvaluation)> {
        (0..=u32::MAX)
            .zip(&self.evaluations)
            .filter_map(|(at, roll)| Some((EvaluationId(at), roll.as_deref()?)))
    }

    pub(crate) fn evaluations_of(&self, id: ObjectId) -> &[EvaluationId] {
        self.find_node(id).and_then(|n| n.parent.as_deref()).map_or(&[], |p| p.evaluations.as_slice())
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
        let roll = Some(Box::new(ParentEvaluation::new(parent, policy)));
        let id = if let Some(id) = self.free.pop() {
            self.evaluations[id.0 as usize] = roll;
            id
        } else {
            let next = u32::try_from(self.evaluations.len());
            self.evaluations.push(roll);
            EvaluationId(next.expect("invariant: fewer than 2^32 evaluations fit into memory"))
        };
        self.node_mut(parent).parent.get_or_insert_default().evaluations.push(id);
        id
    }

    /// Drops an evaluation without edges whose parent is not observed; returns `true` if it is gone.
    pub(crate) fn drop_if_idle(&mut self, id: EvaluationId) -> bool {
        let Some(roll) = self.find_evaluation(id) else { return true };
        if roll.children.edges > 0 || roll.observed.is_some() {
            return false;
        }
        let parent = roll.parent;
        self.evaluations[id.0 as usize] = None;
        self.free.push(id);
        let node = self.node_mut(parent);
        if let Some(p) = &mut node.parent {
            p.evaluations.retain(|r| *r != id);
            if p.evaluations.as_slice().is_empty() && !node.present {
                node.parent = None;
            }
        }
        true
    }

    /// Returns the weight of an object for its owners: from its own evaluation if it is a parent, else from its verdict
    /// unless the rule of that verdict has changed.
    fn edge_weight(&self, id: ObjectId, lens: u16, policy: PolicyId, group: u8) -> ChildWeight {
        let own = self.find_node(id).map_or(UNSEEN_WEIGHT, |n| n.weights.get(lens));
        weigh_with_evaluations(
            if self.changed_rules.has_group(policy, group) { UNSEEN_WEIGHT } else { own },
            self.evaluated_weight(id),
        )
    }

    /// Returns the weight of an object from its own evaluations if it is an observed parent.
    pub(crate) fn evaluated_weight(&self, id: ObjectId) -> Option<ChildWeight> {
        let rolls = self.evaluations_of(id).iter().filter_map(|r| self.find_evaluation(*r));
        rolls.filter_map(|r| r.observed.as_ref()).map(ObservedParent::weight).min()
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
        let Some((node, roll)) = self.find_node(child).zip(self.find_evaluation(edge.evaluation)) else {
            return false;
        };
        let mut links = node
            .links
            .iter()
            .filter(|l| (l.policy, l.group, l.rule_index) == (roll.policy, edge.group, edge.rule_index));
        links.any(|link| match link.target() {
            LinkTarget::Object(parent) => parent == roll.parent,
            LinkTarget::Selector(selector) => {
                self.selectors.has_selecting_parent(roll.parent, roll.policy, selector)
            }
        })
    }

    /// Adds an edge from `child` and returns the evaluations affected by it or by a cycle that it closes; none if the
    /// edge already exists.
    pub(crate) fn attach_edge(
        &mut self,
        child: ObjectId,
        roll: EvaluationId,
        link: ChildLink,
        naming: bool,
    ) -> Vec<EvaluationId> {
        let Some(parent) = self.find_evaluation(roll).map(|r| r.parent) else { return Vec::new() };
        let (group, lens) = (link.group, link.rule_index);
        let cyclic = self.is_cyclic(child, parent);
        let Some(node) = self.find_node(child) else { return Vec::new() };
        if node.edges.iter().any(|e| e.evaluation == roll && e.group == group) {
            return Vec::new();
        }
        let (kind, name) = (node.kind, node.name);
        let weight = self.edge_weight(child, lens, link.policy, group);
        self.node_mut(child).edges.push(ChildEdge {
            evaluation: roll,
            group,
            rule_index: lens,
            cyclic,
            weight,
        });
        let Some(r) = self.evaluation_mut(roll) else { return Vec::new() };
        r.children.edges += 1;
        let mut moved = vec![roll];
        if cyclic {
            r.children.cyclic_edges += 1;
            moved.extend(self.recheck_cycles(parent));
        } else {
            r.children.add_child(UnreadyEntry { weight, group, kind, child });
            if naming {
                r.children.named.get_or_insert_default().insert((group, name, child));
            }
        }
        moved
    }

    /// Removes an edge of `child` and returns the evaluations affected by it or by a cycle that it opens.
    pub(crate) fn detach_edge(&mut self, child: ObjectId, edge: ChildEdge) -> Vec<EvaluationId> {
        let node = self.node_mut(child);
        node.edges.retain(|e| *e != edge);
        let (kind, name) = (node.kind, node.name);
        let Some(r) = self.evaluation_mut(edge.evaluation) else { return Vec::new() };
        r.children.edges -= 1;
        let mut moved = vec![edge.evaluation];
        if edge.cyclic {
            r.children.cyclic_edges -= 1;
            let parent = r.parent;
            moved.extend(self.recheck_cycles(parent));
        } else {
            r.children.remove_child(UnreadyEntry { weight: edge.weight, group: edge.group, kind, child });
            r.children.remove_name(edge.group, name, child);
        }
        moved
    }

    /// Switches whether an evaluation tracks the names of its children.
    pub(crate) fn track_names(&mut self, id: EvaluationId, on: bool) {
        if self.find_evaluation(id).is_none_or(|r| r.children.named.is_some() == on) {
            return;
        }
        let named = on.then(|| -> NamedChildren {
            let named = self.counted_edges().filter(|(_, e)| e.evaluation == id);
            named.filter_map(|(child, e)| Some((e.group, self.find_node(child)?.name, child))).collect()
        });
        if let Some(roll) = self.evaluation_mut(id) {
            roll.children.named = named;
        }
    }

    /// Updates the weight of `child` in every evaluation in which it counts and adds those evaluations to `moved`.
    pub(crate) fn reweigh_edges(&mut self, child: ObjectId, moved: &mut Vec<EvaluationId>) {
        let rolled = self.evaluated_weight(child);
        let Some(GraphNode { edges, weights, kind, .. }) = self.nodes.find_mut(child) else { return };
        for edge in edges.as_mut_slice().iter_mut().filter(|e| !e.cyclic) {
            let mut own = weights.get(edge.rule_index);
            if !self.changed_rules.is_empty() {
                let roll = self.evaluations.get(edge.evaluation.0 as usize).and_then(Option::as_ref);
                own = if roll.is_some_and(|r| self.changed_rules.has_group(r.policy, edge.group)) {
                    UNSEEN_WEIGHT
                } else {
                    own
                };
            }
            let weight = weigh_with_evaluations(own, rolled);
            let was = std::mem::replace(&mut edge.weight, weight);
            if was != weight
                && let Some(Some(roll)) = self.evaluations.get_mut(edge.evaluation.0 as usize)
            {
                let trouble = UnreadyEntry { weight: was, group: edge.group, kind: *kind, child };
                roll.children.remove_child(trouble);
                roll.children.add_child(UnreadyEntry { weight, ..trouble });
                moved.push(edge.evaluation);
            }
        }
    }

    /// Records the last creation, deletion or spec change below `roll`, and whether a child appeared.
    pub(crate) fn record_child_change(&mut self, roll: EvaluationId, at: Time, appeared: bool) {
        if let Some(roll) = self.evaluation_mut(roll) {
            roll.children.record_change(at, appeared);
        }
    }

    /// Returns every counted edge with its child.
    pub(crate) fn counted_edges(&self) -> impl Iterator<Item = (ObjectId, ChildEdge)> + '_ {
        self.nodes
            .iter()
            .flat_map(|(child, node)| node.edges.iter().filter(|e| !e.cyclic).map(move |e| (child, *e)))
    }

    /// Recounts the tallies of an evaluation from the edges of all nodes.
    pub(crate) fn recount_tallies(&self, id: EvaluationId) -> BTreeMap<u8, LevelTally> {
        let mut groups = BTreeMap::<u8, LevelTally>::new();
        let Some(policy) = self.find_evaluation(id).map(|r| r.policy) else { return groups };
        for (child, node) in self.nodes.iter() {
            for edge in node.edges.iter().filter(|e| e.evaluation == id && !e.cyclic) {
                groups.entry(edge.group).or_default().add_child(self.edge_weight(
                    child,
                    edge.rule_index,
                    policy,
                    edge.group,
                ));
            }
        }
        groups
    }
}
