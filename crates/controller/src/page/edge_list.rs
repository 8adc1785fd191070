//! Edges from parents to children, for the trees that are drawn.

use aggregator::{ChildOf, ObjectId, PolicyId};

/// All counted edges, sorted by parent and policy.
#[derive(Debug, Default)]
pub(super) struct EdgeList(Vec<ChildOf>);

impl EdgeList {
    pub(super) fn new(mut edges: Vec<ChildOf>) -> EdgeList {
        edges.sort_unstable_by_key(|edge| (edge.parent, edge.policy, edge.child));
        EdgeList(edges)
    }

    /// Children of a parent under a policy.
    pub(super) fn children_of(&self, parent: ObjectId, policy: PolicyId) -> &[ChildOf] {
        let from = self.0.partition_point(|edge| (edge.parent, edge.policy) < (parent, policy));
        let to = self.0.partition_point(|edge| (edge.parent, edge.policy) <= (parent, policy));
        &self.0[from..to]
    }
}
