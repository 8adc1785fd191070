//! All edges that are counted.

use std::slice;

use super::graph_node::ChildEdge;
use super::node_table::NodeIter;
use crate::ids::ObjectId;

/// Every edge that is on no cycle, with its child.
pub(super) struct CountedEdges<'g> {
    nodes: NodeIter<'g>,
    child: ObjectId,
    /// Edges of that child.
    edges: slice::Iter<'g, ChildEdge>,
}

impl<'g> CountedEdges<'g> {
    pub(super) fn of_nodes(nodes: NodeIter<'g>) -> CountedEdges<'g> {
        CountedEdges { nodes, child: ObjectId(0), edges: [].iter() }
    }
}

impl Iterator for CountedEdges<'_> {
    type Item = (ObjectId, ChildEdge);

    #[inline]
    fn next(&mut self) -> Option<(ObjectId, ChildEdge)> {
        loop {
            if let Some(edge) = self.edges.find(|edge| !edge.cyclic) {
                return Some((self.child, *edge));
            }
            let (child, node) = self.nodes.next()?;
            (self.child, self.edges) = (child, node.edges.iter());
        }
    }
}
