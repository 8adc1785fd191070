//! The evaluations of one poll, and of the owners of what they change.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::scheduler::EvaluationScheduler;
use crate::observation_schedule::ObservationSchedule;
use crate::types::{ChangeOrigin, EvaluationId, ObjectId};

/// Largest number of evaluations of one parent in one poll. More means a loop that the cycle check missed; it continues
/// in a later poll.
const MAX_EVALUATIONS_PER_POLL: u8 = 64;
/// Delay until that later evaluation.
const EVALUATION_LOOP_DELAY: Duration = Duration::from_secs(1);

/// A parent whose conditions may have to change: render them and pass their digest to [`crate::Engine::offer_digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParentDraft {
    /// The parent.
    pub parent: ObjectId,
}

/// Counters for metrics: the engine counts, the driver adds them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvaluationCounts {
    /// Number of evaluations.
    pub evaluations: u64,
    /// Number of evaluations that changed the answer.
    pub changed_answers: u64,
    /// Number of times that children became ready again while the answer, which said True, had stood.
    pub saved_flips: u64,
}

/// The evaluations of one poll.
#[derive(Debug)]
pub(super) struct EvaluationRun<'e> {
    pub(super) scheduler: &'e mut EvaluationScheduler,
    pub(super) observations: &'e mut ObservationSchedule,
    pub(super) counts: &'e mut EvaluationCounts,
    /// Number of this poll.
    pub(super) poll: u32,
    /// Changes are known that were not observed yet.
    pub(super) is_behind: bool,
    pub(super) now: Time,
}

impl EvaluationRun<'_> {
    /// Evaluates everything that is due, and adds the parents concerned to `parents`.
    pub(super) fn evaluate_due(&mut self, parents: &mut Vec<ObjectId>) {
        while let Some(id) = self.scheduler.queue.take_due(self.now, &self.scheduler.graph) {
            if self.is_looping(id) {
                let at = self.now + EVALUATION_LOOP_DELAY;
                self.scheduler.debounce_evaluation(id, at, ChangeOrigin::PossiblyOwn);
            } else if let Some(parent) = self.evaluate_now(id) {
                if self.scheduler.graph.evaluations_of(parent).len() > 1 {
                    self.scheduler.enqueue_doubted(parent, self.now);
                }
                parents.push(parent);
            }
        }
    }

    fn is_looping(&mut self, id: EvaluationId) -> bool {
        let Some(evaluation) = self.scheduler.graph.evaluation_mut(id) else { return false };
        if evaluation.poll_evaluations.0 != self.poll {
            evaluation.poll_evaluations = (self.poll, 0);
        }
        evaluation.poll_evaluations.1 += 1;
        evaluation.poll_evaluations.1 > MAX_EVALUATIONS_PER_POLL
    }

    fn evaluate_now(&mut self, id: EvaluationId) -> Option<ObjectId> {
        let EvaluationScheduler { graph, policies, .. } = &*self.scheduler;
        let evaluation = graph.find_evaluation(id)?;
        let gate = policies.list_gate(evaluation.policy);
        let can_evaluate = policies.can_evaluate(evaluation, gate);
        let is_held = can_evaluate && !gate.only_takes_back() && self.scheduler.is_held_by_child(evaluation);
        let EvaluationScheduler { graph, policies, queue, .. } = &mut *self.scheduler;
        let evaluation = graph.evaluation_mut(id)?;
        let (parent, policy) = (evaluation.parent, policies.find_policy(evaluation.policy));
        let origin = queue.leave(id, evaluation);
        if self.is_behind && can_evaluate && policy.is_some_and(|policy| evaluation.may_turn_true(policy)) {
            queue.postpone(id, evaluation, origin);
            return None;
        }
        if is_held {
            queue.defer(id, evaluation, origin);
            self.scheduler.propagate_doubt(id);
            return None;
        }
        let reason_before = evaluation.answer().map(|answer| answer.reason);
        let changes = evaluation.evaluate_at(policy.filter(|_| can_evaluate)?, gate, self.now)?;
        let reason = evaluation.answer().map(|answer| answer.reason);
        let becomes_stuck = reason == Some(ParentReason::DeletionStuck) && reason != reason_before;
        evaluation.debounce.record_fire(self.now);
        queue.set_recheck(id, evaluation, changes.recheck_at);
        self.counts.evaluations += 1;
        self.counts.saved_flips += u64::from(changes.saved_flip);
        graph.count_unsettled(changes.settled, false);
        let origin = self.record_evaluated(parent, origin, becomes_stuck);
        if changes.moved {
            self.propagate_change(parent, origin);
        }
        if self.scheduler.queue.has_deferred() {
            self.scheduler.resume_deferred_above(parent, self.now, origin);
        }
        Some(parent)
    }

    /// Records an evaluation of a parent. The resync takes place at its short period again; and if others have changed
    /// something, the parent may be written for it. Returns the origin of everything that changed since it was last offered.
    fn record_evaluated(&mut self, id: ObjectId, origin: ChangeOrigin, becomes_stuck: bool) -> ChangeOrigin {
        let Some(parent) = self.scheduler.graph.parent_mut(id) else { return ChangeOrigin::PossiblyOwn };
        if origin == ChangeOrigin::External {
            parent.delivery.mark_external_change(self.now);
        }
        parent.origin = parent.origin.max(origin);
        self.observations.record_evaluated(id, parent, self.now);
        parent.termination_written &= !becomes_stuck;
        parent.origin
    }

    /// Propagates a changed answer of `parent`. Its owners are evaluated in the same poll, so that a cascade costs one
    /// debounce.
    fn propagate_change(&mut self, parent: ObjectId, origin: ChangeOrigin) {
        self.counts.changed_answers += 1;
        self.observations.enroll_unready(parent, &mut self.scheduler.graph, self.now);
        self.scheduler.reweigh_and_enqueue(parent, self.now, origin);
    }
}
