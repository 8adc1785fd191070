//! Tallies counted again from the edges, all of them in one pass.

use std::collections::{BTreeMap, BTreeSet};

use readiness::Level;
use readiness::rollup::LevelTally;

use super::{ChildEdge, ChildGraph};
use crate::evaluation::{NamedChildren, UnreadyEntry, UnreadySet};
use crate::types::{EvaluationId, KindId, ObjectId};

/// What the edges to one evaluation amount to.
#[derive(Debug, Default, PartialEq, Eq)]
struct EdgeSum {
    groups: BTreeMap<u8, LevelTally>,
    unready: BTreeSet<UnreadyEntry>,
    named: NamedChildren,
    edges: u32,
    cyclic_edges: u32,
}

impl ChildGraph {
    /// Present objects of a kind.
    pub(crate) fn present_objects(&self, kind: KindId) -> Vec<ObjectId> {
        let of_kind = self.nodes.iter().filter(|(_, node)| node.present && node.kind == kind);
        of_kind.map(|(id, _)| id).collect()
    }

    /// Counts all evaluations again, and puts right those that disagree. Returns these.
    pub(crate) fn recount_evaluations(&mut self) -> Vec<EvaluationId> {
        let mut sums = self.sum_edges();
        let none = EdgeSum::default();
        let wrong: Vec<_> = self
            .all_evaluations()
            .map(|(id, _)| id)
            .filter(|id| self.held_sum(*id).as_ref() != Some(sums.get(id).unwrap_or(&none)))
            .collect();
        for id in &wrong {
            self.set_edge_sum(*id, sums.remove(id).unwrap_or_default());
        }
        wrong
    }

    fn sum_edges(&self) -> BTreeMap<EvaluationId, EdgeSum> {
        let mut sums = BTreeMap::<EvaluationId, EdgeSum>::new();
        for (child, node) in self.nodes.iter() {
            for edge in node.edges.iter() {
                let sum = sums.entry(edge.evaluation).or_default();
                sum.edges += 1;
                if edge.cyclic {
                    sum.cyclic_edges += 1;
                    continue;
                }
                let Some(evaluation) = self.find_evaluation(edge.evaluation) else { continue };
                let weight = self.edge_weight(child, edge.rule_index, evaluation.policy, edge.group);
                sum.groups.entry(edge.group).or_default().add_child(weight);
                if weight.level != Level::Ready {
                    let entry = UnreadyEntry { weight, group: edge.group, kind: node.kind, child };
                    sum.unready.insert(entry);
                }
                if evaluation.children.named.is_some() {
                    sum.named.insert((edge.group, node.name, child));
                }
            }
        }
        sums
    }

    fn held_sum(&self, id: EvaluationId) -> Option<EdgeSum> {
        let held = &self.find_evaluation(id)?.children;
        Some(EdgeSum {
            groups: held.nonempty_tallies(),
            unready: held.unready.iter().copied().collect(),
            named: held.named.clone().unwrap_or_default(),
            edges: held.edges,
            cyclic_edges: held.cyclic_edges,
        })
    }

    fn set_edge_sum(&mut self, id: EvaluationId, sum: EdgeSum) {
        let Some(policy) = self.find_evaluation(id).map(|held| held.policy) else { return };
        let weights: Vec<(ObjectId, ChildEdge)> = self
            .counted_edges()
            .filter(|(_, edge)| edge.evaluation == id)
            .map(|(child, edge)| {
                let weight = self.edge_weight(child, edge.rule_index, policy, edge.group);
                (child, ChildEdge { weight, ..edge })
            })
            .collect();
        for (child, right) in weights {
            let edges = self.node_mut(child).edges.as_mut_slice();
            let same = |edge: &&mut ChildEdge| edge.evaluation == id && edge.group == right.group;
            if let Some(edge) = edges.iter_mut().find(same) {
                *edge = right;
            }
        }
        if let Some(held) = self.evaluation_mut(id).map(|held| &mut held.children) {
            held.groups = sum.groups.into_iter().collect();
            held.unready = UnreadySet::default();
            sum.unready.into_iter().for_each(|entry| held.unready.insert(entry));
            held.named = held.named.take().map(|_| sum.named);
            (held.edges, held.cyclic_edges) = (sum.edges, sum.cyclic_edges);
        }
    }
}
