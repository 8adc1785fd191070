//! Tallies counted again from the edges, a slice of the evaluations at a time: what all of them amount to would for a
//! moment take a good part of what the engine holds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use readiness::rollup::LevelTally;

use super::edge_weights::EdgeWeights;
use super::evaluation_table::EvaluationTable;
use super::graph_node::{ChildEdge, GraphNode};
use super::node_table::NodeTable;
use crate::changed_rules::ChangedRuleGroups;
use crate::evaluation::{NamedChildren, UnreadyEntry, UnreadySet};
use crate::ids::{EvaluationId, ObjectId};

/// Largest number of slices, each of which is one walk over all edges.
const MAX_SLICES: usize = 16;
/// Smallest number of evaluations in a slice. Their sums take about a megabyte.
const MIN_SLICE: usize = 1_024;

/// What the edges to one evaluation amount to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EdgeSum {
    pub(super) groups: BTreeMap<u8, LevelTally>,
    pub(super) unready: BTreeSet<UnreadyEntry>,
    pub(super) named: NamedChildren,
    pub(super) edges: u32,
    pub(super) cyclic_edges: u32,
}

/// Recount of what the edges to all evaluations amount to.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeRecount<'g> {
    pub(super) weights: EdgeWeights<'g>,
}

impl EdgeRecount<'_> {
    /// Counts all evaluations again. Returns those that disagree, with what they should hold.
    pub(super) fn find_wrong_sums(self) -> Vec<(EvaluationId, EdgeSum)> {
        let slots = self.weights.evaluations.slot_count();
        let slice = (slots / MAX_SLICES).max(MIN_SLICE);
        let slices = (0..slots).step_by(slice).map(|first| first..slots.min(first + slice));
        slices.flat_map(|slice| self.find_wrong_sums_in(slice)).collect()
    }

    /// Counts the evaluations in these slots again.
    fn find_wrong_sums_in(self, slots: Range<usize>) -> Vec<(EvaluationId, EdgeSum)> {
        let sums = self.sum_edges(&slots);
        let ids =
            slots.zip(sums).filter_map(|(slot, sum)| Some((self.weights.evaluations.id_at(slot)?, sum)));
        ids.filter(|(id, sum)| self.held_sum(*id).as_ref() != Some(sum)).collect()
    }

    /// Recounts the tallies of one evaluation.
    pub(super) fn recount_tallies(self, id: EvaluationId) -> BTreeMap<u8, LevelTally> {
        let mut groups = BTreeMap::<u8, LevelTally>::new();
        let Some(policy) = self.weights.evaluations.get(id).map(|held| held.policy) else { return groups };
        for (child, node) in self.weights.nodes.iter() {
            for edge in node.edges.iter().filter(|e| e.evaluation == id && !e.cyclic) {
                let weight = self.weights.weigh(child, edge.rule_index, policy, edge.group);
                groups.entry(edge.group).or_default().add_child(weight);
            }
        }
        groups
    }

    /// Returns what the edges to the evaluations in these slots amount to, in the order of the slots.
    fn sum_edges(self, slots: &Range<usize>) -> Vec<EdgeSum> {
        let mut sums = Vec::new();
        sums.resize_with(slots.len(), EdgeSum::default);
        for (child, node) in self.weights.nodes.iter() {
            for edge in node.edges.iter() {
                let place = edge.evaluation.index().checked_sub(slots.start);
                let Some(sum) = place.and_then(|place| sums.get_mut(place)) else { continue };
                self.add_edge(sum, child, node, edge);
            }
        }
        sums
    }

    fn add_edge(self, sum: &mut EdgeSum, child: ObjectId, node: &GraphNode, edge: &ChildEdge) {
        sum.edges += 1;
        if edge.cyclic {
            sum.cyclic_edges += 1;
            return;
        }
        let Some(evaluation) = self.weights.evaluations.get(edge.evaluation) else { return };
        let weight = self.weights.weigh(child, edge.rule_index, evaluation.policy, edge.group);
        sum.groups.entry(edge.group).or_default().add_child(weight);
        if !weight.is_ready() {
            let entry = UnreadyEntry { weight, group: edge.group, kind: node.kind, child };
            sum.unready.insert(entry);
        }
        if evaluation.children.named.is_some() {
            sum.named.insert((edge.group, node.name, child));
        }
    }

    fn held_sum(self, id: EvaluationId) -> Option<EdgeSum> {
        let held = &self.weights.evaluations.get(id)?.children;
        Some(EdgeSum {
            groups: held.nonempty_tallies(),
            unready: held.unready.iter().copied().collect(),
            named: held.named.as_deref().cloned().unwrap_or_default(),
            edges: held.edges,
            cyclic_edges: held.cyclic_edges,
        })
    }
}

/// Puts right what a recount found wrong.
#[derive(Debug)]
pub(super) struct EdgeCorrection<'g> {
    pub(super) nodes: &'g mut NodeTable,
    pub(super) evaluations: &'g mut EvaluationTable,
    pub(super) changed_rules: &'g ChangedRuleGroups,
}

impl EdgeCorrection<'_> {
    /// Gives an evaluation what its edges amount to, and each of these edges its weight.
    pub(super) fn put_right(self, id: EvaluationId, sum: EdgeSum) {
        for (child, right) in self.weighed_edges(id) {
            let edges = self.nodes.get_or_insert(child).edges.as_mut_slice();
            let same = |edge: &&mut ChildEdge| edge.evaluation == id && edge.group == right.group;
            if let Some(edge) = edges.iter_mut().find(same) {
                *edge = right;
            }
        }
        if let Some(held) = self.evaluations.find_mut(id).map(|held| &mut held.children) {
            held.groups = sum.groups.into_iter().collect();
            held.unready = UnreadySet::default();
            sum.unready.into_iter().for_each(|entry| held.unready.insert(entry));
            held.named = held.named.take().map(|_| Box::new(sum.named));
            (held.edges, held.cyclic_edges) = (sum.edges, sum.cyclic_edges);
        }
    }

    /// Returns the edges that count for an evaluation, each with the weight that it should have.
    fn weighed_edges(&self, id: EvaluationId) -> Vec<(ObjectId, ChildEdge)> {
        let (nodes, evaluations, changed_rules) = (&*self.nodes, &*self.evaluations, self.changed_rules);
        let Some(policy) = evaluations.get(id).map(|held| held.policy) else { return Vec::new() };
        let weights = EdgeWeights { nodes, evaluations, changed_rules };
        let edges = nodes.iter().flat_map(|(child, node)| node.edges.iter().map(move |edge| (child, *edge)));
        let counted = edges.filter(|(_, edge)| edge.evaluation == id && !edge.cyclic);
        let weigh = |(child, edge): (ObjectId, ChildEdge)| {
            let weight = weights.weigh(child, edge.rule_index, policy, edge.group);
            (child, ChildEdge { weight, ..edge })
        };
        counted.map(weigh).collect()
    }
}
