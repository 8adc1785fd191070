//! Evaluation of one parent under one policy.

use readiness::rollup::{ChildWeight, ParentReason};
use readiness::{Level, OptionalTime, Steadiness, Time};
use timer::DebounceState;

use super::{
    ChildCounts, GenerationProgress, GenerationProof, ObservedParent, QueuePosition, StageEvent, UnreadyEntry,
};
use crate::critical_tally::CriticalTally;
use crate::evaluate::evaluate_parent;
use crate::evidence::{HandledEvidence, ReportedFailure};
use crate::ids::{ObjectId, PolicyId};
use crate::list_gate::PolicyGate;
use crate::types::{EnginePolicy, PolicyAnswer};

/// Evaluation of one parent under one policy: its inputs, its place in the queues, and its stage.
#[derive(Clone, Debug)]
pub(crate) struct ParentEvaluation {
    pub(crate) parent: ObjectId,
    pub(crate) policy: PolicyId,
    pub(crate) children: ChildCounts,
    /// What is observed of the parent, and its stage; `None` while only children refer to it.
    pub(crate) observed: Option<ObservedParent>,
    pub(crate) queue: QueuePosition,
    /// The answer changes with time alone, so the queue of those contains it.
    pub(crate) is_time_dependent: bool,
    pub(crate) debounce: DebounceState<Time, OptionalTime>,
    /// Poll of the last evaluation.
    pub(crate) last_poll: u32,
    /// Number of evaluations in that poll.
    pub(crate) poll_evaluations: u8,
}

// Every parent has one per policy for as long as it exists.
const _: () = assert!(size_of::<ParentEvaluation>() <= 256);

/// Changes caused by an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvaluationChanges {
    /// The weight for its own parents may have changed.
    pub(crate) moved: bool,
    /// The parent is now known to be stuck in its deletion.
    pub(crate) becomes_stuck: bool,
    /// Its state was unknown, and is known from now on.
    pub(crate) settled: bool,
    /// Time of the next evaluation.
    pub(crate) recheck_at: Option<Time>,
    /// 1 if every child is ready again and the answer said True all the while, otherwise 0.
    pub(crate) saved_flips: u64,
}

impl ParentEvaluation {
    /// Changes the weight of a child; the entry has to equal the one that was added.
    pub(crate) fn reweigh_child(&mut self, entry: UnreadyEntry, weight: ChildWeight) {
        self.children.reweigh_child(entry, weight);
        if entry.weight.steadiness() == Steadiness::Unobserved
            && !self.children.has_unobserved()
            && let Some(observed) = &mut self.observed
        {
            observed.phase.steady.note_observed();
        }
    }

    pub(crate) fn new(parent: ObjectId, policy: PolicyId) -> Self {
        ParentEvaluation {
            parent,
            policy,
            children: ChildCounts::default(),
            observed: None,
            queue: QueuePosition::Idle,
            is_time_dependent: false,
            debounce: DebounceState::default(),
            last_poll: 0,
            poll_evaluations: 0,
        }
    }

    /// Returns the last answer about the observed parent.
    pub(crate) fn answer(&self) -> Option<PolicyAnswer> {
        self.observed.as_ref()?.stage.answer()
    }

