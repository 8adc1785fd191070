//! Observation of objects: creation, change, links and deletion.

use std::collections::BTreeSet;

use readiness::Time;

use super::Engine;
use crate::graph::{InlineVec, ObjectWeights, ParentNode};
use crate::types::{ChangeOrigin, ChildLink, EvaluationId, ObjectId, ObjectView, PolicyId, SelectorId};

impl Engine {
    /// Observes an object in its current state, or (`None`) its deletion.
    pub fn observe_object(&mut self, now: Time, id: ObjectId, view: Option<&ObjectView<'_>>) {
        match view {
            Some(view) => self.observe_present(now, id, view),
            None => self.observe_deleted(now, id),
        }
    }

    fn observe_present(&mut self, now: Time, id: ObjectId, view: &ObjectView<'_>) {
        let node = self.graph.node_mut(id);
        (node.kind, node.name) = (view.kind, view.name);
        let first = !std::mem::replace(&mut node.present, true);
        let respecified = !first && node.generation != view.generation;
        node.generation = view.generation;
        node.weights = ObjectWeights::from_slice(view.weights);
        // A parent also changes through Rollcall's own writes; any other object changes through others alone.
        let cause =
            if first || view.parent.is_none() { ChangeOrigin::External } else { ChangeOrigin::PossiblyOwn };
        self.schedule_recheck(now, id, view.recheck);
        if view.parent.is_some() || self.graph.find_parent(id).is_some() {
            self.set_parent(now, id, view.parent);
        }
        self.reweigh_child(id);
        // The text about an unready child is part of its parents' messages, so it propagates even if the levels stay
        // the same.
        let edges = self.graph.edges_of(id);
        for edge in edges.iter() {
            if respecified {
                self.graph.record_child_change(edge.evaluation, now, false);
            }
            self.touch_evaluation(edge.evaluation, now, cause);
        }
        self.set_lent_selectors(now, id, view.lent_selectors);
        self.set_links(now, id, view.links, view.created);
    }

    fn set_lent_selectors(&mut self, now: Time, id: ObjectId, lends: &[(PolicyId, SelectorId)]) {
        let known = self.graph.lent_selectors.get(&id);
        let held = |lent| known.is_some_and(|known| known.contains(lent));
        if known.map_or(0, BTreeSet::len) == lends.len() && lends.iter().all(held) {
            return;
        }
        let new: BTreeSet<_> = lends.iter().copied().collect();
        let old = self.graph.lent_selectors.remove(&id).unwrap_or_default();
        if !new.is_empty() {
            self.graph.lent_selectors.insert(id, new.clone());
        }
        for edge in self.graph.edges_of(id).iter() {
            self.apply_lent_selectors(now, id, edge.evaluation, old.difference(&new), false);
            self.apply_lent_selectors(now, id, edge.evaluation, new.difference(&old), true);
        }
    }

