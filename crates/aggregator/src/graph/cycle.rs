//! Cycle detection. No edge on a cycle is counted, so the result does not depend on the order of observation.

use std::collections::BTreeSet;

use super::evaluation_table::EvaluationTable;
use super::node_table::NodeTable;
use crate::ids::ObjectId;

/// Largest number of ancestors searched for a cycle. Forged owner references could otherwise make the search unbounded.
const MAX_ANCESTORS: usize = 1_024;

/// Search for cycles among the edges of a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleSearch<'g> {
    pub(super) nodes: &'g NodeTable,
    pub(super) evaluations: &'g EvaluationTable,
}

impl CycleSearch<'_> {
    /// Returns `true` if an edge from `child` to an evaluation of `parent` would lie on a cycle.
    pub(super) fn is_cyclic(&self, child: ObjectId, parent: ObjectId) -> bool {
        child == parent
            || self.nodes.find_parent(child).is_some() && self.ancestors_of(parent).contains(&child)
    }

    /// Returns `of` and all its ancestors.
    pub(super) fn ancestors_of(&self, of: ObjectId) -> BTreeSet<ObjectId> {
        let (mut stack, mut seen) = (vec![of], BTreeSet::new());
        while let Some(at) = stack.pop() {
            if seen.len() < MAX_ANCESTORS && seen.insert(at) {
                let edges = self.nodes.get(at).map_or(&[][..], |node| node.edges.as_slice());
                let parents = edges.iter().filter_map(|e| Some(self.evaluations.get(e.evaluation)?.parent));
                stack.extend(parents);
            }
        }
        seen
    }
}
