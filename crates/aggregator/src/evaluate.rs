//! Evaluation of one parent: its current answer and the time of the next change by time alone.

use std::mem::take;

use readiness::rollup::{ConditionStatus, LevelTally, ParentReason};
use readiness::{Level, Time};

use crate::critical_tally::CriticalTally;
use crate::evaluation::{EvaluationQueues, ParentEvaluation};
use crate::types::{Acceptance, EnginePolicy, HandledEvidence, KindState, PolicyAnswer};

/// Restriction on a policy's answers by the list and watch states of its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListGate {
    /// A kind was not listed yet: no answer is given.
    Closed,
    /// A kind was not listed in time for a changed rule: answers that rest on the old one are withdrawn, and no other
    /// answer is given.
    RuleChanged,
    /// The policy is refused and was never accepted: what says True is taken back, and nothing else is said.
    Refused,
    /// All kinds are synced.
    Open,
    /// A kind is in this state, so the answer is at most Unknown.
    Blind(KindState),
}

impl ListGate {
    /// Not everything that the policy rests on was listed, or it may not speak.
    pub(crate) fn awaits_list(self) -> bool {
        matches!(self, ListGate::Closed | ListGate::RuleChanged | ListGate::Refused)
    }

    /// What is said before is taken back where that is called for, and nothing else is said.
    pub(crate) fn only_takes_back(self) -> bool {
        matches!(self, ListGate::RuleChanged | ListGate::Refused)
    }

    /// The gate of a policy that is refused, for so long or not, over kinds in these states.
    pub(crate) fn of(acceptance: Acceptance, states: impl Iterator<Item = KindState>) -> ListGate {
        match (acceptance, ListGate::from_kind_states(states)) {
            (Acceptance::Accepted, gate) => gate,
            (Acceptance::Refused, _) | (_, ListGate::Closed) => ListGate::Closed,
            (Acceptance::RefusedForLong, _) => ListGate::Refused,
        }
    }

    /// Returns the gate of a policy whose kinds are in these states.
    pub(crate) fn from_kind_states(states: impl Iterator<Item = KindState>) -> ListGate {
        let mut gate = ListGate::Open;
        for state in states {
            match (state, gate) {
                (KindState::Listing, _) => return ListGate::Closed,
                (KindState::Forbidden, _) => gate = ListGate::Blind(KindState::Forbidden),
                (KindState::Stale, ListGate::Open) => gate = ListGate::Blind(KindState::Stale),
                _ => {}
            }
        }
        gate
    }
}

/// An answer and the time at which it has to be evaluated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EvaluationResult {
    answer: Option<PolicyAnswer>,
    recheck_at: Option<Time>,
}

/// Changes caused by an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvaluationChanges {
    /// The weight for its own parents may have changed.
    pub(crate) moved: bool,
    /// Ancestors may have been waiting for it.
    pub(crate) awaited: bool,
    /// Something outside the parent changed.
    pub(crate) external_change: bool,
    /// Queues that contained it until now.
    pub(crate) was_queued: EvaluationQueues,
    /// Time of the next evaluation.
    pub(crate) recheck_at: Option<Time>,
}

impl ParentEvaluation {
    /// Restarts the policy's `hold` where something now keeps the parent from being well. A trouble that comes and goes before
    /// the next judgement is seen here alone.
    pub(crate) fn restart_hold(&mut self, policy: &EnginePolicy) {
        let holds = self.all_ready_since.is_some() && !policy.hold.is_zero();
        if holds && CriticalTally::from_evaluation(self, policy).worst_reason().is_some() {
            self.all_ready_since = None;
        }
    }

    /// Returns `true` if a child was created, deleted or changed in its spec for this generation. Each kind has a watch of its
    /// own, so what an operator did at once may be seen a moment before the spec that called for it. What moved before this
    /// process first saw the generation is not known to have moved for it.
    fn has_moved_since_generation(&self, policy: &EnginePolicy) -> bool {
        let out_of_order = policy.settle.min(policy.debounce.cap);
        self.children_changed_at + out_of_order >= self.phase.observed_at
    }

