//! The engine's own state compared with what it was derived from, and put right where they differ.

use readiness::Time;

use super::Engine;
use crate::graph::ObjectWeights;
use crate::types::{ChangeOrigin, KindId, ObjectId, ObjectView};

/// What a recount found, and put right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecountResult {
    /// Children of which an edge was missing or too many.
    pub children: Vec<ObjectId>,
    /// Parents of which a count was wrong.
    pub parents: Vec<ObjectId>,
}

impl Engine {
    /// Objects of a kind that the engine holds to be there.
    pub fn present_objects(&self, kind: KindId) -> Vec<ObjectId> {
        self.graph.present_objects(kind)
    }

    /// Whether an object was observed as the reflector shows it now. One that changed since, or that changes with time,
    /// may not have been yet.
    pub fn is_observed_as(&self, id: ObjectId, view: Option<&ObjectView<'_>>) -> bool {
        let node = self.graph.find_node(id).filter(|node| node.present);
        match (node, view) {
            (None, None) => true,
            (Some(node), Some(view)) => {
                (node.kind, node.name, node.generation) == (view.kind, view.name, view.generation)
                    && node.links.as_slice() == view.links
                    && node.weights == ObjectWeights::from_slice(view.weights)
            }
            _ => false,
        }
    }

    /// Compares the edges of a kind's objects with their links, and all counts with their edges. What is wrong is put
    /// right, and the parents concerned are evaluated again.
    pub fn recount_kind(&mut self, now: Time, kind: KindId) -> RecountResult {
        let objects = self.graph.present_objects(kind);
        let children = objects.into_iter().filter(|id| self.mend_edges(now, *id)).collect();
        let wrong = self.graph.recount_evaluations(self.policies.changed_rules());
        let mut parents: Vec<_> =
            wrong.iter().filter_map(|id| self.graph.find_evaluation(*id).map(|held| held.parent)).collect();
        parents.dedup();
        for id in wrong {
            self.touch_evaluation(id, now, ChangeOrigin::External);
        }
        RecountResult { children, parents }
    }

    /// Whether the edges of an object differed from its links.
    fn mend_edges(&mut self, now: Time, child: ObjectId) -> bool {
        let mut differed = false;
        let edges = self.graph.edges_of(child);
        for edge in
            edges.iter().filter(|edge| !self.graph.is_linked(child, edge)).copied().collect::<Vec<_>>()
        {
            differed = true;
            self.detach_child(now, child, edge.evaluation, edge.group);
        }
        let links = self.graph.find_node(child).map(|node| node.links.clone()).unwrap_or_default();
        for link in links.iter() {
            for evaluation in self.graph.evaluations_behind(*link) {
                let edges = self.graph.edges_of(child);
                if !edges.iter().any(|edge| edge.evaluation == evaluation && edge.group == link.group) {
                    differed = true;
                    self.attach_child(now, child, evaluation, *link, now);
                }
            }
        }
        differed
    }
}

#[cfg(test)]
mod tests;
