//! Cycle detection. No edge on a cycle is counted, so the result does not depend on the order of observation.
//!
//! Whoever may create parents may let all of them own each other. What has changed is therefore looked at once for many
//! changes, and each edge above it once: by Tarjan's algorithm for strongly connected components.

use std::collections::BTreeMap;

use super::evaluation_table::EvaluationTable;
use super::node_table::NodeTable;
use crate::ids::ObjectId;

/// Search for cycles among the edges of a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleSearch<'g> {
    pub(super) nodes: &'g NodeTable,
    pub(super) evaluations: &'g EvaluationTable,
}

/// Object that the search has reached.
#[derive(Clone, Copy, Debug)]
struct ReachedObject {
    /// Order in which it was reached.
    number: u32,
    /// Smallest number that it leads back to, as far as is known.
    lowest: u32,
    /// No component has it yet.
    is_open: bool,
}

/// Object whose edges are being followed.
#[derive(Debug)]
struct OpenPath {
    object: ObjectId,
    parents: Vec<ObjectId>,
}

/// State of a search.
#[derive(Debug, Default)]
struct ComponentSearch {
    reached: BTreeMap<ObjectId, ReachedObject>,
    path: Vec<OpenPath>,
    /// Objects without a component, in the order in which they were reached.
    open: Vec<ObjectId>,
    components: BTreeMap<ObjectId, ObjectId>,
}

impl CycleSearch<'_> {
    /// Returns `false` if an edge from `child` to an evaluation of `parent` lies on no cycle, as most edges.
    pub(super) fn may_close_cycle(&self, child: ObjectId, parent: ObjectId) -> bool {
        let has_parents = || self.nodes.get(parent).is_some_and(|node| !node.edges.as_slice().is_empty());
        child == parent || self.nodes.find_parent(child).is_some() && has_parents()
    }

    /// Returns these objects and all above them, each with one object of its component: those that lie on a cycle together have
    /// the same, and no others.
    pub(super) fn components_above(
        &self,
        objects: impl IntoIterator<Item = ObjectId>,
    ) -> BTreeMap<ObjectId, ObjectId> {
        let mut search = ComponentSearch::default();
        for object in objects {
            if !search.reached.contains_key(&object) {
                search.reach(object, self.parents_of(object));
            }
            while let Some(OpenPath { object, parents }) = search.path.last_mut() {
                let object = *object;
                match parents.pop() {
                    Some(parent) => match search.reached.get(&parent).copied() {
                        Some(known) if known.is_open => search.lower(object, known.number),
                        Some(_) => {}
                        None => search.reach(parent, self.parents_of(parent)),
                    },
                    None => search.leave(object),
                }
            }
        }
        search.components
    }

    fn parents_of(&self, object: ObjectId) -> Vec<ObjectId> {
        let edges = self.nodes.get(object).map_or(&[][..], |node| node.edges.as_slice());
        let mut parents: Vec<_> =
            edges.iter().filter_map(|edge| Some(self.evaluations.get(edge.evaluation)?.parent)).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }
}

impl ComponentSearch {
    fn reach(&mut self, object: ObjectId, parents: Vec<ObjectId>) {
        let number = u32::try_from(self.reached.len()).unwrap_or(u32::MAX);
        self.reached.insert(object, ReachedObject { number, lowest: number, is_open: true });
        self.open.push(object);
        self.path.push(OpenPath { object, parents });
    }

    fn lower(&mut self, object: ObjectId, number: u32) {
        if let Some(reached) = self.reached.get_mut(&object) {
            reached.lowest = reached.lowest.min(number);
        }
    }

    /// Leaves an object of which all edges were followed. If it leads back to none that was reached before it, what was reached
    /// since and has no component is its component.
    fn leave(&mut self, object: ObjectId) {
        self.path.pop();
        let Some(ReachedObject { number, lowest, .. }) = self.reached.get(&object).copied() else { return };
        if let Some(below) = self.path.last().map(|below| below.object) {
            self.lower(below, lowest);
        }
        if lowest < number {
            return;
        }
        let first = self.open.iter().rposition(|open| *open == object).unwrap_or(self.open.len());
        for member in self.open.split_off(first) {
            self.components.insert(member, object);
            if let Some(reached) = self.reached.get_mut(&member) {
                reached.is_open = false;
            }
        }
    }
}
