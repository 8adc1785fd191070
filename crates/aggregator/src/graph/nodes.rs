//! Nodes by small integers, in chunks: a vector that doubles would hold up to twice what is needed.

use super::Node;
use crate::types::ObjectId;

const CHUNK: usize = 256;

/// All nodes. Ids are dense enough for a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    chunks: Vec<Option<Box<[Node; CHUNK]>>>,
}

impl Nodes {
    pub(super) fn get(&self, id: ObjectId) -> Option<&Node> {
        let at = id.0 as usize;
        Some(&self.chunks.get(at / CHUNK)?.as_ref()?[at % CHUNK])
    }

    pub(super) fn find_mut(&mut self, id: ObjectId) -> Option<&mut Node> {
        let at = id.0 as usize;
        Some(&mut self.chunks.get_mut(at / CHUNK)?.as_mut()?[at % CHUNK])
    }

    /// The node at `id`, made where there is none.
    pub(super) fn get_mut(&mut self, id: ObjectId) -> &mut Node {
        let at = id.0 as usize;
        if at / CHUNK >= self.chunks.len() {
            self.chunks.resize_with(at / CHUNK + 1, || None);
        }
        let chunk =
            self.chunks[at / CHUNK].get_or_insert_with(|| Box::new(std::array::from_fn(|_| Node::default())));
        &mut chunk[at % CHUNK]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.chunks.iter_mut().flatten().flat_map(|chunk| chunk.iter_mut())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ObjectId, &Node)> {
        let chunks = self.chunks.iter().enumerate().filter_map(|(at, chunk)| Some((at, chunk.as_ref()?)));
        chunks.flat_map(|(chunk, nodes)| {
            nodes.iter().enumerate().map(move |(at, node)| (ObjectId((chunk * CHUNK + at) as u32), node))
        })
    }
}
