//! Checks of the loop's writes: none before everything was observed, and no False Ready (a True that is not true).

use std::collections::BTreeMap;
use std::rc::Rc;

use aggregator::KindState;
use readiness::rollup::ParentReason;
use readiness::{Level, saturating_millis};
use rollcall_core::ParentWrite;
use watcher::status::{ConditionEntry, written_types};

use super::checked_generation::{BLIND_LIMIT, MAX_ANSWER_LAG_MS};
use super::checked_parents::CheckedParents;
use super::judged_moment::JudgedMoment;
use super::own_entries::entry_of;
use crate::scenario::{PolicyDef, kind_id};
use crate::world::{BudgetReading, ModelMark, ModelObject};

/// Checks a write that leaves the loop.
pub(crate) fn check_decision(at: &JudgedMoment<'_>, checked: &mut CheckedParents, write: &ParentWrite) {
    check_shadows(at, write);
    for policy in at.policies.iter().filter(|p| write.policies.contains(&p.id)) {
        let types = [Some(policy.condition), policy.fallback];
        let mut entries = write.wanted.entries.iter();
        if let Some(entry) = entries.find(|e| types.contains(&Some(e.r#type.as_str()))) {
            let taken = at.shown.observed.get(&write.uid).cloned();
            if let Some(parent) = taken {
                checked.apply_settle(at, policy, &parent);
            }
            check_entry(at, checked, policy, write, entry);
        }
    }
}

/// Checks that nothing is written for a policy in shadow mode: what stands under its condition stays as it is, or goes.
fn check_shadows(at: &JudgedMoment<'_>, write: &ParentWrite) {
    let parent = at.shown.held.get(&write.uid);
    let of_parent = |policy: &&PolicyDef| policy.shadow && policy.parent == write.kind.index();
    for policy in at.policies.iter().filter(of_parent) {
        let types: Vec<_> = written_types(policy.condition, policy.fallback).collect();
        for entry in write.wanted.entries.iter().filter(|entry| types.contains(&&*entry.r#type)) {
            let said = |parent: &Rc<ModelObject>| {
                parent.ours.get(&entry.r#type).or_else(|| parent.theirs.get(&entry.r#type)).cloned()
            };
            let stands = parent.and_then(said).is_some_and(|said| {
                (&*said.status, said.reason.as_str(), &*said.message)
                    == (&*entry.status, &*entry.reason, &*entry.message)
            });
            if !stands || write.policies.contains(&policy.id) {
                let what = format!("{}: {}/{} {entry:?}", policy.name(), write.namespace, write.name);
                at.fail_invariant("a shadow writes nothing", what);
            }
        }
    }
}

fn check_entry(
    at: &JudgedMoment<'_>,
    checked: &CheckedParents,
    policy: &PolicyDef,
    write: &ParentWrite,
    entry: &ConditionEntry,
) {
    let what = format!(
        "{} {}/{} {}={} {}",
        at.scenario.kind_name(policy.parent),
        write.namespace,
        write.name,
        entry.r#type,
        entry.status,
        entry.reason
    );
    for kind in policy.involved_kinds() {
        let state = at.core.engine.kind_state(kind_id(kind));
        let blind = matches!(state, KindState::Forbidden | KindState::Stale);
        let seen = was_listed(at, kind);
        let deleting = entry.reason == ParentReason::Terminating.as_str();
        // What has failed by the rules that hold is said beside what is withdrawn, and so is an operator that has not
        // handled the generation, in time or not, or has failed to: no child has to be seen for that.
        let taken_back = [
            ParentReason::RuleChanged,
            ParentReason::ChildrenFailed,
            ParentReason::ChildrenStuck,
            ParentReason::ChildrenPending,
            ParentReason::OperatorSilent,
            ParentReason::OperatorFailed,
            ParentReason::DeadlineExceeded,
        ];
        let withdrawn = taken_back.iter().any(|reason| entry.reason == reason.as_str())
            && policy.involved_kinds().iter().any(|kind| at.plan_watch.is_withdrawn(policy, *kind, at.now));
        let refused = entry.reason == ParentReason::PolicyRefused.as_str();
        if !seen && !deleting && !withdrawn && !refused && (!blind || entry.is_true()) {
            let kind = at.scenario.kind_name(kind).to_owned();
            at.fail_invariant("nothing is said before everything was seen", format_args!("{what}: {kind}"));
        }
        let deaf = at.now - at.wires[kind].last_answer > saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS;
        if entry.is_true() && (deaf || at.wires[kind].unproven) {
            let kind = at.scenario.kind_name(kind).to_owned();
            at.fail_invariant("blindness is not readiness", format_args!("{what}: {kind}"));
        }
    }
    if entry.is_true() && !is_truly_ready(at, checked, policy, &write.uid, entry.observed_generation) {
        let models = at.shown.all_observed();
        let parent = models.iter().find(|t| t.uid == write.uid);
        let sum = parent.map(|parent| (parent.mark, at.naive_sum(policy, parent, &models)));
        at.fail_invariant("no false ready", format_args!("{what}, to be {sum:?}"));
    }
}

/// Returns `true` if the loop knows that everything of a kind was listed since it was followed.
fn was_listed(at: &JudgedMoment<'_>, kind: usize) -> bool {
    if at.policy_watch.is_changing {
        return at.plan_watch.open_kinds.contains(&kind_id(kind)) && !at.plan_watch.unlisted.contains(&kind);
    }
    // That a kind is served again may still be on its way to the loop.
    at.wires[kind].synced || at.plan_watch.is_absent(kind)
}

/// Returns `true` if the parent is ready in the state that the loop has observed, or in the state shown to it
/// since.
fn is_truly_ready(
    at: &JudgedMoment<'_>,
    checked: &CheckedParents,
    policy: &PolicyDef,
    uid: &str,
    generation: Option<i64>,
) -> bool {
    let true_of = |models: &[Rc<ModelObject>]| {
        models.iter().find(|t| t.uid == *uid).is_some_and(|parent| {
            let handled = checked.is_handled(policy.id, uid);
            parent.deleted.is_none()
                && Some(parent.generation) == generation
                && parent.mark != ModelMark::NotYet
                && (handled || parent.mark == ModelMark::Handled)
                && (is_well_by_some_spec(at, policy, parent, models)
                    || is_kept(at, checked, policy, parent, models))
        })
    };
    true_of(&at.shown.all_observed()) || true_of(&at.shown.all_held())
}

/// Returns `true` if the parent says True of this generation, or did before somebody took that away, and the policy may keep it for
/// a while.
fn is_kept(
    at: &JudgedMoment<'_>,
    checked: &CheckedParents,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
) -> bool {
    let said = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
    let phase = checked.find(policy, parent);
    let was_kept = || phase.is_some_and(|phase| phase.kept_since.is_some());
    let whole_at = phase.and_then(|phase| phase.whole_at).unwrap_or(at.now);
    // Of a child whose rule has not come round to it in time nothing is known, and that is not that it has failed.
    let overdue = at.find_unjudged(policy, models).into_iter().filter(|(_, overdue)| *overdue);
    let mut stands = stands_unjudged(at, policy, models);
    stands.extend(overdue.map(|(uid, _)| (uid, Level::Unknown)));
    let steadiness = at.naive_steadiness(&stands, policy, parent, (models, whole_at), BudgetReading::Widest);
    let sum = at.naive_sum_with(stands, policy, parent, models);
    said.map_or_else(was_kept, |said| said.status == "True")
        && (sum.may_pass || policy.keeps(sum.reason, steadiness))
}

/// What stands for children that await their rule keeps an answer; where it turns, is looked at elsewhere.
fn stands_unjudged(
    at: &JudgedMoment<'_>,
    spec: &PolicyDef,
    models: &[Rc<ModelObject>],
) -> BTreeMap<String, Level> {
    let unjudged = at.find_unjudged(spec, models).into_iter();
    unjudged.filter(|(_, overdue)| !overdue).map(|(uid, _)| (uid, Level::Ready)).collect()
}

/// Returns `true` if all children are ready by the spec in force, or by one that is on its way to the loop.
fn is_well_by_some_spec(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
) -> bool {
    let coming =
        at.policy_watch.coming_specs(policy.number).into_iter().filter(|_| at.policy_watch.is_changing);
    let mut specs = std::iter::once(policy).chain(coming);
    specs.any(|spec| {
        at.naive_sum_with(stands_unjudged(at, spec, models), spec, parent, models).reason.is_none()
    })
}
