//! Evaluation of one parent: its current answer and the time of the next change by time alone.

use readiness::rollup::{ConditionStatus, LevelTally, ParentReason};
use readiness::{Level, OptionalTime, Steadiness, Time};

use crate::answer_view::{AnswerView, WrittenAnswer};
use crate::critical_tally::CriticalTally;
use crate::evaluation::{ChildCounts, GenerationPhase, GenerationProof, ObservedParent, SteadyLimits};
use crate::evidence::{HandledEvidence, ReportedFailure};
use crate::list_gate::{ListGate, PolicyGate};
use crate::time_limits::TimeLimits;
use crate::types::{EnginePolicy, KindState, PolicyAnswer};

/// An answer and the time at which it has to be evaluated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvaluationResult {
    pub(crate) answer: PolicyAnswer,
    pub(crate) recheck_at: Option<Time>,
}

fn build_answer(reason: ParentReason, tally: &LevelTally) -> PolicyAnswer {
    let well = matches!(reason, ParentReason::AllChildrenReady);
    let neutral = matches!(
        reason,
        ParentReason::ChildrenSuspended | ParentReason::Terminating | ParentReason::DeletionStuck
    );
    PolicyAnswer {
        reason,
        total: tally.total_count(),
        ready: tally.count_at(Level::Ready),
        reconciling: !well && !neutral,
        stalled: false,
        counted_as: None,
    }
}

/// Returns the answer about a parent at `now` and advances the phase of its generation.
#[inline]
pub(crate) fn evaluate_parent(
    observed: &mut ObservedParent,
    children: &ChildCounts,
    policy: &EnginePolicy,
    policy_gate: PolicyGate,
    now: Time,
) -> EvaluationResult {
    use HandledEvidence::{Failed, GivenUp, NotYet};
    let PolicyGate { gate, listed_at } = policy_gate;
    let final_answer = |answer| EvaluationResult { answer, recheck_at: None };
    if observed.stands_ready() {
        observed.phase.unready_since = now;
    }
    let stand = CriticalTally::of_children(children, &observed.view, policy);
    if observed.deleting {
        return answer_deletion(observed.view.deletion_stuck_at(), now, &stand.all);
    }
    if gate == ListGate::Refused {
        return final_answer(build_answer(ParentReason::PolicyRefused, &LevelTally::default()));
    }
    if !observed.phase.progress.is_announced() {
        if !observed.is_at_rest(children, policy, policy_gate, now) {
            return final_answer(build_answer(ParentReason::ChildrenPending, &LevelTally::default()));
        }
        observed.record_at_rest();
    }
    if observed.view.template_failed {
        let limits = TimeLimits::new(policy, &observed.view);
        let answer = build_answer(ParentReason::TemplateFailed, &stand.all);
        return apply_deadline(&observed.phase, limits, now, &stand.all, answer, None);
    }
    if let Some(answer) = await_recovery(observed, gate, &stand, now) {
        return answer;
    }
    let is_void = matches!(observed.evidence, NotYet | Failed | GivenUp);
    if (is_void || !observed.phase.progress.is_handled())
        && let Some(answer) = await_operator(observed, children, policy, (gate, listed_at), now, &stand.all)
    {
        return answer;
    }
    if observed.view.reported_failure() != ReportedFailure::None {
        return answer_failed(observed, TimeLimits::new(policy, &observed.view), now);
    }
    evaluate_children(observed, children, policy, gate, now, &stand)
}

/// Returns the answer of a parent that says True, all of whose children are ready, and whose own status has reported a failure for a
/// moment only: what passes at once, as an error that the operator mends by its next try, turns nothing. `None` once it has lasted.
fn await_recovery(
    observed: &mut ObservedParent,
    gate: ListGate,
    stand: &CriticalTally,
    now: Time,
) -> Option<EvaluationResult> {
    let span = observed.view.reported_failure().passes_within()?;
    let stands = observed.stands_ready()
        && !observed.is_told_otherwise()
        && observed.evidence != HandledEvidence::NotYet
        && gate == ListGate::Open
        && stand.worst_reason().is_none();
    if !stands {
        return None;
    }
    let limits = SteadyLimits { available: span, unsteady: span };
    let until = observed.phase.steady.keep_until(Steadiness::Unsteady, limits, now)?;
    let answer = build_answer(ParentReason::AllChildrenReady, &stand.all);
    Some(EvaluationResult { answer, recheck_at: Some(until) })
}