    /// Evaluates a parent and stores the answer.
    pub(crate) fn evaluate_at(
        &mut self,
        policy: &EnginePolicy,
        gate: ListGate,
        now: Time,
    ) -> EvaluationChanges {
        let EvaluationResult { answer, recheck_at: again } = evaluate_parent(self, policy, gate, now);
        let again = again.filter(|_| self.view.is_some());
        self.debounce.record_fire(now);
        let news = EvaluationChanges {
            moved: take(&mut self.in_doubt) || self.answer != answer,
            awaited: take(&mut self.deferred) || !self.evaluated,
            external_change: take(&mut self.external_change),
            was_queued: take(&mut self.queued),
            recheck_at: again,
        };
        self.queued.time_dependent = again.is_some();
        self.answer = answer;
        self.evaluated |= gate != ListGate::Closed;
        self.rule_changed = gate.only_takes_back();
        news
    }
}

fn build_answer(reason: ParentReason, tally: &LevelTally) -> PolicyAnswer {
    let well = matches!(reason, ParentReason::AllChildrenReady);
    let neutral = matches!(reason, ParentReason::ChildrenSuspended | ParentReason::Terminating);
    PolicyAnswer {
        reason,
        total: tally.total_count(),
        ready: tally.count_at(Level::Ready),
        reconciling: !well && !neutral,
        stalled: false,
    }
}

/// Returns the answer of `roll` at `now` and advances the phase of its generation.
fn evaluate_parent(
    roll: &mut ParentEvaluation,
    policy: &EnginePolicy,
    gate: ListGate,
    now: Time,
) -> EvaluationResult {
    let Some(view) = &roll.view else { return EvaluationResult { answer: None, recheck_at: None } };
    let blocked = view.template_failed;
    if roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady) {
        roll.phase.unready_since = now;
    }
    let stand = CriticalTally::from_evaluation(roll, policy);
    if roll.deleting {
        return EvaluationResult {
            answer: Some(build_answer(ParentReason::Terminating, &stand.all)),
            recheck_at: None,
        };
    }
    if gate == ListGate::Refused {
        return EvaluationResult {
            answer: Some(build_answer(ParentReason::PolicyRefused, &LevelTally::default())),
            recheck_at: None,
        };
    }
    if !roll.phase.announced {
        return EvaluationResult {
            answer: Some(build_answer(ParentReason::ChildrenPending, &LevelTally::default())),
            recheck_at: None,
        };
    }
    if blocked {
        return apply_deadline(
            roll,
            policy,
            now,
            &stand.all,
            build_answer(ParentReason::TemplateFailed, &stand.all),
            None,
        );
    }
    if matches!(roll.evidence, HandledEvidence::Failed | HandledEvidence::GivenUp) {
        return answer_failed(roll, policy, now, &stand.all);
    }
    match check_handled(roll, policy, now) {
        Ok(()) => {
            if !std::mem::replace(&mut roll.phase.handled, true) && roll.evidence == HandledEvidence::Handled
            {
                roll.handled_at = now;
            }
        }
        Err(again) => return answer_pending(roll, policy, now, &stand.all, again),
    }
    evaluate_children(roll, policy, gate, now, &stand)
}

/// Returns `true` if nothing known about `roll` prevents it from being ready.
pub(crate) fn may_be_ready(roll: &ParentEvaluation, policy: &EnginePolicy) -> bool {
    let kept = roll.deleting
        || !(roll.phase.announced && roll.phase.handled)
        || matches!(
            roll.evidence,
            HandledEvidence::NotYet | HandledEvidence::Failed | HandledEvidence::GivenUp
        )
        || roll.view.as_ref().is_none_or(|v| v.template_failed);
    !kept && CriticalTally::from_evaluation(roll, policy).worst_reason().is_none()
}

