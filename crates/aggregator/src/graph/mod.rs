//! Who counts for whom. Edges run from a child to the rolls of its parents; a cycle is seen and not counted.

mod cycle;
mod few;
mod nodes;
mod selected;
mod withdrawn;

use std::collections::{BTreeMap, BTreeSet};

use readiness::Time;
use readiness::rollup::{Tally, Weight};

pub(crate) use few::{Few, UNSEEN, Weights, weigh};

use crate::delivery::Delivery;
use crate::roll::{Roll, Trouble};
use crate::types::{Digest, KindId, Link, ObjectId, PolicyId, RollId, SelectorId, Target};
use nodes::Nodes;
use selected::Selectors;
pub(crate) use withdrawn::{Withdrawn, bit};

/// A child's edge to one roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) roll: RollId,
    pub(crate) group: u8,
    pub(crate) lens: u8,
    /// It lies on a cycle, and is not counted.
    pub(crate) cyclic: bool,
    /// As which the child is counted.
    pub(crate) weight: Weight,
}

/// One object. What costs memory only for parents or for unusual children sits behind a box.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) edges: Few<Edge>,
    pub(crate) links: Few<Link>,
    pub(crate) name: u64,
    pub(crate) generation: u32,
    pub(crate) kind: KindId,
    pub(crate) weights: Weights,
    pub(crate) present: bool,
    /// Its verdict changes by itself.
    pub(crate) ripens: bool,
    pub(crate) parent: Option<Box<Parent>>,
}

/// What a node is as a parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent {
    pub(crate) rolls: Few<RollId>,
    pub(crate) selects: Vec<(PolicyId, SelectorId)>,
    pub(crate) delivery: Delivery,
    /// The last digest that was offered: where it moves, the words of every ancestor may move with it.
    pub(crate) offered: Digest,
    /// Something other than itself has moved since it was last offered.
    pub(crate) provoked: bool,
    /// It has a place in the periodic pass, which it loses when its turn comes and it is ready.
    pub(crate) enrolled: bool,
    /// It was passed since anything moved.
    pub(crate) passed: bool,
    /// It is being deleted, and says so: it is left alone.
    pub(crate) taken_leave: bool,
    /// It is known when a fight over it will be over.
    pub(crate) fighting: bool,
}

/// All nodes and rolls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    nodes: Nodes,
    rolls: Vec<Option<Box<Roll>>>,
    free: Vec<RollId>,
    pub(crate) selectors: Selectors,
    pub(crate) withdrawn: Withdrawn,
    /// What objects lend to those that they count for; few do.
    pub(crate) lends: BTreeMap<ObjectId, BTreeSet<(PolicyId, SelectorId)>>,
}

impl Graph {
    pub(crate) fn node(&self, id: ObjectId) -> Option<&Node> {
        self.nodes.get(id)
    }

    pub(crate) fn node_mut(&mut self, id: ObjectId) -> &mut Node {
        self.nodes.get_mut(id)
    }

    pub(crate) fn edges_of(&self, id: ObjectId) -> Few<Edge> {
        self.node(id).map(|n| n.edges.clone()).unwrap_or_default()
    }

    pub(crate) fn parent(&self, id: ObjectId) -> Option<&Parent> {
        self.node(id)?.parent.as_deref()
    }

    pub(crate) fn parent_mut(&mut self, id: ObjectId) -> Option<&mut Parent> {
        self.nodes.find_mut(id)?.parent.as_deref_mut()
    }

    pub(crate) fn parents_mut(&mut self) -> impl Iterator<Item = &mut Parent> {
        self.nodes.iter_mut().filter_map(|node| node.parent.as_deref_mut())
    }

    pub(crate) fn roll(&self, id: RollId) -> Option<&Roll> {
        self.rolls.get(id.0 as usize)?.as_deref()
    }

