//! Invariants of histories in which policies change.

use readiness::rollup::{ConditionStatus, ParentReason};
use readiness::saturating_millis;
use watcher::status::written_types;

use super::checked_generation::{BLIND_LIMIT, MAX_ANSWER_LAG_MS};
use super::judged_moment::JudgedMoment;
use super::own_entries::{condition_of, entry_of};
use super::shared_parents::is_shared;
use crate::scenario::PolicyDef;
use crate::world::{ModelMark, ModelObject, StoredPolicy};

/// Longest time after the re-creation of a policy for which an earlier release may still be on its way, in milliseconds.
const RELEASE_LAG_MS: i64 = 180_000;

/// Returns `true` if the parent carries an entry of this policy.
fn has_entry(policy: &PolicyDef, parent: &ModelObject) -> bool {
    let types = [Some(policy.condition), Some(policy.other_condition), policy.fallback];
    types.into_iter().flatten().any(|of| parent.ours.contains_key(of))
}

/// Returns `true` if the policy is in shadow mode, or was so lately: its entries leave then.
fn is_unwritten(at: &JudgedMoment<'_>, number: usize) -> bool {
    at.policies.iter().any(|policy| policy.number == number && policy.shadow)
        || at.world.policy_server.has_been_in_shadow(number, at.now - RELEASE_LAG_MS)
}

/// Returns `true` if the policy, as it is or as it is in force, has a type by now that is another manager's on this parent.
fn is_edited_to_foreign(at: &JudgedMoment<'_>, policy: &StoredPolicy, parent: &ModelObject) -> bool {
    let in_force = at.policies.iter().filter(|of| of.number == policy.number);
    policy.spec.iter().chain(in_force).any(|spec| condition_of(spec, parent).is_none())
}

/// Checks that no entry leaves a parent whose policy exists and writes.
pub(crate) fn check_release(at: &JudgedMoment<'_>, name: &str, old: &ModelObject, new: &ModelObject) {
    let server = &at.world.policy_server;
    let kept = server.selected().filter(|policy| policy.stub.parent == new.kind).find(|policy| {
        let absent = server.absent_at.get(&policy.number).copied();
        has_entry(&policy.stub, old)
            && !has_entry(&policy.stub, new)
            && absent.is_none_or(|since| since + RELEASE_LAG_MS < at.now)
            && !is_unwritten(at, policy.number)
            && !is_shared(at, &policy.stub, new)
            && !is_edited_to_foreign(at, policy, new)
    });
    if let Some(number) = kept.map(|policy| policy.number) {
        let what = format!("{name}: policy-{number} exists");
        at.fail_invariant("entries leave for a confirmed deletion only", what);
    }
}

/// Checks that an answer about this generation does not go back to the first word. What its operator has said since a write
/// was decided, the loop did not know (`was_shown_handled`).
pub(crate) fn check_turn(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    name: &str,
    (old, new): (&ModelObject, &ModelObject),
    was_shown_handled: bool,
) {
    let (Some(before), Some(is)) = (entry_of(policy, old), entry_of(policy, new)) else { return };
    let (was, is) = (before.reason, is.reason);
    // What a policy of the same name had said that is gone is another one's answer. Times are whole seconds.
    let stored = at.world.policy_server.stored.get(&policy.number);
    let is_of_another = stored.is_some_and(|stored| stored.object.created > before.since + 999);
    // One Unknown after another turns nothing: a predecessor's may land when this process has judged already.
    let decided = was.condition_status() != ConditionStatus::Unknown && was != ParentReason::DeadlineExceeded;
    if at.policy_watch.is_changing
        && before.observed == new.generation
        && !is_of_another
        && decided
        && is == ParentReason::ChildrenPending
        && new.mark != ModelMark::NotYet
        && was_shown_handled
    {
        at.fail_invariant("an answer turns once", format_args!("{name}: {was:?} became {is:?}"));
    }
}

/// Checks that no True rests on a changed rule for longer than its kind may take to be listed.
pub(crate) fn check_swaps(at: &JudgedMoment<'_>) {
    let late = |since: &i64| since + saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS < at.now;
    let mut found = None;
    for ((kind, name), _) in at.plan_watch.swapped_at.iter().filter(|(_, since)| late(since)) {
        let policies = at.policies.iter().filter(|policy| {
            let rests =
                policy.groups.iter().any(|group| group.kind == *kind && group.critical && group.min > 0);
            policy.name() == *name && rests
        });
        for policy in policies {
            for parent in at.shown.all_observed().iter().filter(|parent| parent.kind == policy.parent) {
                let id = at.core.reflector.find_object(&parent.uid);
                let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
                if answer.is_some_and(|answer| answer.reason == ParentReason::AllChildrenReady) {
                    found = Some(format!("{}/{} under {name}", parent.namespace, parent.name));
                }
            }
        }
    }
    if let Some(found) = found {
        at.fail_invariant("a changed rule is swapped in or withdrawn", found);
    }
}

/// Returns `true` if a policy that was never accepted speaks for this kind, or for one that may be below it.
pub(crate) fn rests_on_refused(at: &JudgedMoment<'_>, kind: usize) -> bool {
    at.policies.iter().any(|policy| policy.groups.is_empty() && policy.parent <= kind)
}