/// Returns the answer of a parent that is being deleted.
#[cold]
fn answer_deletion(stuck_at: Option<Time>, now: Time, tally: &LevelTally) -> EvaluationResult {
    if stuck_at.is_some_and(|at| at <= now) {
        let stuck = PolicyAnswer { stalled: true, ..build_answer(ParentReason::DeletionStuck, tally) };
        return EvaluationResult { answer: stuck, recheck_at: None };
    }
    EvaluationResult { answer: build_answer(ParentReason::Terminating, tally), recheck_at: stuck_at }
}

/// Returns the answer while the operator has not handled this generation, or has failed to; `None` once it has, as far as is
/// known, and where nobody can see what it does.
#[cold]
fn await_operator(
    observed: &mut ObservedParent,
    children: &ChildCounts,
    policy: &EnginePolicy,
    (gate, listed_at): (ListGate, Time),
    now: Time,
    all: &LevelTally,
) -> Option<EvaluationResult> {
    if matches!(observed.evidence, HandledEvidence::Failed | HandledEvidence::GivenUp) {
        let limits = TimeLimits::new(policy, &observed.view);
        // What it said before of having handled it is void.
        observed.phase.progress.fail();
        return Some(answer_failed(observed, limits, now));
    }
    // Silence proves nothing to the blind. Where a generation needs a proof, what follows asks for it.
    if observed.evidence == HandledEvidence::Silent
        && !policy.requires_proof
        && matches!(gate, ListGate::Blind(_))
    {
        return None;
    }
    // Nor is what a generation needs beside it known to them. They say nothing of children then: whoever comes next takes a word
    // about these for one of a generation that was handled.
    if let ListGate::Blind(state) = gate
        && observed.evidence == HandledEvidence::Masked
    {
        return Some(answer_unproven_blind(observed, state, all));
    }
    let lacks_proof = policy.requires_proof && observed.phase.proof != GenerationProof::Given;
    if lacks_proof {
        observed.phase.proof = GenerationProof::Awaited;
    }
    if let Err(again) = observed.check_handled(children, policy, listed_at, now) {
        if !lacks_proof {
            // It has to hold when everything else does.
            observed.phase.proof = GenerationProof::NotAsked;
        }
        let limits = TimeLimits::new(policy, &observed.view);
        let limits = if again.is_some() { limits.of_silent(observed, policy, listed_at) } else { limits };
        return Some(answer_pending(&observed.phase, limits, now, all, again));
    }
    if lacks_proof {
        if let ListGate::Blind(state) = gate {
            return Some(answer_unproven_blind(observed, state, all));
        }
        let limits = TimeLimits::new(policy, &observed.view);
        return Some(answer_pending(&observed.phase, limits, now, all, None));
    }
    let is_told = observed.evidence == HandledEvidence::Handled || policy.requires_proof;
    if observed.phase.progress.handle() && is_told {
        observed.phase.handled_at = now;
    }
    None
}

/// The answer of a generation that its operator failed to handle.
#[cold]
fn answer_failed(observed: &mut ObservedParent, limits: TimeLimits, now: Time) -> EvaluationResult {
    const FAILED: ParentReason = ParentReason::OperatorFailed;
    observed.phase.all_ready_since = OptionalTime::NONE;
    if observed.evidence == HandledEvidence::GivenUp {
        let answer = build_answer(FAILED, &LevelTally::default());
        let answer = PolicyAnswer { reconciling: false, stalled: true, ..answer };
        return EvaluationResult { answer, recheck_at: None };
    }
    let late_at = limits.deadline.map(|limit| observed.phase.unready_since + limit);
    answer_until_late(FAILED, FAILED, limits, late_at, now)
}

/// Returns the answer of a parent whose operator is waited for until `late_at`, and from then on that it is late. The reason
/// goes on to say that it is the operator which is waited for: whoever restarts has nothing else to know it by.
fn answer_until_late(
    reason: ParentReason,
    late: ParentReason,
    limits: TimeLimits,
    late_at: Option<Time>,
    now: Time,
) -> EvaluationResult {
    let answer = build_answer(reason, &LevelTally::default());
    if late_at.is_none_or(|at| at > now) {
        return EvaluationResult { answer, recheck_at: late_at };
    }
    let answer = PolicyAnswer {
        reconciling: false,
        stalled: true,
        counted_as: limits.counted_as(answer),
        ..build_answer(late, &LevelTally::default())
    };
    EvaluationResult { answer, recheck_at: None }
}

