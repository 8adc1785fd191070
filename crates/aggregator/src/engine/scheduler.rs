//! When evaluations take place: after a debounce, in the next poll, or once a child is evaluated.

use std::collections::BTreeSet;

use readiness::Time;
use readiness::rollup::ParentReason;

use crate::evaluation::{EvaluationStage, ObservedParent, ParentEvaluation, StageEvent};
use crate::evaluation_queue::EvaluationQueue;
use crate::graph::ChildGraph;
use crate::ids::{EvaluationId, ObjectId, PolicyId};
use crate::list_gate::{ListGate, PolicyGate};
use crate::policy_table::PolicyTable;
use crate::types::{Acceptance, ChangeOrigin, PolicyAnswer};

/// The graph, its policies and the queue of its evaluations: a change of one object schedules what it concerns.
#[derive(Debug, Default)]
pub(super) struct EvaluationScheduler {
    pub(super) graph: ChildGraph,
    pub(super) policies: PolicyTable,
    pub(super) queue: EvaluationQueue,
    /// Evaluations that await the proof of their policy, since [`crate::PendingProofs`] were last taken.
    pub(super) unproven: Vec<EvaluationId>,
    /// A buffer that is reused: the evaluations that the last change of a weight affected.
    moved: Vec<EvaluationId>,
}

impl EvaluationScheduler {
    /// Schedules an evaluation after a change: debounced, or at once after a long quiet span or if the parent has
    /// failed or is stuck. The delivery limits how often the result is written.
    pub(super) fn touch_evaluation(&mut self, id: EvaluationId, now: Time, origin: ChangeOrigin) {
        let Some(evaluation) = self.graph.evaluation_mut(id) else { return };
        // Of a parent that the policy does not select nothing is told: one of hundreds of policies over a kind selects it.
        if evaluation.observed.is_none() {
            // One that awaited a child when the policy ceased to select its parent awaits nothing any more.
            if evaluation.queue.is_deferred() {
                self.queue.enqueue(id, evaluation, now, origin);
            }
            return;
        }
        let Some((policy, PolicyGate { gate, .. })) = self.policies.find_gated(evaluation.policy) else {
            return;
        };
        if gate.awaits_list() {
            return self.touch_unlisted(id, now, gate);
        }
        evaluation.restart_hold(policy);
        let at = evaluation.debounce.record_touch(now, policy.debounce);
        if at <= now || evaluation.queue.is_due() || evaluation.is_urgent(policy) {
            self.queue.enqueue(id, evaluation, now, origin);
            return self.doubt_due(id, now, origin);
        }
        self.queue.debounce(id, evaluation, at, origin);
        self.propagate_doubt(id, now, origin);
    }

    /// Handles a change while a list is awaited.
    fn touch_unlisted(&mut self, id: EvaluationId, now: Time, gate: ListGate) {
        let withdrawn =
            |held: &ParentEvaluation| held.observed.as_ref().is_some_and(|o| o.stage.is_withdrawn());
        let takes_back = |held: &ParentEvaluation| !withdrawn(held) && self.policies.can_evaluate(held, gate);
        if gate.only_takes_back() && self.graph.find_evaluation(id).is_some_and(takes_back) {
            self.enqueue_evaluation(id, now, ChangeOrigin::External);
        }
        self.propagate_doubt(id, now, ChangeOrigin::External);
    }

    /// Schedules an evaluation in the next poll.
    pub(super) fn enqueue_evaluation(&mut self, id: EvaluationId, now: Time, origin: ChangeOrigin) {
        let Some(evaluation) = self.graph.evaluation_mut(id) else { return };
        if evaluation.is_holding()
            && let Some(policy) = self.policies.find_policy(evaluation.policy)
        {
            evaluation.restart_hold(policy);
        }
        self.queue.enqueue(id, evaluation, now, origin);
    }

    /// Finds out which edges lie on a cycle, and schedules the evaluations that gained or lost a child by it.
    pub(super) fn settle_cycles(&mut self, now: Time) {
        for evaluation in self.graph.settle_cycles(self.policies.changed_rules()) {
            self.touch_evaluation(evaluation, now, ChangeOrigin::External);
        }
    }

    /// Schedules the evaluations whose messages quote `id`, because its text changed.
    pub(super) fn touch_owners(&mut self, id: ObjectId, now: Time, origin: ChangeOrigin) {
        let edges = self.graph.edges_of(id);
        for edge in edges.iter().filter(|edge| !edge.cyclic) {
            self.touch_evaluation(edge.evaluation, now, origin);
        }
    }