    /// Adds or removes the selectors that `id` lends to the parents for which it counts.
    fn apply_lent_selectors<'l>(
        &mut self,
        now: Time,
        id: ObjectId,
        roll: EvaluationId,
        lends: impl Iterator<Item = &'l (PolicyId, SelectorId)>,
        on: bool,
    ) {
        let Some((parent, policy)) = self.graph.find_evaluation(roll).map(|r| (r.parent, r.policy)) else {
            return;
        };
        for by in lends.filter(|(p, _)| *p == policy) {
            if on {
                self.add_selector(now, parent, *by, id);
            } else {
                self.remove_selector(now, parent, *by, id);
            }
        }
    }

    /// Returns the selectors that `id` lends.
    fn lent_selectors(&self, id: ObjectId) -> BTreeSet<(PolicyId, SelectorId)> {
        self.graph.lent_selectors.get(&id).cloned().unwrap_or_default()
    }

    fn schedule_recheck(&mut self, now: Time, id: ObjectId, recheck: Option<Time>) {
        let at = recheck.filter(|at| *at > now);
        let node = self.graph.node_mut(id);
        let ripens = std::mem::replace(&mut node.has_recheck, at.is_some());
        match at {
            Some(at) => self.rechecks.set_deadline(id, at),
            None if ripens => _ = self.rechecks.clear_deadline(id),
            None => {}
        }
    }

    fn set_links(&mut self, now: Time, id: ObjectId, links: &[ChildLink], created: Time) {
        let node = self.graph.node_mut(id);
        if node.links.as_slice() == links {
            return;
        }
        let old = std::mem::replace(&mut node.links, InlineVec::from_slice(links));
        for link in old.iter().filter(|l| !links.contains(l)) {
            self.graph.selectors.set_child(id, *link, false);
            for roll in self.graph.evaluations_behind(*link) {
                self.detach_child(now, id, roll, link.group);
            }
        }
        for link in links.iter().filter(|l| !old.as_slice().contains(l)) {
            self.graph.selectors.set_child(id, *link, true);
            for roll in self.graph.evaluations_behind(*link) {
                self.attach_child(now, id, roll, *link, created);
            }
        }
    }

    pub(super) fn attach_child(
        &mut self,
        now: Time,
        child: ObjectId,
        roll: EvaluationId,
        link: ChildLink,
        created: Time,
    ) {
        let naming = self.policies.find_policy(link.policy).is_some_and(|p| p.expects_names);
        let moved = self.graph.attach_edge(child, roll, link, naming, self.policies.changed_rules());
        if !moved.is_empty() {
            // Before all lists are complete, a child did not just appear: its creation time counts.
            let at = if self.is_open(link.policy) { now } else { created.min(now) };
            self.graph.record_child_change(roll, at, true);
        }
        if !moved.is_empty() {
            self.apply_lent_selectors(now, child, roll, self.lent_selectors(child).iter(), true);
        }
        for roll in moved {
            self.touch_evaluation(roll, now, ChangeOrigin::External);
        }
    }

    pub(super) fn detach_child(&mut self, now: Time, child: ObjectId, roll: EvaluationId, group: u8) {
        let edges = self.graph.edges_of(child);
        let edge = edges.iter().find(|e| e.evaluation == roll && e.group == group);
        // The same child may be found in two ways, for example by owner reference and by labels.
        if let Some(edge) = edge.filter(|e| !self.graph.is_linked(child, e)) {
            let moved = self.graph.detach_edge(child, *edge, self.policies.changed_rules());
            self.graph.record_child_change(roll, now, false);
            if !self.graph.edges_of(child).iter().any(|e| e.evaluation == roll) {
                self.apply_lent_selectors(now, child, roll, self.lent_selectors(child).iter(), false);
            }
            for roll in moved {
                self.touch_evaluation(roll, now, ChangeOrigin::External);
            }
        }
        self.drop_if_idle(roll);
    }

    pub(super) fn drop_if_idle(&mut self, roll: EvaluationId) {
        if self.graph.drop_if_idle(roll) {
            self.quiet.clear_deadline(roll);
            self.time_dependent.clear_deadline(roll);
            self.deferred.remove(&roll);
        }
    }

    fn observe_deleted(&mut self, now: Time, id: ObjectId) {
        let node = self.graph.node_mut(id);
        node.present = false;
        self.set_links(now, id, &[], now);
        self.graph.lent_selectors.remove(&id);
        self.set_parent(now, id, None);
        self.schedule_recheck(now, id, None);
        self.conflict_ends.clear_deadline(id);
        let node = self.graph.node_mut(id);
        node.weights = ObjectWeights::default();
        node.generation = 0;
        // Evaluations that children still refer to are kept; everything else is dropped before the slot is reused.
        if let Some(rolls) =
            node.parent.take().map(|p| p.evaluations).filter(|rolls| !rolls.as_slice().is_empty())
        {
            node.parent = Some(Box::new(ParentNode { evaluations: rolls, ..ParentNode::default() }));
        }
    }
}