/// Returns `true` if the parent is known to be failed or stuck while its answer says neither. Such a change is not
/// debounced.
pub(crate) fn is_urgent(roll: &ParentEvaluation, policy: &EnginePolicy) -> bool {
    use ParentReason::{ChildrenFailed, ChildrenStuck, DeadlineExceeded};
    let said = roll.answer.map(|answer| answer.reason);
    let known = matches!(said, Some(ChildrenFailed | ChildrenStuck | DeadlineExceeded));
    // The set is sorted worst first, so the check stops at the first child that is not as bad.
    let bad = |level| matches!(level, Level::Failed | Level::Stuck);
    let possible = !known && roll.unready.iter().next().is_some_and(|worst| bad(worst.weight.level));
    possible
        && roll.phase.announced
        && roll.phase.handled
        && !roll.deleting
        && matches!(
            CriticalTally::from_evaluation(roll, policy).worst_reason(),
            Some(ChildrenFailed | ChildrenStuck)
        )
}

/// Returns `Ok` if the operator has handled this generation; otherwise the time of the next evaluation if nothing
/// changes.
fn check_handled(roll: &ParentEvaluation, policy: &EnginePolicy, now: Time) -> Result<(), Option<Time>> {
    match roll.evidence {
        _ if roll.phase.handled && roll.evidence != HandledEvidence::NotYet => Ok(()),
        HandledEvidence::Handled => Ok(()),
        HandledEvidence::Unproven if !roll.phase.awaits_proof || roll.has_moved_since_generation(policy) => {
            Ok(())
        }
        HandledEvidence::NotYet
        | HandledEvidence::Unmarked
        | HandledEvidence::Unproven
        | HandledEvidence::Failed
        | HandledEvidence::GivenUp => Err(None),
        HandledEvidence::Masked if !roll.has_moved_since_generation(policy) => Err(None),
        HandledEvidence::Silent | HandledEvidence::Masked => {
            let at = roll.phase.since.max(roll.children_changed_at) + policy.settle;
            if at <= now { Ok(()) } else { Err(Some(at)) }
        }
    }
}

/// The answer of a generation that its operator failed to handle. What it said before of having handled it is void.
fn answer_failed(
    roll: &mut ParentEvaluation,
    policy: &EnginePolicy,
    now: Time,
    all: &LevelTally,
) -> EvaluationResult {
    roll.phase.handled = false;
    roll.all_ready_since = None;
    let answer = build_answer(ParentReason::OperatorFailed, &LevelTally::default());
    if roll.evidence == HandledEvidence::GivenUp {
        let answer = PolicyAnswer { reconciling: false, stalled: true, ..answer };
        return EvaluationResult { answer: Some(answer), recheck_at: None };
    }
    apply_deadline(roll, policy, now, all, answer, None)
}

fn answer_pending(
    roll: &ParentEvaluation,
    policy: &EnginePolicy,
    now: Time,
    all: &LevelTally,
    again: Option<Time>,
) -> EvaluationResult {
    let answer = build_answer(ParentReason::ChildrenPending, &LevelTally::default());
    if again.is_some() {
        return apply_deadline(roll, policy, now, all, answer, again);
    }
    let silent_at = roll.phase.since + policy.pending;
    let first = policy.deadline.is_none_or(|limit| silent_at < roll.phase.unready_since + limit);
    if silent_at <= now && first {
        let answer = PolicyAnswer {
            reconciling: false,
            stalled: true,
            ..build_answer(ParentReason::OperatorSilent, &LevelTally::default())
        };
        return EvaluationResult { answer: Some(answer), recheck_at: None };
    }
    apply_deadline(roll, policy, now, all, answer, Some(silent_at))
}