    /// Schedules the evaluations of `id`, and those above it, because the text about it changed.
    pub(super) fn touch_text(&mut self, id: ObjectId, now: Time) {
        for at in 0..self.graph.evaluations_of(id).len() {
            let evaluation = self.graph.evaluations_of(id)[at];
            self.touch_evaluation(evaluation, now, ChangeOrigin::External);
        }
        self.touch_owners(id, now, ChangeOrigin::External);
    }

    /// Records the digest of the words in which those above quote `parent`. Where it is another one, they are scheduled.
    pub(super) fn requote(&mut self, parent: ObjectId, quote: u64, now: Time) {
        let Some(held) = self.graph.parent_mut(parent) else { return };
        let origin = held.origin;
        if std::mem::replace(&mut held.quoted, quote) != quote {
            self.touch_owners(parent, now, origin);
        }
    }

    /// Takes the first touch that led to the last evaluations of a parent. Every evaluation is queried, so that none is
    /// left over for the next write.
    pub(super) fn take_first_touch(&mut self, parent: ObjectId) -> Option<Time> {
        let mut first: Option<Time> = None;
        self.graph.for_each_evaluation_of(parent, |evaluation| {
            first = first.into_iter().chain(evaluation.debounce.take_first_touch()).min();
        });
        first
    }

    /// Records that the answers about `parent` are on their way to it.
    pub(super) fn record_sent(&mut self, parent: ObjectId) {
        self.graph.for_each_evaluation_of(parent, |evaluation| {
            evaluation.observed.as_mut().into_iter().for_each(ObservedParent::record_sent);
        });
    }

    /// Takes the answers about `parent` whose reason changed since the last call, with the reason before.
    pub(super) fn take_changed_answers(
        &mut self,
        parent: ObjectId,
    ) -> Vec<(PolicyId, Option<ParentReason>, PolicyAnswer)> {
        let mut changed = Vec::new();
        self.graph.for_each_evaluation_of(parent, |evaluation| {
            let may_say = self.policies.may_say(evaluation);
            let observed = evaluation.observed.as_mut().filter(|_| may_say);
            if let Some((before, answer)) = observed.and_then(ObservedParent::take_changed_answer) {
                changed.push((evaluation.policy, before, answer));
            }
        });
        changed
    }

    /// Has the answers about `parent` that differ from what it says taken again: they were found while nobody could tell of them.
    pub(super) fn publish_anew(&mut self, parent: ObjectId) {
        self.graph.for_each_evaluation_of(parent, |evaluation| {
            if self.policies.is_shadow(evaluation.policy) {
                return;
            }
            if let Some(observed) = &mut evaluation.observed {
                observed.forget_published();
            }
        });
    }