    /// Returns `true` if the answer says True, and must not be counted on.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.stage.is_in_doubt())
    }

    /// Returns `true` if it waits for the proof that its policy asks for.
    pub(crate) fn awaits_proof(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.phase.proof == GenerationProof::Awaited)
    }

    /// Counts one more evaluation in this poll, and returns how many there were.
    pub(crate) fn count_evaluation(&mut self, poll: u32) -> u8 {
        if self.last_poll != poll {
            (self.last_poll, self.poll_evaluations) = (poll, 0);
        }
        self.poll_evaluations += 1;
        self.poll_evaluations
    }

    /// Returns `true` if all children were ready when they were last evaluated, so that `hold` may count.
    pub(crate) fn is_holding(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.phase.all_ready_since.is_some())
    }

    /// Restarts the policy's `hold` where something now keeps the parent from being well. A trouble that comes and goes before
    /// the next judgement is seen here alone.
    pub(crate) fn restart_hold(&mut self, policy: &EnginePolicy) {
        let Some(observed) = &mut self.observed else { return };
        let holds = observed.phase.all_ready_since.is_some() && !policy.hold.is_zero();
        let tally = || CriticalTally::of_children(&self.children, &observed.view, policy);
        if holds && tally().worst_reason().is_some() {
            observed.phase.all_ready_since = OptionalTime::NONE;
        }
    }

    /// Returns `true` if nothing known about the parent prevents it from being ready.
    pub(crate) fn may_be_ready(&self, policy: &EnginePolicy, gate: PolicyGate) -> bool {
        let Some(observed) = &self.observed else { return false };
        let is_handled = || match observed.phase.progress {
            GenerationProgress::Handled => true,
            GenerationProgress::Unreported => observed.rests_from(&self.children, policy, gate).is_some(),
            _ => false,
        };
        let kept = observed.deleting
            || !is_handled()
            || matches!(
                observed.evidence,
                HandledEvidence::NotYet | HandledEvidence::Failed | HandledEvidence::GivenUp
            )
            || observed.view.template_failed
            || observed.view.reported_failure() != ReportedFailure::None;
        let all_ready = || {
            let stand = CriticalTally::of_children(&self.children, &observed.view, policy);
            stand.worst_reason().is_none()
        };
        // What the policy keeps True for a while contradicts nothing, and what fails does at once.
        let stands = || {
            let stand = CriticalTally::of_children(&self.children, &observed.view, policy);
            let fails = matches!(
                stand.worst_reason(),
                Some(ParentReason::ChildrenFailed | ParentReason::ChildrenStuck)
            );
            let keeps = !policy.grace.is_zero()
                || observed.steadiness_of(&self.children, policy) != Steadiness::Unsteady;
            observed.stage.is_own()
                && observed.stage.says_true()
                && !observed.is_told_otherwise()
                && !fails
                && keeps
        };
        !kept && (all_ready() || stands())
    }

    /// Returns the time until which nothing is said of a parent that a list may show at rest, instead of a first word that the
    /// next one would take back. A parent below it, which the lists show too, is waited for a little longer.
    pub(crate) fn rests_until(
        &self,
        policy: &EnginePolicy,
        gate: PolicyGate,
        awaits_children: impl FnOnce() -> bool,
    ) -> Option<Time> {
        let observed = self.observed.as_ref().filter(|held| !held.phase.progress.is_announced())?;
        let rests_from = observed.rests_from(&self.children, policy, gate)?;
        if observed.is_whole(&self.children, policy) {
            return Some(rests_from);
        }
        awaits_children().then_some(rests_from + policy.debounce.cap)
    }

    /// Returns `true` if an evaluation may turn the answer to True.
    pub(crate) fn may_turn_true(&self, policy: &EnginePolicy, gate: PolicyGate) -> bool {
        let Some(observed) = &self.observed else { return false };
        let is_announced = || {
            observed.phase.progress.is_announced()
                || observed.rests_from(&self.children, policy, gate).is_some()
        };
        let open = !observed.deleting && is_announced();
        open && !observed.stage.says_true()
            && CriticalTally::of_children(&self.children, &observed.view, policy).worst_reason().is_none()
    }

    /// Returns `true` if the parent is known to be failed or stuck while its answer says neither. Such a change is not
    /// debounced.
    pub(crate) fn is_urgent(&self, policy: &EnginePolicy) -> bool {
        use ParentReason::{ChildrenFailed, ChildrenStuck, DeadlineExceeded};
        // The set is sorted worst first, so the check stops at the first child that is not as bad.
        let bad = |level| matches!(level, Level::Failed | Level::Stuck);
        if !self.children.unready.iter().next().is_some_and(|worst| bad(worst.weight.level())) {
            return false;
        }
        let Some(observed) = &self.observed else { return false };
        let said = observed.stage.answer().map(|answer| answer.reason);
        let known = matches!(said, Some(ChildrenFailed | ChildrenStuck | DeadlineExceeded));
        !known
            && observed.phase.progress == GenerationProgress::Handled
            && !observed.deleting
            && matches!(
                CriticalTally::of_children(&self.children, &observed.view, policy).worst_reason(),
                Some(ChildrenFailed | ChildrenStuck)
            )
    }

    /// Evaluates the observed parent. `None` while only children refer to it.
    #[inline]
    pub(crate) fn evaluate_at(
        &mut self,
        policy: &EnginePolicy,
        gate: PolicyGate,
        now: Time,
    ) -> Option<EvaluationChanges> {
        let observed = self.observed.as_mut()?;
        let was_tolerating = observed.phase.steady.is_tolerating();
        observed.phase.record_evaluated(now);
        let result = evaluate_parent(observed, &self.children, policy, gate, now);
        let says_true = result.answer.reason == ParentReason::AllChildrenReady;
        if !says_true {
            observed.phase.steady.end();
        }
        let is_saved = was_tolerating && says_true && !observed.phase.steady.is_tolerating();
        let saved_flips = u64::from(is_saved);
        let before = observed.stage.answer();
        let answers_anew = before != Some(result.answer) || observed.stage.is_in_doubt();
        let is_stuck = |answer: PolicyAnswer| answer.reason == ParentReason::DeletionStuck;
        let becomes_stuck = is_stuck(result.answer) && !before.is_some_and(is_stuck);
        let was_unsettled = observed.stage.is_unsettled();
        observed.stage = gate.gate.stage_after(observed.stage, result.answer);
        if observed.stage.is_unsettled() && observed.is_overdue(policy, gate.listed_at, now) {
            observed.advance_stage(StageEvent::Overdue);
        }
        let rests_otherwise = observed.rest_on_unjudged(self.children.awaits_rules());
        let moved = answers_anew || rests_otherwise;
        let settled = was_unsettled && !observed.stage.is_unsettled();
        self.debounce.record_fire(now);
        Some(EvaluationChanges { moved, becomes_stuck, settled, recheck_at: result.recheck_at, saved_flips })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_counted_in_each_poll_anew() {
        let mut evaluation = ParentEvaluation::new(ObjectId(1), PolicyId(1));
        let counts = [7, 7, 7, 8, 8, 7].map(|poll| evaluation.count_evaluation(poll));
        assert_eq!(counts, [1, 2, 3, 1, 2, 1]);
    }
}
