//! What was seen: objects appear, change, count for others, and go.

use std::collections::BTreeSet;

use readiness::Time;

use super::{Cause, Engine};
use crate::graph::{Few, Parent, Weights};
use crate::types::{Link, ObjectId, PolicyId, RollId, SelectorId, View};

impl Engine {
    /// An object was seen to be so, or (`None`) to be gone.
    pub fn observe(&mut self, now: Time, id: ObjectId, view: Option<&View<'_>>) {
        match view {
            Some(view) => self.seen(now, id, view),
            None => self.gone(now, id),
        }
    }

    fn seen(&mut self, now: Time, id: ObjectId, view: &View<'_>) {
        let node = self.graph.node_mut(id);
        (node.kind, node.name) = (view.kind, view.name);
        let first = !std::mem::replace(&mut node.present, true);
        let respecified = !first && node.generation != view.generation;
        node.generation = view.generation;
        node.weights = Weights::of(view.weights);
        // A parent is moved by our own writes too; what is none, by others alone.
        let cause = if first || view.parent.is_none() { Cause::Others } else { Cause::Perhaps };
        self.ripen(now, id, view.recheck);
        if view.parent.is_some() || self.graph.parent(id).is_some() {
            self.set_parent(now, id, view.parent);
        }
        self.reweigh(id);
        // The words of a child that is not ready are part of what its parents say, so they move even where levels do not.
        let edges = self.graph.edges_of(id);
        for edge in edges.iter() {
            if respecified {
                self.graph.stir(edge.roll, now, false);
            }
            self.touch(edge.roll, now, cause);
        }
        self.set_lends(now, id, view.lends);
        self.relink(now, id, view.links, view.created);
    }

    fn set_lends(&mut self, now: Time, id: ObjectId, lends: &[(PolicyId, SelectorId)]) {
        let known = self.graph.lends.get(&id);
        let held = |lent| known.is_some_and(|known| known.contains(lent));
        if known.map_or(0, BTreeSet::len) == lends.len() && lends.iter().all(held) {
            return;
        }
        let new: BTreeSet<_> = lends.iter().copied().collect();
        let old = self.graph.lends.remove(&id).unwrap_or_default();
        if !new.is_empty() {
            self.graph.lends.insert(id, new.clone());
        }
        for edge in self.graph.edges_of(id).iter() {
            self.lend(now, id, edge.roll, old.difference(&new), false);
            self.lend(now, id, edge.roll, new.difference(&old), true);
        }
    }

    /// The parent of a roll for which `id` counts begins, or ceases, to select by what that one lends.
    fn lend<'l>(
        &mut self,
        now: Time,
        id: ObjectId,
        roll: RollId,
        lends: impl Iterator<Item = &'l (PolicyId, SelectorId)>,
        on: bool,
    ) {
        let Some((parent, policy)) = self.graph.roll(roll).map(|r| (r.parent, r.policy)) else { return };
        for by in lends.filter(|(p, _)| *p == policy) {
            if on {
                self.select(now, parent, *by, id);
            } else {
                self.unselect(now, parent, *by, id);
            }
        }
    }

    /// What `id` lends, where it lends anything at all.
    fn lent(&self, id: ObjectId) -> BTreeSet<(PolicyId, SelectorId)> {
        self.graph.lends.get(&id).cloned().unwrap_or_default()
    }

    fn ripen(&mut self, now: Time, id: ObjectId, recheck: Option<Time>) {
        let at = recheck.filter(|at| *at > now);
        let node = self.graph.node_mut(id);
        let ripens = std::mem::replace(&mut node.ripens, at.is_some());
        match at {
            Some(at) => self.ripe.arm(id, at),
            None if ripens => _ = self.ripe.disarm(id),
            None => {}
        }
    }

    fn relink(&mut self, now: Time, id: ObjectId, links: &[Link], created: Time) {
        let node = self.graph.node_mut(id);
        if node.links.as_slice() == links {
            return;
        }
        let old = std::mem::replace(&mut node.links, Few::from_slice(links));
        for link in old.iter().filter(|l| !links.contains(l)) {
            self.graph.selectors.hang(id, *link, false);
            for roll in self.graph.rolls_behind(*link) {
                self.detach(now, id, roll, link.group);
            }
        }
        for link in links.iter().filter(|l| !old.as_slice().contains(l)) {
            self.graph.selectors.hang(id, *link, true);
            for roll in self.graph.rolls_behind(*link) {
                self.attach(now, id, roll, *link, created);
            }
        }
    }

    pub(super) fn attach(&mut self, now: Time, child: ObjectId, roll: RollId, link: Link, created: Time) {
        let naming = self.policy(link.policy).is_some_and(|p| p.names);
        let moved = self.graph.attach(child, roll, link, naming);
        if !moved.is_empty() {
            // Before everything was listed, a child did not appear now: it is as old as it says.
            let at = if self.is_open(link.policy) { now } else { created.min(now) };
            self.graph.stir(roll, at, true);
        }
        if !moved.is_empty() {
            self.lend(now, child, roll, self.lent(child).iter(), true);
        }
        for roll in moved {
            self.touch(roll, now, Cause::Others);
        }
    }

    pub(super) fn detach(&mut self, now: Time, child: ObjectId, roll: RollId, group: u8) {
        let edges = self.graph.edges_of(child);
        let edge = edges.iter().find(|e| e.roll == roll && e.group == group);
        // It may be found in two ways, by owner and by labels for example.
        if let Some(edge) = edge.filter(|e| !self.graph.is_linked(child, e)) {
            let moved = self.graph.detach(child, *edge);
            self.graph.stir(roll, now, false);
            if !self.graph.edges_of(child).iter().any(|e| e.roll == roll) {
                self.lend(now, child, roll, self.lent(child).iter(), false);
            }
            for roll in moved {
                self.touch(roll, now, Cause::Others);
            }
        }
        self.drop_if_idle(roll);
    }

    pub(super) fn drop_if_idle(&mut self, roll: RollId) {
        if self.graph.drop_if_idle(roll) {
            self.quiet.disarm(roll);
            self.dated.disarm(roll);
        }
    }

    fn gone(&mut self, now: Time, id: ObjectId) {
        if self.graph.parent(id).is_some_and(|p| p.delivery.pending()) {
            *self.orphans.entry(id).or_default() += 1;
        }
        let node = self.graph.node_mut(id);
        node.present = false;
        self.relink(now, id, &[], now);
        self.graph.lends.remove(&id);
        self.set_parent(now, id, None);
        self.ripen(now, id, None);
        self.calm.disarm(id);
        let node = self.graph.node_mut(id);
        node.weights = Weights::default();
        node.generation = 0;
        // Those whom its children still name keep their rolls; nothing else of it is left to whoever comes next.
        if let Some(rolls) = node.parent.take().map(|p| p.rolls).filter(|rolls| !rolls.as_slice().is_empty())
        {
            node.parent = Some(Box::new(Parent { rolls, ..Parent::default() }));
        }
    }
}
