//! The invariants of the engine's answers, checked after every turn.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use aggregator::{KindState, PolicyId};
use readiness::rollup::ParentReason;
use readiness::{Level, saturating_millis};

use super::answer_agreement::{agrees_with, check_turned_true, find_awaiting};
use super::checked_generation::{CheckedGeneration, MAX_ANSWER_LAG_MS};
use super::checked_parents::CheckedParents;
use super::judged_moment::{JudgedMoment, JudgedSum};
use super::naive_judge::NaiveSum;
use super::own_entries::entry_of;
use super::policy_checks;
use super::shared_parents::is_shared;
use crate::scenario::{PolicyDef, kind_id};
use crate::world::{BudgetReading, ModelMark, ModelObject, ModelSteadiness};

/// Longest time for which a workload may have a spec that its controller has not observed.
const MAX_UNOBSERVED: Duration = Duration::from_secs(1);
/// Longest time for which a True stands although the status of the parent says that it has failed.
const FAILURE_PASSES: Duration = Duration::from_secs(10);

/// The judge of the engine's answers.
#[derive(Default)]
pub(crate) struct AnswerJudge {
    turns: u64,
}

impl AnswerJudge {
    /// Checks, after each turn, that tallies equal a recount, and that every answer agrees with the naive judge over
    /// the observed state, or did so within the debounce's cap.
    pub(crate) fn check_answers(&mut self, at: &JudgedMoment<'_>, checked: &mut CheckedParents) {
        self.turns += 1;
        let now_and_then = self.turns.is_multiple_of(4);
        if at.faults_stopped && !now_and_then && !has_turned(checked, at) {
            return;
        }
        if now_and_then {
            if let Some((parent, policy)) = at.core.engine.reader().find_miscounted() {
                at.fail_invariant("tallies equal a recount", format_args!("{parent:?} under {policy:?}"));
            }
            if !at.core.engine.reader().are_unready_children_consistent() {
                at.fail_invariant("tallies equal a recount", "a ready child is among the troubles");
            }
        }
        policy_checks::check_swaps(at);
        let models = at.shown.all_observed();
        for policy in at.policies {
            let awaits_list =
                !at.core.engine.is_open(policy.id) || at.plan_watch.unlisted.contains(&policy.parent);
            for parent in models.iter().filter(|t| t.kind == policy.parent) {
                if awaits_list {
                    checked.note_list_awaited(at, policy, parent);
                    continue;
                }
                if is_shared(at, policy, parent) {
                    checked.note_shared(at, policy, parent);
                    continue;
                }
                let awaiting = find_awaiting(at, policy, parent, &models);
                if awaiting.is_empty() {
                    check_answer(checked, at, policy, parent, &models);
                    continue;
                }
                let unknown = awaiting.into_iter().map(|child| (child.uid.clone(), Level::Unknown)).collect();
                let needs_them = at.naive_sum_with(unknown, policy, parent, &models).reason.is_some();
                check_awaiting(checked, at, policy, parent, needs_them);
            }
        }
    }
}

/// Returns `true` if any answer became True, or is True no more, since it was last checked: when that was, everything else is
/// judged by.
fn has_turned(checked: &CheckedParents, at: &JudgedMoment<'_>) -> bool {
    let well = |policy: PolicyId, uid: &str| {
        let id = at.core.reflector.find_object(uid);
        let answer = id.and_then(|id| at.core.engine.answer_of(id, policy));
        answer.is_some_and(|answer| answer.reason == ParentReason::AllChildrenReady)
    };
    checked.iter().any(|(policy, uid, phase)| well(policy, uid) != phase.was_ready)
}