    pub(crate) fn roll_mut(&mut self, id: RollId) -> Option<&mut Roll> {
        self.rolls.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(crate) fn rolls(&self) -> impl Iterator<Item = (RollId, &Roll)> {
        self.rolls.iter().enumerate().filter_map(|(at, roll)| Some((RollId(at as u32), roll.as_deref()?)))
    }

    pub(crate) fn rolls_of(&self, id: ObjectId) -> &[RollId] {
        self.node(id).and_then(|n| n.parent.as_deref()).map_or(&[], |p| p.rolls.as_slice())
    }

    pub(crate) fn roll_for(&self, parent: ObjectId, policy: PolicyId) -> Option<RollId> {
        self.rolls_of(parent).iter().copied().find(|id| self.roll(*id).is_some_and(|r| r.policy == policy))
    }

    /// The roll of `parent` under `policy`, made where there is none: a child may be seen before its parent.
    pub(crate) fn roll_at(&mut self, parent: ObjectId, policy: PolicyId) -> RollId {
        if let Some(id) = self.roll_for(parent, policy) {
            return id;
        }
        let roll = Some(Box::new(Roll::new(parent, policy)));
        let id = if let Some(id) = self.free.pop() {
            self.rolls[id.0 as usize] = roll;
            id
        } else {
            self.rolls.push(roll);
            RollId((self.rolls.len() - 1) as u32)
        };
        self.node_mut(parent).parent.get_or_insert_default().rolls.push(id);
        id
    }

    /// Drops a roll that nothing ends at and whose parent is not seen; `true` where it is gone.
    pub(crate) fn drop_if_idle(&mut self, id: RollId) -> bool {
        let Some(roll) = self.roll(id) else { return true };
        if roll.edges > 0 || roll.view.is_some() {
            return false;
        }
        let parent = roll.parent;
        self.rolls[id.0 as usize] = None;
        self.free.push(id);
        let node = self.node_mut(parent);
        if let Some(p) = &mut node.parent {
            p.rolls.retain(|r| *r != id);
            if p.rolls.as_slice().is_empty() && !node.present {
                node.parent = None;
            }
        }
        true
    }

    /// How an object counts for its owners: by its own roll where it is a parent, else by what it says of itself,
    /// unless the rule that made that of it is another one now.
    fn weight(&self, id: ObjectId, lens: u8, policy: PolicyId, group: u8) -> Weight {
        let own = self.node(id).map_or(UNSEEN, |n| n.weights.get(lens));
        weigh(if self.withdrawn.has(policy, group) { UNSEEN } else { own }, self.rolled(id))
    }

    /// How an object stands by its own rolls, where it is a parent that was seen.
    pub(crate) fn rolled(&self, id: ObjectId) -> Option<Weight> {
        let rolls = self.rolls_of(id).iter().filter_map(|r| self.roll(*r));
        rolls.filter(|r| r.view.is_some()).map(Roll::weight).min()
    }

    /// The rolls that `link` leads to now.
    pub(crate) fn rolls_behind(&mut self, link: Link) -> Vec<RollId> {
        match link.target() {
            Target::Object(parent) => vec![self.roll_at(parent, link.policy)],
            Target::Selector(selector) => {
                let parents = self.selectors.parents(selector, link.policy);
                parents.into_iter().map(|parent| self.roll_at(parent, link.policy)).collect()
            }
        }
    }

    /// Does any link of `child` lead where `edge` does?
    pub(crate) fn is_linked(&self, child: ObjectId, edge: &Edge) -> bool {
        let Some((node, roll)) = self.node(child).zip(self.roll(edge.roll)) else { return false };
        let mut links =
            node.links.iter().filter(|l| (l.policy, l.group, l.lens) == (roll.policy, edge.group, edge.lens));
        links.any(|link| match link.target() {
            Target::Object(parent) => parent == roll.parent,
            Target::Selector(selector) => self.selectors.selects(roll.parent, roll.policy, selector),
        })
    }

    /// Adds an edge from `child`: the rolls that it, or a cycle that it closes, moves. None where it was there already.
    pub(crate) fn attach(&mut self, child: ObjectId, roll: RollId, link: Link, naming: bool) -> Vec<RollId> {
        let Some(parent) = self.roll(roll).map(|r| r.parent) else { return Vec::new() };
        let (group, lens) = (link.group, link.lens);
        let cyclic = self.is_cyclic(child, parent);
        let Some(node) = self.node(child) else { return Vec::new() };
        if node.edges.iter().any(|e| e.roll == roll && e.group == group) {
            return Vec::new();
        }
        let (kind, name) = (node.kind, node.name);
        let weight = self.weight(child, lens, link.policy, group);
        self.node_mut(child).edges.push(Edge { roll, group, lens, cyclic, weight });
        let Some(r) = self.roll_mut(roll) else { return Vec::new() };
        r.edges += 1;
        r.naming = naming;
        let mut moved = vec![roll];
        if cyclic {
            r.cyclic += 1;
            moved.extend(self.recheck(parent));
        } else {
            r.enter(Trouble { weight, group, kind, child });
            if naming {
                r.named.insert((group, name, child));
            }
        }
        moved
    }

    /// Takes an edge of `child` away; the rolls that this, or a cycle that it opens, moves.
    pub(crate) fn detach(&mut self, child: ObjectId, edge: Edge) -> Vec<RollId> {
        let node = self.node_mut(child);
        node.edges.retain(|e| *e != edge);
        let (kind, name) = (node.kind, node.name);
        let Some(r) = self.roll_mut(edge.roll) else { return Vec::new() };
        r.edges -= 1;
        let mut moved = vec![edge.roll];
        if edge.cyclic {
            r.cyclic -= 1;
            let parent = r.parent;
            moved.extend(self.recheck(parent));
        } else {
            r.leave(Trouble { weight: edge.weight, group: edge.group, kind, child });
            r.named.remove(&(edge.group, name, child));
        }
        moved
    }

    /// From now on a roll remembers the names of its children, or does not.
    pub(crate) fn remember_names(&mut self, id: RollId, on: bool) {
        let Some(roll) = self.roll_mut(id).filter(|r| r.naming != on) else { return };
        roll.naming = on;
        roll.named.clear();
        if on {
            let named = self.edges().filter(|(_, e)| e.roll == id);
            let named: BTreeSet<_> =
                named.filter_map(|(child, e)| Some((e.group, self.node(child)?.name, child))).collect();
            if let Some(roll) = self.roll_mut(id) {
                roll.named = named;
            }
        }
    }

    /// Moves what `child` weighs in every roll that it counts for, and adds those rolls to `moved`.
    pub(crate) fn reweigh(&mut self, child: ObjectId, moved: &mut Vec<RollId>) {
        let rolled = self.rolled(child);
        let Some(Node { edges, weights, kind, .. }) = self.nodes.find_mut(child) else { return };
        for edge in edges.as_mut_slice().iter_mut().filter(|e| !e.cyclic) {
            let mut own = weights.get(edge.lens);
            if !self.withdrawn.is_empty() {
                let roll = self.rolls.get(edge.roll.0 as usize).and_then(Option::as_ref);
                own =
                    if roll.is_some_and(|r| self.withdrawn.has(r.policy, edge.group)) { UNSEEN } else { own };
            }
            let weight = weigh(own, rolled);
            let was = std::mem::replace(&mut edge.weight, weight);
            if was != weight
                && let Some(Some(roll)) = self.rolls.get_mut(edge.roll.0 as usize)
            {
                let trouble = Trouble { weight: was, group: edge.group, kind: *kind, child };
                roll.leave(trouble);
                roll.enter(Trouble { weight, ..trouble });
                moved.push(edge.roll);
            }
        }
    }

    /// When anything last was created, deleted or re-specified below `roll`, and did it appear?
    pub(crate) fn stir(&mut self, roll: RollId, at: Time, appeared: bool) {
        if let Some(roll) = self.roll_mut(roll) {
            roll.stirred = roll.stirred.max(at);
            if appeared {
                roll.appeared = roll.appeared.max(at);
            }
        }
    }

    /// Every edge that counts, with its child.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (ObjectId, Edge)> + '_ {
        self.nodes
            .iter()
            .flat_map(|(child, node)| node.edges.iter().filter(|e| !e.cyclic).map(move |e| (child, *e)))
    }

    /// The tallies of a roll, counted anew from the edges of all nodes.
    pub(crate) fn recount(&self, id: RollId) -> BTreeMap<u8, Tally> {
        let mut groups = BTreeMap::<u8, Tally>::new();
        let Some(policy) = self.roll(id).map(|r| r.policy) else { return groups };
        for (child, node) in self.nodes.iter() {
            for edge in node.edges.iter().filter(|e| e.roll == id && !e.cyclic) {
                groups.entry(edge.group).or_default().add(self.weight(child, edge.lens, policy, edge.group));
            }
        }
        groups
    }
}
