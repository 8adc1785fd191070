//! Who counts for whom. Edges run from a child to the rolls of its parents; a cycle is seen and not counted.

use std::collections::{BTreeMap, BTreeSet};

use readiness::Time;
use readiness::rollup::Weight;

use crate::roll::{Roll, Trouble};
use crate::types::{KindId, Link, ObjectId, PolicyId, RollId, SelectorId, Target};

/// A child's edge to one roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) roll: RollId,
    pub(crate) group: u8,
    pub(crate) lens: u8,
    /// Counting it would close a cycle.
    pub(crate) cyclic: bool,
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
    pub(crate) parent: Option<Box<Parent>>,
}

/// None or one inline, more in a vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Box<[T]>),
}

impl<T: Copy> Few<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Few::None => &[],
            Few::One(one) => std::slice::from_ref(one),
            Few::Many(many) => many,
        }
    }

    pub(crate) fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            Few::None => Few::One(item),
            Few::One(one) => Few::Many(Box::new([one, item])),
            Few::Many(many) => Few::Many(many.iter().copied().chain([item]).collect()),
        };
    }

    pub(crate) fn from_slice(items: &[T]) -> Self {
        match items {
            [] => Few::None,
            [one] => Few::One(*one),
            many => Few::Many(many.into()),
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let kept: Vec<T> = self.as_slice().iter().copied().filter(|item| keep(item)).collect();
        *self = Few::from_slice(&kept);
    }
}

/// The verdicts of one object, one per lens: almost always one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    One(Weight),
    Many(Box<[Weight]>),
}

/// What was not seen is unknown.
const UNSEEN: Weight = Weight { level: readiness::Level::Unknown, terminal: false };

impl Default for Weights {
    fn default() -> Self {
        Weights::One(UNSEEN)
    }
}

impl Weights {
    pub(crate) fn of(weights: &[Weight]) -> Self {
        match weights {
            [] => Weights::default(),
            [one] => Weights::One(*one),
            many => Weights::Many(many.into()),
        }
    }

    pub(crate) fn get(&self, lens: u8) -> Weight {
        match self {
            Weights::One(one) => *one,
            Weights::Many(many) => many
                .get(usize::from(lens))
                .or(many.first())
                .copied()
                .unwrap_or(Weight { level: readiness::Level::Unknown, terminal: false }),
        }
    }
}

/// By its rolls, but being deleted is not something that a roll of children knows better.
pub(crate) fn weigh(own: Weight, rolled: Option<Weight>) -> Weight {
    match rolled {
        Some(rolled) if !matches!(own.level, readiness::Level::Stuck | readiness::Level::Terminating) => {
            rolled
        }
        _ => own,
    }
}

/// What a node is as a parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent {
    pub(crate) rolls: Vec<RollId>,
    pub(crate) selects: Vec<(PolicyId, SelectorId)>,
    pub(crate) delivery: crate::delivery::Delivery,
    /// The last digest that was offered: where it moves, the words of every ancestor may move with it.
    pub(crate) offered: crate::types::Digest,
    /// It is being deleted, and says so: it is left alone.
    pub(crate) taken_leave: bool,
}

/// All nodes and rolls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    rolls: Vec<Option<Box<Roll>>>,
    free: Vec<RollId>,
    selected: BTreeMap<SelectorId, Selected>,
    /// Policies that expect children by name: only their rolls remember names.
    naming: BTreeSet<PolicyId>,
}

#[derive(Clone, Debug, Default)]
struct Selected {
    parents: BTreeSet<(ObjectId, PolicyId)>,
    children: BTreeSet<(ObjectId, Link)>,
}

impl Graph {
    /// From now on rolls of `policy` remember the names of their children, or do not.
    pub(crate) fn remember_names(&mut self, policy: PolicyId, on: bool) {
        if on {
            self.naming.insert(policy);
        } else {
            self.naming.remove(&policy);
        }
    }

    pub(crate) fn node(&self, id: ObjectId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    pub(crate) fn node_mut(&mut self, id: ObjectId) -> &mut Node {
        let at = id.0 as usize;
        if at >= self.nodes.len() {
            self.nodes.resize_with(at + 1, Node::default);
        }
        &mut self.nodes[at]
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
        self.node(id).and_then(|n| n.parent.as_deref()).map_or(&[], |p| &p.rolls)
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
            if p.rolls.is_empty() {
                node.parent = None;
            }
        }
        true
    }

    /// How an object counts for its owners: by its own roll where it is a parent, else by what it says of itself.
    pub(crate) fn weight(&self, id: ObjectId, lens: u8) -> Weight {
        let own = self.node(id).map_or(UNSEEN, |n| n.weights.get(lens));
        weigh(own, self.rolled(id))
    }

    /// How an object stands by its own rolls, where it is a parent that was seen.
    pub(crate) fn rolled(&self, id: ObjectId) -> Option<Weight> {
        let rolls = self.rolls_of(id).iter().filter_map(|r| self.roll(*r));
        rolls.filter(|r| r.view.is_some()).map(Roll::weight).min()
    }

    /// The rolls that `link` leads to now.
    pub(crate) fn rolls_behind(&mut self, link: Link) -> Vec<RollId> {
        match link.target {
            Target::Object(parent) => vec![self.roll_at(parent, link.policy)],
            Target::Selector(selector) => {
                let parents: Vec<_> = self
                    .selected
                    .get(&selector)
                    .map(|s| s.parents.iter().filter(|(_, p)| *p == link.policy).map(|(id, _)| *id).collect())
                    .unwrap_or_default();
                parents.into_iter().map(|parent| self.roll_at(parent, link.policy)).collect()
            }
        }
    }

