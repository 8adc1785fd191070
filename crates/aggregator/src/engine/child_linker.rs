//! Edges from children to the evaluations of their parents, by owner references, labels and references.

use std::collections::BTreeSet;

use readiness::Time;

use super::recount::RecountResult;
use super::scheduler::EvaluationScheduler;
use crate::evaluation::ChildChange;
use crate::graph::{ChildEdge, InlineVec};
use crate::ids::{EvaluationId, KindId, ObjectId, PolicyId, SelectorId};
use crate::types::{ChangeOrigin, ChildLink, EnginePolicy};

/// Changes of links and selectors at one instant: the edges follow them, and each evaluation that gains or loses a child
/// is scheduled.
#[derive(Debug)]
pub(super) struct ChildLinker<'e> {
    pub(super) scheduler: &'e mut EvaluationScheduler,
    pub(super) now: Time,
}

impl ChildLinker<'_> {
    /// Sets the links of an object.
    pub(super) fn set_links(&mut self, id: ObjectId, links: &[ChildLink]) {
        if self.scheduler.graph.find_node(id).is_some_and(|node| node.links.as_slice() == links) {
            return;
        }
        let node = self.scheduler.graph.node_mut(id);
        let old = std::mem::replace(&mut node.links, InlineVec::from_slice(links));
        for link in old.iter().filter(|l| !links.contains(l)) {
            self.scheduler.graph.selectors.set_child(id, *link, false);
            for evaluation in self.scheduler.graph.evaluations_behind(*link) {
                self.detach_child(id, evaluation, link.group);
            }
        }
        for link in links.iter().filter(|l| !old.as_slice().contains(l)) {
            self.scheduler.graph.selectors.set_child(id, *link, true);
            for evaluation in self.scheduler.graph.evaluations_behind(*link) {
                self.attach_child(id, evaluation, *link, self.appearance(id, link.policy));
            }
        }
    }

    /// Sets the selectors by which a parent selects its children.
    pub(super) fn set_selectors(&mut self, id: ObjectId, selects: &[(PolicyId, SelectorId)]) {
        let Some(parent) = self.scheduler.graph.parent_mut(id) else { return };
        if *parent.selectors == *selects {
            return;
        }
        let old = std::mem::replace(&mut parent.selectors, selects.to_vec().into());
        for select in old.iter().filter(|s| !selects.contains(s)) {
            self.remove_selector(id, *select, id);
        }
        for select in selects.iter().filter(|s| !old.contains(s)) {
            self.add_selector(id, *select, id);
        }
    }

    /// Sets the selectors that an object lends to every parent for which it counts.
    pub(super) fn set_lent_selectors(&mut self, id: ObjectId, lends: &[(PolicyId, SelectorId)]) {
        let lent = &mut self.scheduler.graph.lent_selectors;
        let known = lent.get(&id);
        let held = |lent| known.is_some_and(|known| known.contains(lent));
        if known.map_or(0, BTreeSet::len) == lends.len() && lends.iter().all(held) {
            return;
        }
        let new: BTreeSet<_> = lends.iter().copied().collect();
        let old = lent.remove(&id).unwrap_or_default();
        if !new.is_empty() {
            lent.insert(id, new.clone());
        }
        for edge in self.scheduler.graph.edges_of(id).iter() {
            self.apply_lent_selectors(id, edge.evaluation, old.difference(&new), false);
            self.apply_lent_selectors(id, edge.evaluation, new.difference(&old), true);
        }
    }

    /// Compares the edges of these kinds' objects with their links, and all counts with their edges. What is wrong is put
    /// right, and the parents concerned are scheduled.
    pub(super) fn recount_kinds(&mut self, kinds: &BTreeSet<KindId>) -> RecountResult {
        let objects = self.scheduler.graph.present_objects(kinds);
        let children = objects.into_iter().filter(|(_, id)| self.mend_edges(*id)).collect();
        self.scheduler.settle_cycles(self.now);
        let EvaluationScheduler { graph, policies, .. } = &mut *self.scheduler;
        let wrong = graph.recount_evaluations(policies.changed_rules());
        let mut parents: Vec<_> =
            wrong.iter().filter_map(|id| graph.find_evaluation(*id).map(|held| held.parent)).collect();
        parents.dedup();
        for id in wrong {
            self.scheduler.touch_evaluation(id, self.now, ChangeOrigin::External);
        }
        RecountResult { children, parents }
    }

    /// Puts the edges of an object right; returns `true` if they differed from its links.
    fn mend_edges(&mut self, child: ObjectId) -> bool {
        let mut differed = false;
        let edges = self.scheduler.graph.edges_of(child);
        let unlinked = edges.iter().filter(|edge| !self.scheduler.graph.is_linked(child, edge));
        for edge in unlinked.copied().collect::<Vec<_>>() {
            differed = true;
            self.detach_child(child, edge.evaluation, edge.group);
        }
        let links = self.scheduler.graph.find_node(child).map(|node| node.links.clone()).unwrap_or_default();
        for link in links.iter() {
            for evaluation in self.scheduler.graph.evaluations_behind(*link) {
                let edges = self.scheduler.graph.edges_of(child);
                if !edges.iter().any(|edge| edge.evaluation == evaluation && edge.group == link.group) {
                    differed = true;
                    // It was a child before, and only its edge was lost.
                    self.attach_child(child, evaluation, *link, self.created(child));
                }
            }
        }
        differed
    }

    fn add_selector(&mut self, id: ObjectId, by: (PolicyId, SelectorId), of: ObjectId) {
        for (child, link) in self.scheduler.graph.selectors.set_parent(id, by, of, true) {
            let evaluation = self.scheduler.graph.ensure_evaluation(id, by.0);
            self.attach_child(child, evaluation, link, self.appearance(child, by.0));
        }
    }

    fn remove_selector(&mut self, id: ObjectId, by: (PolicyId, SelectorId), of: ObjectId) {
        for (child, link) in self.scheduler.graph.selectors.set_parent(id, by, of, false) {
            if let Some(evaluation) = self.scheduler.graph.find_evaluation_for(id, by.0) {
                self.detach_child(child, evaluation, link.group);
            }
        }
    }

    /// Adds or removes the selectors that `id` lends to the parent of an evaluation for which it counts.
    fn apply_lent_selectors<'l>(
        &mut self,
        id: ObjectId,
        evaluation: EvaluationId,
        lends: impl Iterator<Item = &'l (PolicyId, SelectorId)>,
        on: bool,
    ) {
        let held = self.scheduler.graph.find_evaluation(evaluation);
        let Some((parent, policy)) = held.map(|held| (held.parent, held.policy)) else { return };
        for by in lends.filter(|(p, _)| *p == policy) {
            if on {
                self.add_selector(parent, *by, id);
            } else {
                self.remove_selector(parent, *by, id);
            }
        }
    }

    /// Returns the selectors that `id` lends.
    fn lent_selectors(&self, id: ObjectId) -> BTreeSet<(PolicyId, SelectorId)> {
        self.scheduler.graph.lent_selectors.get(&id).cloned().unwrap_or_default()
    }

    fn created(&self, child: ObjectId) -> Time {
        self.scheduler.graph.find_node(child).map_or(self.now, |node| node.created().min(self.now))
    }

    /// When a child appears that is found under a policy now. Before all lists are complete it did not just appear, in whichever
    /// order child and parent are read: its creation counts.
    fn appearance(&self, child: ObjectId, policy: PolicyId) -> Time {
        if self.scheduler.policies.is_open(policy) { self.now } else { self.created(child) }
    }

    fn attach_child(&mut self, child: ObjectId, to: EvaluationId, link: ChildLink, appeared: Time) {
        let EvaluationScheduler { graph, policies, .. } = &mut *self.scheduler;
        let naming = policies.find_policy(link.policy).is_some_and(EnginePolicy::tracks_names);
        if graph.attach_edge(child, to, link, naming, policies.changed_rules()) {
            let is_critical = policies.find_policy(link.policy).is_some_and(|p| p.is_critical(link.group));
            let is_unready = |e: &ChildEdge| e.evaluation == to && !e.weight.is_ready();
            let joins_unready = is_critical && graph.edges_of(child).iter().any(is_unready);
            let change = if joins_unready { ChildChange::AppearedUnready } else { ChildChange::Appeared };
            graph.record_child_change(to, appeared, change);
            self.apply_lent_selectors(child, to, self.lent_selectors(child).iter(), true);
            self.scheduler.touch_evaluation(to, self.now, ChangeOrigin::External);
        }
    }

    fn detach_child(&mut self, child: ObjectId, from: EvaluationId, group: u8) {
        let EvaluationScheduler { graph, .. } = &mut *self.scheduler;
        let edges = graph.edges_of(child);
        let edge = edges.iter().find(|e| e.evaluation == from && e.group == group);
        // The same child may be found in two ways, for example by owner reference and by labels.
        if let Some(edge) = edge.filter(|e| !graph.is_linked(child, e)) {
            graph.detach_edge(child, *edge);
            graph.record_child_change(from, self.now, ChildChange::Altered);
            if !graph.edges_of(child).iter().any(|e| e.evaluation == from) {
                self.apply_lent_selectors(child, from, self.lent_selectors(child).iter(), false);
            }
            self.scheduler.touch_evaluation(from, self.now, ChangeOrigin::External);
        }
        self.scheduler.drop_if_idle(from);
    }
}
