//! Observation of objects: creation, change and deletion, as a child and as a parent.

use readiness::Time;
use readiness::rollup::ParentReason;

use super::child_linker::ChildLinker;
use super::scheduler::EvaluationScheduler;
use crate::answer_view::AnswerView;
use crate::delivery_schedule::{DeliverySchedule, ParentNews};
use crate::evaluation::{ChildChange, ObservedParent, StageEvent};
use crate::graph::ParentNode;
use crate::ids::{EvaluationId, ObjectId};
use crate::observation_schedule::ObservationSchedule;
use crate::types::{ChangeOrigin, KindState, ObjectView, ParentView, SpecMark};

/// Returns what has changed of what an object is wanted to be.
fn change_between(before: SpecMark, now: SpecMark) -> Option<ChildChange> {
    if before.wanted_by_operator != now.wanted_by_operator {
        return Some(ChildChange::Altered);
    }
    (before.generation != now.generation).then_some(ChildChange::Scaled)
}

/// Observation of one object at one instant.
#[derive(Debug)]
pub(super) struct ObjectObserver<'e> {
    pub(super) scheduler: &'e mut EvaluationScheduler,
    pub(super) deliveries: &'e mut DeliverySchedule,
    pub(super) observations: &'e mut ObservationSchedule,
    pub(super) now: Time,
}