    /// Remembers, or forgets, that a child hangs on a selector.
    pub(crate) fn hang(&mut self, child: ObjectId, link: Link, on: bool) {
        let Target::Selector(selector) = link.target else { return };
        if on {
            self.selected.entry(selector).or_default().children.insert((child, link));
        } else {
            self.unhang(selector, |s| s.children.remove(&(child, link)));
        }
    }

    fn unhang(&mut self, selector: SelectorId, remove: impl FnOnce(&mut Selected) -> bool) {
        if let Some(selected) = self.selected.get_mut(&selector) {
            remove(selected);
            if selected.children.is_empty() && selected.parents.is_empty() {
                self.selected.remove(&selector);
            }
        }
    }

    /// A parent starts, or stops, selecting; the children that it gains or loses.
    pub(crate) fn select(
        &mut self,
        parent: ObjectId,
        policy: PolicyId,
        selector: SelectorId,
        on: bool,
    ) -> Vec<(ObjectId, Link)> {
        let children =
            |s: &Selected| s.children.iter().copied().filter(|(_, l)| l.policy == policy).collect();
        if on {
            let selected = self.selected.entry(selector).or_default();
            selected.parents.insert((parent, policy));
            return children(selected);
        }
        let lost = self.selected.get(&selector).map(children).unwrap_or_default();
        self.unhang(selector, |s| s.parents.remove(&(parent, policy)));
        lost
    }

    /// Adds an edge from `child`; `false` where it was there already.
    pub(crate) fn attach(&mut self, child: ObjectId, roll: RollId, link: Link) -> bool {
        let parent = match self.roll(roll) {
            Some(r) => r.parent,
            None => return false,
        };
        let (group, lens) = (link.group, link.lens);
        let cyclic = parent == child || self.is_above(child, parent);
        let node = self.node_mut(child);
        if node.edges.as_slice().iter().any(|e| e.roll == roll && e.group == group) {
            return false;
        }
        node.edges.push(Edge { roll, group, lens, cyclic });
        let (kind, name) = (node.kind, node.name);
        let weight = self.weight(child, lens);
        let naming = self.naming.contains(&link.policy);
        let Some(r) = self.roll_mut(roll) else { return false };
        r.edges += 1;
        if cyclic {
            r.cyclic += 1;
        } else {
            r.enter(Trouble { weight, group, kind, child });
            if naming {
                r.named.insert((group, name, child));
            }
        }
        true
    }

    /// Takes an edge of `child` away, counted as `weight` until now.
    pub(crate) fn detach(&mut self, child: ObjectId, edge: Edge, weight: Weight) {
        let node = self.node_mut(child);
        node.edges.retain(|e| *e != edge);
        let (kind, name) = (node.kind, node.name);
        let Some(r) = self.roll_mut(edge.roll) else { return };
        r.edges -= 1;
        if edge.cyclic {
            r.cyclic -= 1;
        } else {
            r.leave(Trouble { weight, group: edge.group, kind, child });
            r.named.remove(&(edge.group, name, child));
        }
    }

    /// Is `id` among the ancestors of `of`? Bounded, because a world of forged owners has no bound of its own.
    fn is_above(&self, id: ObjectId, of: ObjectId) -> bool {
        if self.node(id).is_none_or(|n| n.parent.is_none()) {
            return false;
        }
        let (mut stack, mut seen) = (vec![of], BTreeSet::new());
        while let Some(at) = stack.pop() {
            if at == id {
                return true;
            }
            if seen.len() > 1_024 || !seen.insert(at) {
                continue;
            }
            let edges = self.node(at).map_or(&[][..], |n| n.edges.as_slice());
            stack.extend(edges.iter().filter(|e| !e.cyclic).filter_map(|e| Some(self.roll(e.roll)?.parent)));
        }
        false
    }

    /// Moves what `child` weighs in every roll that it counts for; those rolls.
    pub(crate) fn reweigh(&mut self, child: ObjectId, was: impl Fn(u8) -> Weight) -> Vec<RollId> {
        let Some(node) = self.node(child) else { return Vec::new() };
        let (kind, edges) = (node.kind, node.edges.clone());
        let mut moved = Vec::new();
        for edge in edges.as_slice().iter().filter(|e| !e.cyclic) {
            let (old, new) = (was(edge.lens), self.weight(child, edge.lens));
            if old != new
                && let Some(roll) = self.roll_mut(edge.roll)
            {
                roll.leave(Trouble { weight: old, group: edge.group, kind, child });
                roll.enter(Trouble { weight: new, group: edge.group, kind, child });
                moved.push(edge.roll);
            }
        }
        moved
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
        self.nodes.iter().enumerate().flat_map(|(at, node)| {
            node.edges.as_slice().iter().filter(|e| !e.cyclic).map(move |e| (ObjectId(at as u32), *e))
        })
    }

    /// The tallies of a roll, counted anew from the edges of all nodes.
    pub(crate) fn recount(&self, id: RollId) -> BTreeMap<u8, readiness::rollup::Tally> {
        let mut groups = BTreeMap::<u8, readiness::rollup::Tally>::new();
        for (at, node) in self.nodes.iter().enumerate() {
            for edge in node.edges.as_slice().iter().filter(|e| e.roll == id && !e.cyclic) {
                groups.entry(edge.group).or_default().add(self.weight(ObjectId(at as u32), edge.lens));
            }
        }
        groups
    }
}
