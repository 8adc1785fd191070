//! Edges that lie on a cycle are not counted, none of them, so that it does not matter which was seen first.

use std::collections::BTreeSet;

use crate::graph::{Edge, Graph};
use crate::roll::Trouble;
use crate::types::{ObjectId, RollId};

/// A world of forged owners has no bound of its own: beyond so many ancestors nobody looks for a cycle.
const FAR: usize = 1_024;

impl Graph {
    /// Would an edge from `child` to a roll of `parent` lie on a cycle?
    pub(crate) fn is_cyclic(&self, child: ObjectId, parent: ObjectId) -> bool {
        child == parent || self.has_parent_role(child) && self.above(parent).contains(&child)
    }

    /// Looks again at every edge above `from`, after an edge there closed a cycle or opened one; the rolls that gained
    /// or lost a child by it.
    pub(crate) fn recheck(&mut self, from: ObjectId) -> Vec<RollId> {
        let mut moved = Vec::new();
        for child in self.above(from) {
            let edges = self.node(child).map(|n| n.edges.clone()).unwrap_or_default();
            for edge in edges.iter() {
                let Some(parent) = self.roll(edge.roll).map(|r| r.parent) else { continue };
                let cyclic = self.is_cyclic(child, parent);
                if cyclic != edge.cyclic {
                    self.turn(child, *edge, cyclic);
                    moved.push(edge.roll);
                }
            }
        }
        moved
    }

    fn turn(&mut self, child: ObjectId, edge: Edge, cyclic: bool) {
        let Some(policy) = self.roll(edge.roll).map(|r| r.policy) else { return };
        let weight = if cyclic { edge.weight } else { self.weight(child, edge.lens, policy, edge.group) };
        let node = self.node_mut(child);
        for held in node.edges.as_mut_slice().iter_mut().filter(|e| **e == edge) {
            *held = Edge { cyclic, weight, ..edge };
        }
        let (kind, name) = (node.kind, node.name);
        let trouble = Trouble { weight, group: edge.group, kind, child };
        let Some(roll) = self.roll_mut(edge.roll) else { return };
        if cyclic {
            roll.cyclic += 1;
            roll.leave(trouble);
            roll.named.remove(&(edge.group, name, child));
        } else {
            roll.cyclic -= 1;
            roll.enter(trouble);
            if roll.naming {
                roll.named.insert((edge.group, name, child));
            }
        }
    }

    fn has_parent_role(&self, id: ObjectId) -> bool {
        self.node(id).is_some_and(|n| n.parent.is_some())
    }

    /// `of`, its parents, their parents, and so on.
    fn above(&self, of: ObjectId) -> BTreeSet<ObjectId> {
        let (mut stack, mut seen) = (vec![of], BTreeSet::new());
        while let Some(at) = stack.pop() {
            if seen.len() < FAR && seen.insert(at) {
                let edges = self.node(at).map_or(&[][..], |n| n.edges.as_slice());
                stack.extend(edges.iter().filter_map(|e| Some(self.roll(e.roll)?.parent)));
            }
        }
        seen
    }
}
