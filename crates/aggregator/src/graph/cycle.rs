//! Cycle detection. No edge on a cycle is counted, so the result does not depend on the order of observation.

use std::collections::BTreeSet;

use crate::evaluation::UnreadyEntry;
use crate::graph::{ChildEdge, ChildGraph};
use crate::types::{EvaluationId, ObjectId};

/// Largest number of ancestors searched for a cycle. Forged owner references could otherwise make the search unbounded.
const MAX_ANCESTORS: usize = 1_024;

impl ChildGraph {
    /// Returns `true` if an edge from `child` to an evaluation of `parent` would lie on a cycle.
    pub(crate) fn is_cyclic(&self, child: ObjectId, parent: ObjectId) -> bool {
        child == parent || self.has_parent_role(child) && self.ancestors_of(parent).contains(&child)
    }

    /// Checks every edge above `from` again after an edge there closed or opened a cycle. Returns the evaluations that
    /// gained or lost a child.
    pub(crate) fn recheck_cycles(&mut self, from: ObjectId) -> Vec<EvaluationId> {
        let mut moved = Vec::new();
        for child in self.ancestors_of(from) {
            let edges = self.find_node(child).map(|n| n.edges.clone()).unwrap_or_default();
            for edge in edges.iter() {
                let Some(parent) = self.find_evaluation(edge.evaluation).map(|r| r.parent) else { continue };
                let cyclic = self.is_cyclic(child, parent);
                if cyclic != edge.cyclic {
                    self.set_cyclic(child, *edge, cyclic);
                    moved.push(edge.evaluation);
                }
            }
        }
        moved
    }

    fn set_cyclic(&mut self, child: ObjectId, edge: ChildEdge, cyclic: bool) {
        let Some(policy) = self.find_evaluation(edge.evaluation).map(|r| r.policy) else { return };
        let weight =
            if cyclic { edge.weight } else { self.edge_weight(child, edge.rule_index, policy, edge.group) };
        let node = self.node_mut(child);
        for held in node.edges.as_mut_slice().iter_mut().filter(|e| **e == edge) {
            *held = ChildEdge { cyclic, weight, ..edge };
        }
        let (kind, name) = (node.kind, node.name);
        let trouble = UnreadyEntry { weight, group: edge.group, kind, child };
        let Some(roll) = self.evaluation_mut(edge.evaluation) else { return };
        if cyclic {
            roll.children.cyclic_edges += 1;
            roll.children.remove_child(trouble);
            roll.children.remove_name(edge.group, name, child);
        } else {
            roll.children.cyclic_edges -= 1;
            roll.children.add_child(trouble);
            roll.children.add_name(edge.group, name, child);
        }
    }

    fn has_parent_role(&self, id: ObjectId) -> bool {
        self.find_node(id).is_some_and(|n| n.parent.is_some())
    }

    /// Returns `of` and all its ancestors.
    fn ancestors_of(&self, of: ObjectId) -> BTreeSet<ObjectId> {
        let (mut stack, mut seen) = (vec![of], BTreeSet::new());
        while let Some(at) = stack.pop() {
            if seen.len() < MAX_ANCESTORS && seen.insert(at) {
                let edges = self.find_node(at).map_or(&[][..], |n| n.edges.as_slice());
                stack.extend(edges.iter().filter_map(|e| Some(self.find_evaluation(e.evaluation)?.parent)));
            }
        }
        seen
    }
}