#[cold]
fn answer_pending(
    phase: &GenerationPhase,
    limits: TimeLimits,
    now: Time,
    all: &LevelTally,
    again: Option<Time>,
) -> EvaluationResult {
    if again.is_some() {
        let answer = build_answer(ParentReason::ChildrenPending, &LevelTally::default());
        return apply_deadline(phase, limits, now, all, answer, again);
    }
    let silent_at = limits.pending.map(|pending| phase.since + pending);
    let late_at = limits.deadline.map(|limit| (phase.unready_since + limit).max(limits.seen_at));
    let at = silent_at.into_iter().chain(late_at).min();
    answer_until_late(ParentReason::ChildrenPending, ParentReason::OperatorSilent, limits, at, now)
}

/// Applies the policy's deadline to an answer; `again` is the time at which the answer changes for another reason.
fn apply_deadline(
    phase: &GenerationPhase,
    limits: TimeLimits,
    now: Time,
    all: &LevelTally,
    answer: PolicyAnswer,
    again: Option<Time>,
) -> EvaluationResult {
    let Some(limit) = limits.deadline else {
        return EvaluationResult { answer, recheck_at: again };
    };
    let at = (phase.unready_since + limit).max(limits.seen_at);
    if at > now {
        return EvaluationResult { answer, recheck_at: Some(again.map_or(at, |a| a.min(at))) };
    }
    // The text is the same whether or not its children have been evaluated since a restart.
    let answer = PolicyAnswer {
        reconciling: false,
        stalled: true,
        counted_as: limits.counted_as(answer),
        ..build_answer(ParentReason::DeadlineExceeded, all)
    };
    EvaluationResult { answer, recheck_at: again.filter(|again| *again > now) }
}

fn evaluate_children(
    observed: &mut ObservedParent,
    children: &ChildCounts,
    policy: &EnginePolicy,
    gate: ListGate,
    now: Time,
    stand: &CriticalTally,
) -> EvaluationResult {
    let reason = stand.worst_reason();
    let phase = &mut observed.phase;
    phase.missing_since = match reason {
        Some(ParentReason::ChildrenMissing) => phase.missing_since.get_or_insert(now).into(),
        _ => OptionalTime::NONE,
    };
    if gate == ListGate::RuleChanged
        && !matches!(reason, Some(ParentReason::ChildrenFailed | ParentReason::ChildrenStuck))
    {
        phase.all_ready_since = OptionalTime::NONE;
        return EvaluationResult {
            answer: build_answer(ParentReason::RuleChanged, &stand.all),
            recheck_at: None,
        };
    }
    let Some(reason) = reason else {
        return answer_all_ready(observed, children, policy, gate, now, stand);
    };
    if let Some(until) = keep_true(observed, children, policy, gate, now, reason) {
        let answer = build_answer(ParentReason::AllChildrenReady, &stand.all);
        return EvaluationResult { answer, recheck_at: Some(until) };
    }
    let phase = &mut observed.phase;
    phase.all_ready_since = OptionalTime::NONE;
    // A child that is not found among objects that cannot be observed is not known to be missing. Nor is a parent known to be
    // suspended, which counts as neutral above it, while others of its children may fail unseen.
    let may_be_otherwise = matches!(reason, ParentReason::ChildrenMissing | ParentReason::ChildrenSuspended);
    if let ListGate::Blind(state) = gate
        && (reason.condition_status() != ConditionStatus::False || may_be_otherwise)
    {
        return answer_blind(state, &stand.all);
    }
    let mut answer = build_answer(reason, &stand.all);
    let limits = TimeLimits::new(policy, &observed.view);
    let missing_since = if observed.view.stalled_unrecorded {
        recorded_missing_since(&observed.view)
    } else {
        phase.missing_since.get()
    };
    let overdue = missing_since.zip(limits.pending).map(|(since, pending)| since + pending);
    let unstalled = answer;
    answer.stalled = match reason {
        ParentReason::ChildrenFailed => stand.counted_tally().terminal_count() > 0,
        ParentReason::ChildrenStuck => true,
        ParentReason::ChildrenMissing => overdue.is_some_and(|at| at <= now),
        _ => false,
    };
    answer.reconciling &= !answer.stalled;
    if reason == ParentReason::ChildrenMissing && answer.stalled {
        answer.counted_as = limits.counted_as(unstalled);
    }
    let again = overdue.filter(|at| *at > now);
    if reason == ParentReason::ChildrenSuspended {
        return EvaluationResult { answer, recheck_at: again };
    }
    apply_deadline(phase, limits, now, &stand.all, answer, again)
}