/// Applies the policy's deadline to an answer; `again` is the time at which the answer changes for another reason.
fn apply_deadline(
    roll: &ParentEvaluation,
    policy: &EnginePolicy,
    now: Time,
    all: &LevelTally,
    answer: PolicyAnswer,
    again: Option<Time>,
) -> EvaluationResult {
    let Some(limit) = policy.deadline else {
        return EvaluationResult { answer: Some(answer), recheck_at: again };
    };
    let at = roll.phase.unready_since + limit;
    if at > now {
        return EvaluationResult { answer: Some(answer), recheck_at: Some(again.map_or(at, |a| a.min(at))) };
    }
    // The text is the same whether or not its children have been evaluated since a restart.
    let answer = PolicyAnswer {
        reconciling: false,
        stalled: true,
        ..build_answer(ParentReason::DeadlineExceeded, all)
    };
    EvaluationResult { answer: Some(answer), recheck_at: again.filter(|again| *again > now) }
}

fn evaluate_children(
    roll: &mut ParentEvaluation,
    policy: &EnginePolicy,
    gate: ListGate,
    now: Time,
    stand: &CriticalTally,
) -> EvaluationResult {
    let reason = stand.worst_reason();
    roll.missing_since = match reason {
        Some(ParentReason::ChildrenMissing) => roll.missing_since.or(Some(now)),
        _ => None,
    };
    if gate == ListGate::RuleChanged
        && !matches!(reason, Some(ParentReason::ChildrenFailed | ParentReason::ChildrenStuck))
    {
        roll.all_ready_since = None;
        return EvaluationResult {
            answer: Some(build_answer(ParentReason::RuleChanged, &stand.all)),
            recheck_at: None,
        };
    }
    let Some(reason) = reason else { return answer_all_ready(roll, policy, gate, now, &stand.all) };
    roll.all_ready_since = None;
    // A child that is not found among objects that cannot be observed is not known to be missing.
    if let ListGate::Blind(state) = gate
        && (reason.condition_status() != ConditionStatus::False || reason == ParentReason::ChildrenMissing)
    {
        return answer_blind(state, &stand.all);
    }
    let mut answer = build_answer(reason, &stand.all);
    let overdue = roll.missing_since.map(|since| since + policy.pending);
    answer.stalled = match reason {
        ParentReason::ChildrenFailed => stand.counted_tally().terminal_count() > 0,
        ParentReason::ChildrenStuck => true,
        ParentReason::ChildrenMissing => overdue.is_some_and(|at| at <= now),
        _ => false,
    };
    answer.reconciling &= !answer.stalled;
    let again = overdue.filter(|at| *at > now);
    if reason == ParentReason::ChildrenSuspended {
        return EvaluationResult { answer: Some(answer), recheck_at: again };
    }
    apply_deadline(roll, policy, now, &stand.all, answer, again)
}

fn answer_blind(state: KindState, critical: &LevelTally) -> EvaluationResult {
    let reason = match state {
        KindState::Stale => ParentReason::WatchStale,
        _ => ParentReason::KindNotVisible,
    };
    EvaluationResult { answer: Some(build_answer(reason, critical)), recheck_at: None }
}

fn answer_all_ready(
    roll: &mut ParentEvaluation,
    policy: &EnginePolicy,
    gate: ListGate,
    now: Time,
    critical: &LevelTally,
) -> EvaluationResult {
    let since = *roll.all_ready_since.get_or_insert(now);
    if let ListGate::Blind(state) = gate {
        return answer_blind(state, critical);
    }
    let stands = roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
    let settled = roll.child_appeared_at + policy.debounce.quiet + policy.settle + policy.hold;
    // Each kind has a watch of its own: objects that the operator created before it reported completion may arrive
    // after the report.
    let (at, proven) = (settled.max(since + policy.hold), roll.handled_at + policy.debounce.quiet);
    let (reason, again) = if stands || at.max(proven) <= now {
        (ParentReason::AllChildrenReady, None)
    } else if at <= now && roll.answer.is_none_or(|a| a.reason == ParentReason::ChildrenPending) {
        (ParentReason::ChildrenPending, Some(proven))
    } else {
        (ParentReason::ChildrenSettling, Some(at.max(proven)))
    };
    EvaluationResult { answer: Some(build_answer(reason, critical)), recheck_at: again }
}
