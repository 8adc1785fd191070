//! Does the loop's answer about a parent agree with the naive judge's?

use std::rc::Rc;

use aggregator::KindState;
use readiness::rollup::ParentReason;
use readiness::saturating_millis;

use super::checked_generation::{CheckedGeneration, MAX_ANSWER_LAG_MS};
use super::judged_moment::JudgedMoment;
use super::naive_judge::{NaiveSum, is_child};
use super::own_entries::condition_of;
use super::shared_parents::was_shared;
use crate::scenario::{PolicyDef, kind_id};
use crate::world::{ModelMark, ModelObject};

/// Returns `true` if this reason comes from the children.
fn is_from_children(reason: ParentReason) -> bool {
    use ParentReason as R;
    matches!(
        reason,
        R::AllChildrenReady
            | R::ChildrenSettling
            | R::ChildrenProgressing
            | R::ChildrenTerminating
            | R::ChildrenFailed
            | R::ChildrenStuck
            | R::ChildrenMissing
            | R::TooManyChildren
            | R::ChildrenUnknown
            | R::ChildrenSuspended
    )
}

/// Returns `true` if a descendant is a parent whose policy still waits for a list, or for what no record holds: until then
/// the earlier answer stays.
pub(crate) fn awaits_child_list(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
) -> bool {
    !find_awaiting(at, policy, parent, models).is_empty()
}

/// Returns the children that wait so, or whose descendants do.
pub(super) fn find_awaiting<'m>(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &'m [Rc<ModelObject>],
) -> Vec<&'m Rc<ModelObject>> {
    let below = at.policies.iter().filter(|p| p.id != policy.id);
    let below: Vec<&PolicyDef> = below.filter(|p| policy.groups.iter().any(|g| g.kind == p.parent)).collect();
    let counts =
        |t: &&Rc<ModelObject>| policy.groups.iter().any(|g| is_child(at.scenario, policy, g, parent, t));
    let awaits = |child: &&Rc<ModelObject>| {
        let mut over = below.iter().filter(|p| p.parent == child.kind && at.counts_under(p, child));
        over.any(|p| {
            !at.core.engine.is_open(p.id)
                || awaits_unblinded_list(at, p)
                || settles_unwritten(at, p, child)
                || awaits_child_list(at, p, child, models)
        })
    };
    if below.is_empty() {
        return Vec::new();
    }
    models.iter().filter(counts).filter(awaits).collect()
}

/// Returns `true` if a kind that the policy rests on is to be listed, and the loop does not know that it is blind: what rests
/// on a blind one is at most Unknown, and nobody waits for it.
fn awaits_unblinded_list(at: &JudgedMoment<'_>, policy: &PolicyDef) -> bool {
    let is_blind = |kind: usize| {
        matches!(at.core.engine.kind_state(kind_id(kind)), KindState::Forbidden | KindState::Stale)
    };
    policy.involved_kinds().into_iter().any(|kind| at.plan_watch.unlisted.contains(&kind) && !is_blind(kind))
}

/// Returns `true` if a child that is a parent waits for time alone to pass since everything was listed, and nothing is written
/// for it that says what it was before: until it is evaluated, no parent turns because of it.
fn settles_unwritten(at: &JudgedMoment<'_>, policy: &PolicyDef, child: &ModelObject) -> bool {
    use ParentReason::{ChildrenPending, ChildrenSettling};
    let Some(id) = at.core.reflector.find_object(&child.uid) else { return false };
    let said = at.core.engine.answer_of(id, policy.id).map(|answer| answer.reason);
    (policy.shadow || condition_of(policy, child).is_none())
        && child.mark != ModelMark::NotYet
        && at.core.engine.reader().is_unsettled(id, policy.id)
        && matches!(said, Some(ChildrenPending | ChildrenSettling))
}

/// Returns `true` if the naive judge comes to this answer too, which has not been True since `down` at the latest.
pub(crate) fn agrees_with(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    said: Option<ParentReason>,
    sum: &NaiveSum,
    down: i64,
) -> bool {
    let due = |since: i64| policy.deadline.map(|limit| since + saturating_millis(limit));
    let suspended = sum.reason == Some(ParentReason::ChildrenSuspended);
    let recorded = condition_of(policy, parent).is_some();
    match said {
        None => false,
        Some(ParentReason::DeadlineExceeded) => {
            // Until the operator is known to be done, it is not known that its children are all that it wants.
            let settles = parent.mark == ModelMark::Silent && at.plan_watch.is_settling(policy, at.now);
            parent.deleted.is_none()
                && (settles || !suspended)
                && (sum.reason.is_some() || parent.mark != ModelMark::Handled)
        }
        Some(ParentReason::Terminating) => parent.deleted.is_some(),
        Some(reason) if is_from_children(reason) => {
            let well = matches!(reason, ParentReason::AllChildrenReady | ParentReason::ChildrenSettling);
            let late = !well
                && !suspended
                && recorded
                && due(down).is_some_and(|due| due + MAX_ANSWER_LAG_MS < at.now);
            !late
                && parent.deleted.is_none()
                && parent.mark != ModelMark::NotYet
                && sum.reason == (!well).then_some(reason)
        }
        Some(ParentReason::OperatorFailed) => {
            parent.deleted.is_none() && parent.mark != ModelMark::NotYet && sum.reason == said
        }
        Some(_) => parent.deleted.is_none(),
    }
}

/// Checks an answer that has just become True.
pub(crate) fn check_turned_true(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    (parent, sum): (&ModelObject, &NaiveSum),
    phase: &CheckedGeneration,
) {
    // Where another client has the condition, nothing would record how long it has held.
    let is_left = policy.shadow && was_shared(at, policy.parent);
    let hold = condition_of(policy, parent).filter(|_| !is_left);
    let hold = hold.map_or(0, |_| saturating_millis(policy.hold));
    let settle = saturating_millis(policy.settle);
    let name = at.describe_object(parent);
    if sum.reason == Some(ParentReason::OperatorFailed) {
        at.fail_invariant("no false ready", format_args!("{name}: its status says that it has failed"));
    }
    if !phase.handled {
        at.fail_invariant("no false ready", format_args!("{name}: its operator has not handled it"));
    }
    if phase.child_appeared_at + saturating_millis(policy.debounce.quiet) + settle + hold > at.now {
        at.fail_invariant("no false ready", format_args!("{name}: a child has just appeared"));
    }
    // In the calm phase not every turn is checked.
    if !at.faults_stopped && phase.well_since.is_none_or(|since| since + hold > at.now) {
        at.fail_invariant("no false ready", format_args!("{name}: not well for as long as the policy asks"));
    }
}