/// Returns the time since which the condition says that a child is missing, by its own record: the next process has nothing
/// else, and has to come to the same answer.
fn recorded_missing_since(view: &AnswerView) -> Option<Time> {
    let says = |told: &WrittenAnswer| told.is_untampered() && told.reason == ParentReason::ChildrenMissing;
    view.written.filter(says).map(|told| told.since)
}

/// Returns the time until which an answer that says True stands although this reason is against it: its children are rolled
/// out and available, or the policy gives them the time. What failed or is stuck ends it at once.
fn keep_true(
    observed: &mut ObservedParent,
    children: &ChildCounts,
    policy: &EnginePolicy,
    gate: ListGate,
    now: Time,
    reason: ParentReason,
) -> Option<Time> {
    let fails = matches!(reason, ParentReason::ChildrenFailed | ParentReason::ChildrenStuck);
    if fails || gate != ListGate::Open || !observed.stands_ready() || observed.is_told_otherwise() {
        return None;
    }
    let steadiness = observed.steadiness_of(children, policy);
    let limits = SteadyLimits { available: policy.pending, unsteady: policy.grace };
    observed.phase.all_ready_since = OptionalTime::NONE;
    observed.phase.steady.keep_until(steadiness, limits, now)
}

fn answer_blind(state: KindState, critical: &LevelTally) -> EvaluationResult {
    let reason = match state {
        KindState::Stale => ParentReason::WatchStale,
        _ => ParentReason::KindNotVisible,
    };
    EvaluationResult { answer: build_answer(reason, critical), recheck_at: None }
}

/// The answer of a generation of which it is not known that it was handled, where what would show it cannot be seen.
fn answer_unproven_blind(
    observed: &mut ObservedParent,
    state: KindState,
    critical: &LevelTally,
) -> EvaluationResult {
    observed.phase.all_ready_since = OptionalTime::NONE;
    answer_blind(state, critical)
}

fn answer_all_ready(
    observed: &mut ObservedParent,
    children: &ChildCounts,
    policy: &EnginePolicy,
    gate: ListGate,
    now: Time,
    stand: &CriticalTally,
) -> EvaluationResult {
    let critical = &stand.all;
    let is_judged = stand.is_ready_as_judged(children, &observed.view, policy);
    // What awaits the word of its rule may not have been ready yet.
    let since = match observed.phase.all_ready_since.get() {
        None if is_judged => observed.phase.all_ready_since.get_or_insert(now),
        since => since.unwrap_or(now),
    };
    if let ListGate::Blind(state) = gate {
        return answer_blind(state, critical);
    }
    let stands = observed.stands_ready();
    let hold = TimeLimits::new(policy, &observed.view).hold;
    let settled = children.appeared_at + policy.debounce.quiet + policy.settle + hold;
    // Each kind has a watch of its own: objects that the operator created before it reported completion may arrive
    // after the report.
    let (at, proven) = (settled.max(since + hold), observed.phase.handled_at + policy.debounce.quiet);
    let is_due = at.max(proven) <= now;
    let (reason, again) = if stands || (is_due && is_judged) {
        if critical.unjudged_count() == 0 {
            observed.phase.steady.record_whole(now);
        }
        (ParentReason::AllChildrenReady, None)
    } else if is_due {
        // What is awaited comes, or is overdue, by itself.
        let said = observed.stage.answer().map(|answer| answer.reason);
        let is_first = said.is_none_or(|said| said == ParentReason::ChildrenPending);
        (if is_first { ParentReason::ChildrenPending } else { ParentReason::ChildrenSettling }, None)
    } else if at <= now && observed.stage.answer().is_none_or(|a| a.reason == ParentReason::ChildrenPending) {
        (ParentReason::ChildrenPending, Some(proven))
    } else {
        (ParentReason::ChildrenSettling, Some(at.max(proven)))
    };
    EvaluationResult { answer: build_answer(reason, critical), recheck_at: again }
}
