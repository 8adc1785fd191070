//! Tallies counted again from the edges, all of them in one pass.

use std::collections::{BTreeMap, BTreeSet};

use readiness::rollup::LevelTally;

use super::edge_weights::EdgeWeights;
use crate::evaluation::{NamedChildren, UnreadyEntry};
use crate::ids::EvaluationId;

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
        let mut sums = self.sum_edges();
        let ids = self.weights.evaluations.iter().map(|(id, _)| id);
        let counted: Vec<_> = ids.map(|id| (id, sums.remove(&id).unwrap_or_default())).collect();
        counted.into_iter().filter(|(id, sum)| self.held_sum(*id).as_ref() != Some(sum)).collect()
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

    fn sum_edges(self) -> BTreeMap<EvaluationId, EdgeSum> {
        let mut sums = BTreeMap::<EvaluationId, EdgeSum>::new();
        for (child, node) in self.weights.nodes.iter() {
            for edge in node.edges.iter() {
                let sum = sums.entry(edge.evaluation).or_default();
                sum.edges += 1;
                if edge.cyclic {
                    sum.cyclic_edges += 1;
                    continue;
                }
                let Some(evaluation) = self.weights.evaluations.get(edge.evaluation) else { continue };
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
        }
        sums
    }

    fn held_sum(self, id: EvaluationId) -> Option<EdgeSum> {
        let held = &self.weights.evaluations.get(id)?.children;
        Some(EdgeSum {
            groups: held.nonempty_tallies(),
            unready: held.unready.iter().copied().collect(),
            named: held.named.clone().unwrap_or_default(),
            edges: held.edges,
            cyclic_edges: held.cyclic_edges,
        })
    }
}
