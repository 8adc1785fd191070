//! The evaluations of one poll, and of the owners of what they change.

use std::time::Duration;

use readiness::Time;

use super::scheduler::EvaluationScheduler;
use crate::evaluation::EvaluationChanges;
use crate::graph::ResyncStage;
use crate::ids::{EvaluationId, ObjectId};
use crate::list_gate::PolicyGate;
use crate::observation_schedule::ObservationSchedule;
use crate::types::ChangeOrigin;

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

/// What is known of a parent of which an answer was just evaluated.
#[derive(Clone, Copy, Debug)]
struct EvaluatedParent {
    /// Origin of everything that changed since the parent was last offered.
    origin: ChangeOrigin,
    /// It takes part in the resync.
    is_enrolled: bool,
    /// Several policies apply to it.
    has_several_policies: bool,
}

impl EvaluationRun<'_> {
    /// Evaluates everything that is due, and adds the parents concerned to `parents`.
    pub(super) fn evaluate_due(&mut self, parents: &mut Vec<ObjectId>) {
        while let Some(id) = self.scheduler.queue.take_due(self.now, &self.scheduler.graph) {
            parents.extend(self.evaluate_now(id));
        }
    }

    /// Evaluates unless something has to be waited for; returns the parent concerned.
    fn evaluate_now(&mut self, id: EvaluationId) -> Option<ObjectId> {
        let evaluation = self.scheduler.graph.evaluation_mut(id)?;
        if evaluation.count_evaluation(self.poll) > MAX_EVALUATIONS_PER_POLL {
            let at = self.now + EVALUATION_LOOP_DELAY;
            self.scheduler.queue.debounce(id, evaluation, at, ChangeOrigin::PossiblyOwn);
            return None;
        }
        let gated = self.scheduler.policies.find_gated(evaluation.policy);
        let gate = gated.map_or(PolicyGate::CLOSED, |(_, gate)| gate);
        let can_evaluate = self.scheduler.policies.can_evaluate(evaluation, gate.gate);
        let evaluation = self.scheduler.graph.find_evaluation(id)?;
        let is_held = can_evaluate && !gate.gate.only_takes_back() && self.scheduler.is_held_by_child(id);
        let policy = gated.map(|(policy, _)| policy).filter(|_| can_evaluate);
        let awaits_children = || self.scheduler.awaits_child_evaluation(evaluation);
        let rests_until = policy.and_then(|policy| evaluation.rests_until(policy, gate, awaits_children));
        let rests_until = rests_until.filter(|until| *until > self.now);
        let evaluation = self.scheduler.graph.evaluation_mut(id)?;
        let origin = self.scheduler.queue.leave(id, evaluation);
        if self.is_behind && policy.is_some_and(|policy| evaluation.may_turn_true(policy, gate)) {
            self.scheduler.queue.postpone(id, evaluation, origin);
            return None;
        }
        if is_held {
            self.scheduler.queue.defer(id, evaluation, origin);
            self.scheduler.propagate_doubt(id, self.now, origin);
            return None;
        }
        let policy = policy?;
        if let Some(until) = rests_until {
            self.scheduler.queue.debounce(id, evaluation, until, origin);
            return None;
        }
        let changes = evaluation.evaluate_at(policy, gate, self.now)?;
        if policy.requires_proof && evaluation.awaits_proof() {
            self.scheduler.unproven.push(id);
        }
        let parent = evaluation.parent;
        self.scheduler.queue.set_recheck(id, evaluation, changes.recheck_at);
        self.scheduler.graph.count_unsettled(changes.settled, false);
        self.propagate_evaluation(parent, origin, changes);
        Some(parent)
    }

    /// Propagates an evaluation of `parent`. Where its answer has changed, its owners are evaluated in the same poll, so that
    /// a cascade costs one debounce.
    fn propagate_evaluation(&mut self, parent: ObjectId, origin: ChangeOrigin, changes: EvaluationChanges) {
        self.counts.evaluations += 1;
        self.counts.saved_flips += changes.saved_flips;
        let EvaluatedParent { origin, is_enrolled, has_several_policies } =
            self.record_evaluated(parent, origin, changes.becomes_stuck);
        if changes.moved {
            self.counts.changed_answers += 1;
            if !is_enrolled {
                self.observations.enroll_unready(parent, &mut self.scheduler.graph, self.now);
            }
            self.scheduler.reweigh_and_enqueue(parent, self.now, origin);
        }
        if self.scheduler.queue.has_deferred() {
            self.scheduler.resume_deferred_above(parent, self.now, origin);
        }
        if has_several_policies {
            self.scheduler.enqueue_doubted(parent, self.now);
        }
    }

    /// Records an evaluation of a parent. The resync takes place at its short period again; and if others have changed
    /// something, the parent may be written for it.
    fn record_evaluated(
        &mut self,
        id: ObjectId,
        origin: ChangeOrigin,
        becomes_stuck: bool,
    ) -> EvaluatedParent {
        let Some(parent) = self.scheduler.graph.parent_mut(id) else {
            let origin = ChangeOrigin::PossiblyOwn;
            return EvaluatedParent { origin, is_enrolled: true, has_several_policies: false };
        };
        if origin == ChangeOrigin::External {
            parent.delivery.mark_external_change(self.now);
        }
        parent.origin = parent.origin.max(origin);
        self.observations.record_evaluated(id, parent, self.now);
        parent.termination_written &= !becomes_stuck;
        EvaluatedParent {
            origin: parent.origin,
            is_enrolled: parent.resync != ResyncStage::Outside,
            has_several_policies: parent.evaluations.as_slice().len() > 1,
        }
    }
}

#[cfg(test)]
mod tests;