/// Returns the condition types that these policies write on parents of this kind.
fn types_of<'a>(policies: impl Iterator<Item = &'a PolicyDef>, kind: usize) -> Vec<&'static str> {
    let of_kind = policies.filter(|policy| policy.parent == kind);
    of_kind.flat_map(|policy| written_types(policy.condition, policy.fallback)).collect()
}

/// Returns the condition types that policies write on parents of this kind before or after an edit.
fn every_type(at: &JudgedMoment<'_>, kind: usize) -> Vec<&'static str> {
    let mut all = types_of(at.scenario.first_policies.iter(), kind);
    let of_kind = at.scenario.first_policies.iter().filter(|policy| policy.parent == kind);
    all.extend(of_kind.map(|policy| policy.other_condition));
    all
}

/// Returns the condition types of policies that do not exist: a restart may have left some behind.
pub(crate) fn types_left_behind(at: &JudgedMoment<'_>, kind: usize) -> Vec<&'static str> {
    let in_force = types_of(at.policies.iter(), kind);
    let others = at.policies.iter().filter(|policy| policy.parent == kind);
    let others: Vec<_> = others.flat_map(|policy| written_types(policy.other_condition, None)).collect();
    let all = every_type(at, kind).into_iter();
    all.filter(|of| !in_force.contains(of) && !others.contains(of)).collect()
}

/// Returns the condition types under which no policy judges any more: they are left behind, or what stands under them was said
/// before their policy was refused.
pub(crate) fn types_not_judged(at: &JudgedMoment<'_>, kind: usize) -> Vec<&'static str> {
    let judged = types_of(at.policies.iter().filter(|policy| !policy.groups.is_empty()), kind);
    every_type(at, kind).into_iter().filter(|of| !judged.contains(of)).collect()
}

/// Everything is quiet: what is in force is what the server has, or had when it was accepted last.
pub(crate) fn check_policies_in_force(at: &JudgedMoment<'_>) {
    let undated = |policy: &PolicyDef| PolicyDef {
        id: aggregator::PolicyId(0),
        acceptance: aggregator::Acceptance::Accepted,
        ..policy.clone()
    };
    let mut wrong = Vec::new();
    for stored in at.world.policy_server.selected() {
        let in_force = at.policies.iter().find(|policy| policy.number == stored.number).map(undated);
        let specs = at.world.policy_server.specs_by_uid.get(&stored.uid);
        let mut allowed =
            stored.spec.iter().chain(specs.into_iter().flatten().filter(|_| stored.spec.is_none()));
        let resolved = |spec: &PolicyDef| undated(&at.policy_watch.resolve_now(spec));
        let is_stub = stored.spec.is_none() && in_force.as_ref() == Some(&resolved(&stored.stub));
        if !is_stub && !allowed.any(|spec| in_force.as_ref() == Some(&resolved(spec))) {
            wrong.push(format!("policy-{}: {in_force:?}", stored.number));
        }
    }
    for policy in at.policies {
        if at.world.policy_server.selected().all(|stored| stored.number != policy.number) {
            wrong.push(format!("{} is deleted and in force", policy.name()));
        }
    }
    if let Some(first) = wrong.first() {
        at.fail_invariant("the policy that exists is in force", first);
    }
}

/// Checks the entries of policies that are not in force: those of deleted policies are gone, unless the process has never
/// known them, and a policy that was never accepted says nothing True.
pub(crate) fn check_entries_without_policy(at: &JudgedMoment<'_>, parent: &ModelObject) {
    let mut wrong = Vec::new();
    // What a policy that is refused may have said before stays, whichever process wrote it.
    let left = types_left_behind(at, parent.kind);
    for first in at.scenario.first_policies.iter().filter(|policy| policy.parent == parent.kind) {
        let in_force = at.policies.iter().find(|policy| policy.number == first.number);
        let absent = at.world.policy_server.absent_at.get(&first.number).copied();
        let was_told =
            absent.zip(at.plan_watch.planned_since).is_some_and(|(since, planned)| since > planned);
        // A parent that has said its end is left alone.
        let types =
            [Some(first.condition), Some(first.other_condition), first.fallback].into_iter().flatten();
        // Of one that has other labels now it is known what it said by the spec that was accepted last.
        let moved = at.world.policy_server.stored.get(&first.number).filter(|_| in_force.is_none());
        let said = moved.map(|policy| policy.said_types(parent.kind));
        let is_known = |of: &&str| left.contains(of) && said.as_ref().is_none_or(|said| said.contains(of));
        let is_left = types.filter(is_known).any(|of| parent.ours.contains_key(of));
        if in_force.is_none() && was_told && parent.deleted.is_none() && is_left {
            let (name, has) = (at.describe_object(parent), parent.ours.keys());
            wrong.push(format!("{name} keeps an entry of policy-{}: {has:?}", first.number));
        }
        let refused = in_force.is_some_and(|policy| policy.groups.is_empty());
        let types = [Some(first.condition), Some(first.other_condition), first.fallback];
        let says_true = types.into_iter().flatten().filter_map(|of| parent.ours.get(of));
        if refused && says_true.into_iter().any(|said| said.status == "True") {
            wrong.push(format!("{} says True by policy-{}, never accepted", parent.name, first.number));
        }
    }
    if let Some(first) = wrong.first() {
        at.fail_invariant("eventually exact", first);
    }
}