    /// Marks a ready answer as in doubt while its evaluation is pending, so that no ancestor counts it as ready. Until
    /// everything was listed, or listed anew, every answer is in doubt: what is not listed yet may contradict it. Where only a
    /// changed rule could not be listed in time, this process' own answers stand, unless they rest on that. What a refused
    /// policy said stands.
    ///
    /// Where a doubt ends, those above are scheduled: they may have been evaluated over it, and the evaluation that is pending
    /// finds no other answer that would call for them.
    pub(super) fn propagate_doubt(&mut self, id: EvaluationId, now: Time, origin: ChangeOrigin) {
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            // What is kept True for a while is kept over what is known of its children, and of one that is awaited nothing is.
            let awaits_child =
                self.graph.find_evaluation(id).is_some_and(|held| self.awaits_child_evaluation(held));
            let Some(evaluation) = self.graph.evaluation_mut(id) else { continue };
            let Some((policy, policy_gate)) = self.policies.find_gated(evaluation.policy) else { continue };
            let gate = policy_gate.gate;
            evaluation.restart_hold(policy);
            let Some(stage) = evaluation.observed.as_ref().map(|observed| observed.stage) else { continue };
            if !stage.says_true() {
                continue;
            }
            let awaits_proof = gate == ListGate::Closed || (gate.awaits_list() && !stage.is_own());
            let unproven = policy.acceptance == Acceptance::Accepted && awaits_proof;
            let doubted = unproven || awaits_child || !evaluation.may_be_ready(policy, policy_gate);
            let event = if doubted { StageEvent::Doubted } else { StageEvent::Confirmed };
            let Some(observed) = &mut evaluation.observed else { continue };
            let rests_otherwise = observed.rest_on_unjudged(evaluation.children.awaits_rules());
            if observed.advance_stage(event) != observed.stage || rests_otherwise {
                let parent = evaluation.parent;
                self.reweigh_child(parent);
                if !doubted {
                    self.debounce_moved(now, origin);
                }
                work.append(&mut self.moved);
            }
        }
    }

    /// Marks a ready answer as in doubt also where its evaluation is due at once: one of those above may be evaluated before it, and
    /// would be ready for an instant in which nothing below it was.
    fn doubt_due(&mut self, id: EvaluationId, now: Time, origin: ChangeOrigin) {
        let says_true = |held: &ParentEvaluation| held.observed.as_ref().is_some_and(|o| o.stage.says_true());
        if self.graph.find_evaluation(id).is_some_and(says_true) {
            self.propagate_doubt(id, now, origin);
        }
    }

    /// Settles whether a condition records what was known of a parent (`is_written`), which was observed before its policy was
    /// known: where none does, those above wait for its evaluation.
    pub(super) fn settle_record(&mut self, id: EvaluationId, is_written: bool, now: Time) {
        let Some(evaluation) = self.graph.evaluation_mut(id) else { return };
        let Some(observed) = &mut evaluation.observed else { return };
        let was_unsettled = observed.stage.is_unsettled();
        let is_recorded = is_written && !observed.view.owned_by_other;
        observed.stage = EvaluationStage::first_of(observed.stage.answer(), is_recorded);
        let parent = evaluation.parent;
        self.graph.count_unsettled(was_unsettled, !is_recorded);
        self.reweigh_child(parent);
        for above in std::mem::take(&mut self.moved) {
            self.propagate_doubt(above, now, ChangeOrigin::PossiblyOwn);
        }
    }

    /// Schedules the evaluations that the last change of a weight affected, unless they await a list, or are due already.
    fn debounce_moved(&mut self, now: Time, origin: ChangeOrigin) {
        for at in 0..self.moved.len() {
            let id = self.moved[at];
            let Some(evaluation) = self.graph.evaluation_mut(id) else { continue };
            let Some((policy, gate)) = self.policies.find_gated(evaluation.policy) else { continue };
            if gate.gate.awaits_list() || evaluation.queue.is_due() {
                continue;
            }
            let due = evaluation.debounce.record_touch(now, policy.debounce);
            self.queue.debounce(id, evaluation, due, origin);
        }
    }

    /// Updates the weight of `child` at its owners, without scheduling them.
    pub(super) fn reweigh_child(&mut self, child: ObjectId) {
        self.moved.clear();
        self.graph.reweigh_edges(child, self.policies.changed_rules(), &mut self.moved);
    }

    /// Updates the weight of `child`, whose answer has changed, at its owners, and schedules those that it moved in the next poll.
    /// So are those in doubt: a doubt about the child may have weighed as much as its answer does now.
    pub(super) fn reweigh_and_enqueue(&mut self, child: ObjectId, now: Time, origin: ChangeOrigin) {
        self.reweigh_child(child);
        let moved = std::mem::take(&mut self.moved);
        for owner in &moved {
            self.enqueue_evaluation(*owner, now, origin);
            self.doubt_due(*owner, now, origin);
        }
        self.moved = moved;
        for edge in self.graph.edges_of(child).iter().filter(|edge| !edge.cyclic) {
            if self.graph.find_evaluation(edge.evaluation).is_some_and(ParentEvaluation::is_in_doubt) {
                self.enqueue_evaluation(edge.evaluation, now, origin);
            }
        }
    }

    /// Schedules the evaluations in doubt, so that no parent is reported ready while a child is known not to be.
    pub(super) fn enqueue_doubted(&mut self, parent: ObjectId, now: Time) {
        for at in 0..self.graph.evaluations_of(parent).len() {
            let id = self.graph.evaluations_of(parent)[at];
            if self.graph.find_evaluation(id).is_some_and(ParentEvaluation::is_in_doubt) {
                self.enqueue_evaluation(id, now, ChangeOrigin::PossiblyOwn);
            }
        }
    }

    /// Schedules all evaluations under a policy in the next poll.
    pub(super) fn enqueue_policies(&mut self, policies: &BTreeSet<PolicyId>, now: Time) {
        for id in self.graph.evaluations_under(policies) {
            self.enqueue_evaluation(id, now, ChangeOrigin::External);
        }
    }

    /// Schedules the evaluations of a parent that cannot be written and has no first word: it is evaluated all the same, for
    /// metrics and for its own parents.
    pub(super) fn announce_unwritable(&mut self, parent: ObjectId, now: Time) {
        for id in self.graph.evaluations_of(parent).to_vec() {
            let Some(evaluation) = self.graph.evaluation_mut(id) else { continue };
            let progress = evaluation.observed.as_mut().map(|observed| &mut observed.phase.progress);
            let Some(progress) = progress.filter(|progress| !progress.is_announced()) else { continue };
            progress.announce();
            self.enqueue_evaluation(id, now, ChangeOrigin::PossiblyOwn);
        }
    }

    /// Returns `true` if the evaluation has to wait for that of a child. A first word, and a last one, waits for nobody.
    pub(super) fn is_held_by_child(&self, id: EvaluationId) -> bool {
        let waits = |observed: &ObservedParent| !observed.deleting && observed.phase.progress.is_announced();
        self.may_await_children()
            && self.graph.find_evaluation(id).is_some_and(|held| {
                self.awaits_child_evaluation(held) && held.observed.as_ref().is_some_and(waits)
            })
    }

    /// Returns `true` if there may be a parent that was not evaluated because a list is awaited.
    fn may_await_children(&self) -> bool {
        self.policies.is_awaiting_lists() || self.graph.has_unsettled()
    }

    /// Returns `true` if the parent's unready children include a parent that was not evaluated because a list is
    /// awaited: its readiness is unknown. The answers of all ancestors stay until it is evaluated. Where a kind of the policy is
    /// blind, the answer is at most Unknown whatever they say, and the awaited list may never come: nobody is waited for.
    pub(super) fn awaits_child_evaluation(&self, evaluation: &ParentEvaluation) -> bool {
        self.may_await_children()
            && !matches!(self.policies.list_gate(evaluation.policy), ListGate::Blind(_))
            && evaluation.children.unready.iter().any(|entry| self.is_evaluation_awaited(entry.child))
    }

    fn is_evaluation_awaited(&self, child: ObjectId) -> bool {
        let ids = self.graph.evaluations_of(child).iter();
        let mut evaluations = ids.filter_map(|id| self.graph.find_evaluation(*id));
        let is_unproven = |observed: &ObservedParent, policy: PolicyId| {
            observed.stage.is_in_doubt() && self.policies.list_gate(policy) == ListGate::Closed
        };
        evaluations.any(|held| {
            let Some(observed) = held.observed.as_ref().filter(|observed| !observed.deleting) else {
                return false;
            };
            let is_awaited = observed.is_awaited() || is_unproven(observed, held.policy);
            // What a refused policy said stands: nobody waits for another word of it.
            (is_awaited && self.policies.is_accepted(held.policy)) || self.awaits_child_evaluation(held)
        })
    }

    /// Resumes the evaluations above `child` that were deferred, if nobody waits for `child` any more.
    #[cold]
    pub(super) fn resume_deferred_above(&mut self, child: ObjectId, now: Time, origin: ChangeOrigin) {
        if self.is_evaluation_awaited(child) {
            return;
        }
        let (mut above, mut seen) = (vec![child], BTreeSet::new());
        while let Some(at) = above.pop() {
            for edge in self.graph.edges_of(at).iter().filter(|edge| !edge.cyclic) {
                let Some(evaluation) = self.graph.find_evaluation(edge.evaluation) else { continue };
                if evaluation.queue.is_deferred() {
                    self.touch_evaluation(edge.evaluation, now, origin);
                } else if seen.insert(evaluation.parent) {
                    above.push(evaluation.parent);
                }
            }
        }
    }

    /// Resumes every evaluation that was deferred: whether a list is awaited may be otherwise from now on.
    pub(super) fn resume_all_deferred(&mut self, now: Time) {
        for id in self.queue.take_deferred() {
            self.enqueue_evaluation(id, now, ChangeOrigin::PossiblyOwn);
        }
    }

    /// Drops an evaluation that has neither children nor an observed parent.
    pub(super) fn drop_if_idle(&mut self, id: EvaluationId) {
        if self.graph.drop_if_idle(id) {
            self.queue.remove(id);
        }
    }
}