/// Checks a parent with descendants that wait for a list: what those said before makes nothing ready that needs them.
fn check_awaiting(
    checked: &mut CheckedParents,
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    needs_them: bool,
) {
    let id = at.core.reflector.find_object(&parent.uid);
    let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
    let well = answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
    let Some(phase) = checked.find_mut(policy, parent) else { return };
    phase.differs_since = None;
    phase.note_kept(false, ModelSteadiness::Unsteady, at.now);
    phase.unready_at_latest = if phase.was_ready && !well { at.now } else { phase.unready_at_latest };
    phase.unready_at_earliest = if well { at.now } else { phase.unready_at_earliest };
    phase.last_ready_at = if well { Some(at.now) } else { phase.last_ready_at };
    // A predecessor may have said so last, by what it had seen.
    let says = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
    let stands = says.is_some_and(|said| said.status == "True");
    if !std::mem::replace(&mut phase.was_ready, well) && well && !stands && needs_them {
        let name = at.describe_object(parent);
        at.fail_invariant("no false ready", format_args!("{name}: not all is listed below it"));
    }
}

fn check_answer(
    checked: &mut CheckedParents,
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
) {
    let id = at.core.reflector.find_object(&parent.uid);
    let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
    let JudgedSum { sum, is_known, is_ready_as_judged } = at.judged_sum(policy, parent, models);
    let said = answer.map(|a| a.reason);
    if let Some(phase) = checked.find_mut(policy, parent)
        && std::mem::take(&mut phase.awaits_first_check)
    {
        phase.unready_at_latest = at.now;
        phase.well_since = Some(0);
    }
    let (unready, down) = checked
        .find(policy, parent)
        .map_or((at.now, at.now), |p| (p.unready_at_earliest, p.unready_at_latest));
    let due = |since: i64| policy.deadline.map(|limit| since + saturating_millis(limit));
    // Of a kind that is to be listed again, it is not known what the loop may still rest on.
    let is_by_rules_in_force = !at.plan_watch.awaits_list(policy) && !at.policy_watch.awaits_plan();
    let is_known = is_by_rules_in_force && is_known;
    if is_known && said == Some(ParentReason::DeadlineExceeded) && due(unready).is_none_or(|due| at.now < due)
    {
        let name = at.describe_object(parent);
        at.fail_invariant("answers follow what was shown", format_args!("{name}: its deadline is not over"));
    }
    let counted = answer.filter(|a| a.counted_as.is_some()).map(|a| a.counted_reason());
    let unlimited = PolicyDef { deadline: None, ..policy.clone() };
    let agrees_above = counted
        .is_none_or(|reason| policy.shadow && agrees_with(at, &unlimited, parent, Some(reason), &sum, down));
    let whole_at = checked.find(policy, parent).and_then(|phase| phase.whole_at);
    // In the calm phase not every turn is checked.
    let whole_at = whole_at.filter(|_| !at.faults_stopped).unwrap_or(at.now);
    let steadiness_by =
        |reading| at.naive_steadiness(&BTreeMap::new(), policy, parent, (models, whole_at), reading);
    let steadiness = steadiness_by(BudgetReading::Widest);
    let is_kept = may_be_kept(policy, parent, said, &sum, steadiness);
    let agrees = !is_known || is_kept || agrees_above && agrees_with(at, policy, parent, said, &sum, down);
    let now = at.now;
    checked.apply_settle(at, policy, parent);
    let is_taken_over = checked.is_taken_over(policy, parent);
    let Some(phase) = checked.find_mut(policy, parent) else { return };
    if sum.reason.is_some() && is_known {
        phase.well_since = None;
    } else if sum.reason.is_none() && phase.well_since.is_none() {
        phase.well_since = Some(now);
    }
    let asks_otherwise = std::mem::replace(&mut phase.to_say, sum.reason) != sum.reason;
    let since = phase.differs_since.filter(|_| !asks_otherwise).unwrap_or(now);
    phase.differs_since = (!agrees).then_some(since);
    phase.note_kept(is_kept && is_known, steadiness, now);
    phase.whole_at = if sum.reason.is_none() { Some(now) } else { phase.whole_at };
    let well = said == Some(ParentReason::AllChildrenReady);
    let was_ready = phase.note_answer(well, now);
    let (turned, phase) = (!was_ready && well, *phase);
    if was_ready && !well && is_known && !is_taken_over {
        check_dropped(at, policy, parent, (&phase, steadiness_by(BudgetReading::Narrowest)), &sum);
    }
    check_lags(at, policy, parent, said, &sum, &phase);
    if turned && !is_ready_as_judged && is_by_rules_in_force {
        let name = at.describe_object(parent);
        at.fail_invariant("no false ready", format_args!("{name}: a child awaits its rule"));
    }
    if turned && is_known && !is_taken_over {
        check_turned_true(at, policy, (parent, &sum), &phase);
    }
}