impl ObjectObserver<'_> {
    /// Observes an object in its current state.
    pub(super) fn observe_present(&mut self, id: ObjectId, view: &ObjectView<'_>) {
        let node = self.scheduler.graph.node_mut(id);
        (node.kind, node.name) = (view.kind, view.name);
        let first = !std::mem::replace(&mut node.present, true);
        let change = if first { None } else { change_between(node.spec_mark, view.spec_mark) };
        node.spec_mark = view.spec_mark;
        node.set_created(view.created);
        node.set_weights(view.weights);
        self.observations.set_recheck(id, node, view.recheck, self.now);
        // A parent also changes through Rollcall's own writes; any other object changes through others alone.
        let origin =
            if first || view.parent.is_none() { ChangeOrigin::External } else { ChangeOrigin::PossiblyOwn };
        if view.parent.is_some() || self.scheduler.graph.find_parent(id).is_some() {
            self.observe_parent(id, view.parent);
        }
        self.scheduler.reweigh_child(id);
        // The text about an unready child is part of its parents' messages, so it propagates even if the levels stay
        // the same.
        let edges = self.scheduler.graph.edges_of(id);
        for edge in edges.iter() {
            if let Some(change) = change {
                self.scheduler.graph.record_child_change(edge.evaluation, self.now, change);
            }
            self.scheduler.touch_evaluation(edge.evaluation, self.now, origin);
        }
        self.linker().set_lent_selectors(id, view.lent_selectors);
        self.linker().set_links(id, view.links);
    }

    /// Observes the deletion of an object.
    pub(super) fn observe_deleted(&mut self, id: ObjectId) {
        self.scheduler.graph.node_mut(id).present = false;
        self.linker().set_links(id, &[]);
        self.scheduler.graph.lent_selectors.remove(&id);
        self.observe_parent(id, None);
        self.deliveries.clear_conflict_end(id);
        let node = self.scheduler.graph.node_mut(id);
        self.observations.set_recheck(id, node, None, self.now);
        node.set_weights(&[]);
        node.spec_mark = SpecMark::default();
        // Evaluations that children still refer to are kept; everything else is dropped before the slot is reused.
        let evaluations = node.parent.take().map(|parent| parent.evaluations);
        if let Some(evaluations) = evaluations.filter(|held| !held.as_slice().is_empty()) {
            node.parent = Some(Box::new(ParentNode { evaluations, ..ParentNode::default() }));
        }
    }

    fn linker(&mut self) -> ChildLinker<'_> {
        ChildLinker { scheduler: self.scheduler, now: self.now }
    }

    /// Observes an object as a parent, or (`None`) that no policy applies to it as one.
    fn observe_parent(&mut self, id: ObjectId, view: Option<&ParentView>) {
        let answers = view.map_or(&[][..], |v| &v.answers);
        let selects: Vec<_> =
            answers.iter().flat_map(|a| a.selects().iter().map(move |s| (a.policy, *s))).collect();
        if view.is_none() {
            self.linker().set_selectors(id, &[]);
        }
        for evaluation in self.scheduler.graph.evaluations_of(id).to_vec() {
            let policy = self.scheduler.graph.find_evaluation(evaluation).map(|held| held.policy);
            if !answers.iter().any(|a| Some(a.policy) == policy) {
                self.clear_answer(evaluation);
                // Conditions of a policy that no longer applies are to be removed.
                self.deliveries.schedule_draft(id, self.now);
            }
        }
        let Some(view) = view else {
            self.deliveries.withdraw_parent(id);
            self.observations.withdraw_parent(id, self.scheduler.graph.parent_mut(id));
            return;
        };
        let mut begins_anew = false;
        for answer in answers {
            begins_anew |= self.observe_answer(id, view, answer);
        }
        self.linker().set_selectors(id, &selects);
        let leaves = view.deleting && !view.deletion_unexplained && self.says_its_end(view);
        let parent = self.scheduler.graph.node_mut(id).parent.get_or_insert_default();
        parent.termination_written = leaves;
        let is_reshaped = std::mem::replace(&mut parent.status_shape, view.status_shape) != view.status_shape;
        let news = ParentNews { digest: view.digest, begins_anew, is_reshaped };
        self.deliveries.observe_news(id, parent, news, self.now);
    }

    /// Does a parent that is being deleted say so of its generation for every policy that writes on it, and that it is stuck
    /// once it is? Then it is left alone until something else holds its deletion. Where somebody takes such an entry away, or
    /// turns it, it is set right like any other.
    fn says_its_end(&self, view: &ParentView) -> bool {
        let is_written = |a: &&AnswerView| !a.owned_by_other && !self.scheduler.policies.is_shadow(a.policy);
        let leaves = |a: &AnswerView| self.scheduler.policies.is_shadow(a.policy) && a.written.is_some();
        if view.answers.iter().any(leaves) {
            // What a policy said before it was in shadow mode is taken away here too.
            return false;
        }
        let mut written = view.answers.iter().filter(is_written).peekable();
        let says = |answer: &AnswerView| {
            let stuck = answer.deletion_stuck_at().is_some_and(|at| at <= self.now);
            let reason = if stuck { ParentReason::DeletionStuck } else { ParentReason::Terminating };
            answer.told().is_some_and(|told| told.reason == reason)
        };
        written.peek().is_some() && written.all(says)
    }

    fn clear_answer(&mut self, id: EvaluationId) {
        let observed = self.scheduler.graph.evaluation_mut(id).and_then(|held| held.observed.take());
        let was_unsettled = observed.is_some_and(|observed| observed.stage.is_unsettled());
        self.scheduler.graph.count_unsettled(was_unsettled, false);
        self.scheduler.drop_if_idle(id);
    }

    /// Observes the answer of one policy on a parent. Returns `true` if a known parent begins a new generation, which is
    /// evaluated at once.
    fn observe_answer(&mut self, id: ObjectId, view: &ParentView, answer: &AnswerView) -> bool {
        let EvaluationScheduler { graph, policies, .. } = &mut *self.scheduler;
        let policy = policies.find_policy(answer.policy);
        let (is_known, is_shadow) = (policy.is_some(), policy.is_some_and(|p| p.shadow));
        let is_open = policies.is_open(answer.policy);
        let is_accepted = policies.is_accepted(answer.policy);
        let kind = graph.find_node(id).map(|node| node.kind).unwrap_or_default();
        let is_listing = policies.kind_state(kind) == KindState::Listing;
        let is_unwritten = is_shadow || answer.owned_by_other;
        let at = graph.ensure_evaluation(id, answer.policy);
        let held = graph.find_evaluation(at).and_then(|held| held.observed.as_ref());
        let delivery = graph.find_parent(id).map(|parent| &parent.delivery);
        let is_older = held.is_some_and(|held| {
            let (begun, is_sent) = (held.phase.observed_at, held.shows_sent(answer));
            delivery.is_none_or(|delivery| delivery.is_older_than(begun, is_sent))
        });
        let Some(evaluation) = graph.evaluation_mut(at) else { return false };
        // Of a policy that is not known yet it is not known whether it writes: those above wait until it is.
        let is_recorded = is_known && (is_open || !is_unwritten);
        let begins_again = |observed: &ObservedParent| {
            (is_recorded || !is_known) && observed.is_superseded_by(view, answer, is_older)
                || (is_listing || !is_accepted) && observed.is_taken_from(answer)
        };
        let before = evaluation.observed.take_if(|observed| begins_again(observed));
        let first = evaluation.observed.is_none();
        let observed = evaluation
            .observed
            .get_or_insert_with(|| ObservedParent::new(view, answer, is_recorded, self.now));
        let was_announced = observed.phase.progress.is_announced();
        let is_renewed = observed.update_view(view, answer, is_unwritten, self.now);
        // What it was told at once, as it was found at rest: a first word that was decided meanwhile is none any more.
        let is_told_at_once = !was_announced && observed.phase.progress.is_announced() && answer.says_true();
        if first {
            let is_unsettled = observed.stage.is_unsettled();
            let was_unsettled = before.is_some_and(|before| before.stage.is_unsettled());
            graph.count_unsettled(was_unsettled, is_unsettled);
        } else if is_renewed {
            // An answer about an older generation must never be rendered for this one.
            graph.advance_stage(at, StageEvent::Outdated);
        }
        self.scheduler.touch_evaluation(at, self.now, ChangeOrigin::PossiblyOwn);
        if (first || is_renewed || is_told_at_once) && is_open {
            self.scheduler.enqueue_evaluation(at, self.now, ChangeOrigin::PossiblyOwn);
        }
        is_renewed
    }
}
