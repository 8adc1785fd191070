//! Nodes indexed by small integers, in chunks: a vector that doubles could hold up to twice the memory needed.

use std::slice;

use super::graph_node::{GraphNode, ParentNode};
use super::marked_set::MarkedSet;
use crate::ids::{EvaluationId, ObjectId};

const IDS_PER_CHUNK: u32 = 256;
const NODES_PER_CHUNK: usize = IDS_PER_CHUNK as usize;

/// All nodes. The ids are dense enough for a table.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeTable {
    chunks: Vec<Option<Box<[GraphNode; NODES_PER_CHUNK]>>>,
    /// Parents that may have changed.
    changed_parents: MarkedSet,
}

impl NodeTable {
    pub(super) fn get(&self, id: ObjectId) -> Option<&GraphNode> {
        let at = id.0 as usize;
        Some(&self.chunks.get(at / NODES_PER_CHUNK)?.as_ref()?[at % NODES_PER_CHUNK])
    }

    pub(super) fn find_parent(&self, id: ObjectId) -> Option<&ParentNode> {
        self.get(id)?.parent.as_deref()
    }

    /// Returns the evaluations of an object that is a parent.
    pub(super) fn evaluations_of(&self, id: ObjectId) -> &[EvaluationId] {
        self.find_parent(id).map_or(&[], |parent| parent.evaluations.as_slice())
    }

    pub(super) fn find_mut(&mut self, id: ObjectId) -> Option<&mut GraphNode> {
        let at = id.0 as usize;
        Some(&mut self.chunks.get_mut(at / NODES_PER_CHUNK)?.as_mut()?[at % NODES_PER_CHUNK])
    }

    /// Returns a parent that may change, marked as changed.
    pub(super) fn parent_mut(&mut self, id: ObjectId) -> Option<&mut ParentNode> {
        let at = id.0 as usize;
        let chunk = self.chunks.get_mut(at / NODES_PER_CHUNK)?.as_mut()?;
        let parent = chunk[at % NODES_PER_CHUNK].parent.as_deref_mut()?;
        self.changed_parents.insert(id.0);
        Some(parent)
    }

    /// Takes the parents that may have changed since the last call: each once.
    pub(super) fn take_changed_parents(&mut self) -> Vec<ObjectId> {
        self.changed_parents.take_all().into_iter().map(ObjectId).collect()
    }

    /// Returns the node at `id`, created if there is none.
    pub(super) fn get_or_insert(&mut self, id: ObjectId) -> &mut GraphNode {
        let at = id.0 as usize;
        if self.get(id).is_none() {
            self.insert_chunk(at / NODES_PER_CHUNK);
        }
        let chunk = self.chunks[at / NODES_PER_CHUNK].as_mut().expect("invariant: it was inserted above");
        &mut chunk[at % NODES_PER_CHUNK]
    }

    /// Inserts a chunk that is not there. Never inlined: a chunk is built on the stack, and every caller would make room for
    /// it at every call.
    #[cold]
    #[inline(never)]
    fn insert_chunk(&mut self, at: usize) {
        if at >= self.chunks.len() {
            self.chunks.resize_with(at + 1, || None);
        }
        self.chunks[at] = Some(Box::new(std::array::from_fn(|_| GraphNode::default())));
    }

    /// Changes every parent, marked as changed.
    pub(super) fn change_parents(&mut self, change: impl Fn(&mut ParentNode)) {
        let firsts = (0..=u32::MAX).step_by(NODES_PER_CHUNK);
        for (first, chunk) in firsts.zip(&mut self.chunks) {
            for (id, node) in (first..).zip(chunk.iter_mut().flat_map(|chunk| chunk.iter_mut())) {
                if let Some(parent) = node.parent.as_deref_mut() {
                    change(parent);
                    self.changed_parents.insert(id);
                }
            }
        }
    }

    pub(super) fn iter(&self) -> NodeIter<'_> {
        NodeIter { chunks: self.chunks.iter(), nodes: [].iter(), next: 0, after: 0 }
    }
}

/// All nodes with their ids. A page asks for all of them at once: adapters of ranges took twice as long.
pub(super) struct NodeIter<'t> {
    chunks: slice::Iter<'t, Option<Box<[GraphNode; NODES_PER_CHUNK]>>>,
    nodes: slice::Iter<'t, GraphNode>,
    /// Id of the next node, if there is one in this chunk.
    next: u32,
    /// Id of the first node of the next chunk.
    after: u32,
}

impl<'t> Iterator for NodeIter<'t> {
    type Item = (ObjectId, &'t GraphNode);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(node) = self.nodes.next() {
                let id = self.next;
                self.next = id.wrapping_add(1);
                return Some((ObjectId(id), node));
            }
            let chunk = self.chunks.next()?;
            self.next = self.after;
            self.after = self.after.wrapping_add(IDS_PER_CHUNK);
            self.nodes = chunk.as_ref().map_or([].iter(), |nodes| nodes.iter());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_for_one_node_and_takes_none_away() {
        let mut table = NodeTable::default();
        for id in [700, 0, 300, 256, 255, 700] {
            table.get_or_insert(ObjectId(id)).name = u64::from(id);
            assert_eq!(table.chunks.len(), 3, "{id}");
        }
        for id in [700, 0, 300, 256, 255] {
            assert_eq!(table.get(ObjectId(id)).map(|node| node.name), Some(u64::from(id)));
        }
        assert!(table.get(ObjectId(768)).is_none() && table.find_mut(ObjectId(768)).is_none());
        let held = table.iter().filter(|(id, node)| node.name != 0 && node.name == u64::from(id.0));
        assert_eq!(held.map(|(id, _)| id.0).collect::<Vec<_>>(), [255, 256, 300, 700]);
    }
}