/// Checks that no answer differs for longer than it may lag, and that none is kept for longer than its policy has it.
fn check_lags(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    said: Option<ParentReason>,
    sum: &NaiveSum,
    phase: &CheckedGeneration,
) {
    let fail = |invariant: &'static str| {
        let name = at.describe_object(parent);
        let what = format!("{:?}: {name} is {said:?}, to be {:?}", policy.id, sum.reason);
        at.fail_invariant(invariant, what);
    };
    if phase.differs_since.is_some_and(|since| since + MAX_ANSWER_LAG_MS < at.now) {
        fail("answers follow what was shown");
    }
    let ends = |since: Option<i64>, span: Duration| {
        since.is_some_and(|since| since + kept_for_ms(at, span) < at.now)
    };
    let reports_failure = sum.reason == Some(ParentReason::OperatorFailed);
    let passes = if reports_failure { FAILURE_PASSES } else { Duration::ZERO };
    if ends(phase.kept_since, policy.longest_kept().max(passes)) {
        fail("True is kept for no longer than its grace");
    }
    // With a grace it may be one after the other.
    if policy.grace.is_zero() && !reports_failure && ends(phase.kept_loosely_since, MAX_UNOBSERVED) {
        fail("True is kept for no longer than its grace");
    }
}

/// Returns `true` if the policy may keep this answer True for a while: its children are not ready, and have not failed.
fn may_be_kept(
    policy: &PolicyDef,
    parent: &ModelObject,
    said: Option<ParentReason>,
    sum: &NaiveSum,
    steadiness: ModelSteadiness,
) -> bool {
    said == Some(ParentReason::AllChildrenReady)
        && (sum.may_pass || policy.keeps(sum.reason, steadiness))
        && parent.deleted.is_none()
        && parent.mark != ModelMark::NotYet
}

/// Checks that an answer that is not True any more did not have to stay so: this process has seen all of its children ready, they
/// are available, and what stands says the same.
fn check_dropped(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    (phase, steadiness): (&CheckedGeneration, ModelSteadiness),
    sum: &NaiveSum,
) {
    // What somebody has turned to True is not what this process has said.
    let stands = entry_of(policy, parent).is_some_and(|said| {
        said.observed == parent.generation
            && said.status == "True"
            && said.reason == ParentReason::AllChildrenReady
    });
    // Nobody knows of what cannot be seen whether it is still available.
    let sees_all = policy
        .involved_kinds()
        .into_iter()
        .all(|kind| at.core.engine.kind_state(kind_id(kind)) == KindState::Synced);
    // Also one that was taken for gone, and came back.
    let is_within = |whole_at: i64| {
        phase.child_appeared_at < whole_at
            && phase.shared_at < whole_at
            && at.now + MAX_ANSWER_LAG_MS < whole_at + saturating_millis(policy.limits.pending)
    };
    // A rule that has not come round to a child says nothing of what its controller says.
    let is_known = sum.reason != Some(ParentReason::ChildrenUnknown);
    let has_to_stay = steadiness == ModelSteadiness::Available
        && is_known
        && policy.keeps(sum.reason, steadiness)
        && stands
        && sees_all
        && !at.faults_stopped
        && phase.whole_at.is_some_and(is_within)
        && parent.deleted.is_none()
        && parent.mark != ModelMark::NotYet;
    if has_to_stay {
        let name = at.describe_object(parent);
        at.fail_invariant("steady under churn", format_args!("{name}, to be {:?}", sum.reason));
    }
}

/// Longest time for which an answer may be seen to be kept, in milliseconds. In the calm phase not every turn is checked: it may have
/// been whole in between.
fn kept_for_ms(at: &JudgedMoment<'_>, span: Duration) -> i64 {
    let spans = if at.faults_stopped { 2 } else { 1 };
    spans * saturating_millis(span) + MAX_ANSWER_LAG_MS
}
