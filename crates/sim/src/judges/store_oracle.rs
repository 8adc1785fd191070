//! The naive oracle: after faults have stopped and everything is quiet, the conditions of every parent equal the result
//! of a judge that reads nothing but the store.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use readiness::rollup::ParentReason;

use super::commit_judge::CommitJudge;
use super::judged_moment::JudgedMoment;
use super::naive_judge::{NaiveJudge, NaiveSum, NaiveWeight};
use super::own_entries::{condition_of, given_up_for};
use super::policy_checks;
use super::quote_checks::check_quotes;
use super::shared_parents::{gives_way, is_shared, was_shared};
use crate::scenario::PolicyDef;
use crate::world::{ModelMark, ModelObject};

/// Number of overwrites of our conditions on a parent by other managers before a policy gives up its type.
const OVERWRITES_BEFORE_FALLBACK: u32 = 3;

/// Expected answer of a parent under one policy.
struct ExpectedAnswer {
    reason: ParentReason,
    stalled: bool,
    sum: NaiveSum,
}

struct StoreOracle<'a> {
    judge: NaiveJudge<'a>,
    policies: &'a [PolicyDef],
}

impl StoreOracle<'_> {
    /// Returns the answer once all limits in time have passed that are recorded.
    fn expected_answer(&self, policy: &PolicyDef, parent: &ModelObject, is_limited: bool) -> ExpectedAnswer {
        let sum = self.judge.sum_children(policy, parent, &|model| self.expected_weight(model));
        // Where another manager has the condition, nothing records since when, and no limit applies.
        let recorded = is_limited && condition_of(policy, parent).is_some();
        let (reason, stalled) = match (parent.deleted, parent.mark) {
            (Some(_), _) => (ParentReason::Terminating, false),
            // All limits have passed by now.
            (None, ModelMark::NotYet) if recorded => (ParentReason::OperatorSilent, true),
            (None, ModelMark::NotYet) => (ParentReason::ChildrenPending, false),
            _ => match sum.reason {
                Some(ParentReason::OperatorFailed) => {
                    let is_late = policy.deadline.is_some() && recorded;
                    (ParentReason::OperatorFailed, sum.stalled || is_late)
                }
                Some(reason)
                    if policy.deadline.is_some() && recorded && reason != ParentReason::ChildrenSuspended =>
                {
                    (ParentReason::DeadlineExceeded, true)
                }
                Some(ParentReason::ChildrenMissing) => (ParentReason::ChildrenMissing, recorded),
                Some(reason) => (reason, sum.stalled),
                None => (ParentReason::AllChildrenReady, false),
            },
        };
        ExpectedAnswer { reason, stalled, sum }
    }

    fn expected_weight(&self, model: &ModelObject) -> Option<NaiveWeight> {
        let policies = self.policies.iter().filter(|p| p.parent == model.kind);
        let weigh = |policy: &PolicyDef| {
            // Nothing records since when an answer in shadow mode has stood: limits of it say nothing above.
            let expected = self.expected_answer(policy, model, !policy.shadow);
            (expected.reason.child_level(), expected.stalled)
        };
        policies.map(weigh).min()
    }
}

/// Checks the quiet end state: the conditions of every parent match the oracle, and the reflector holds exactly the
/// objects of the store. Returns the number of parents.
pub(crate) fn check_end(at: &JudgedMoment<'_>, commits: &CommitJudge, has_restarted: bool) -> u64 {
    let models = at.world.read_all_objects();
    let judge = NaiveJudge {
        scenario: at.scenario,
        models: &models,
        now: at.now,
        unjudged: BTreeMap::new(),
        counted: None,
    };
    let oracle = StoreOracle { judge, policies: at.policies };
    let mut parents = 0;
    for parent in &models {
        let mut expected = BTreeMap::new();
        let of_parent = |p: &&PolicyDef| p.parent == parent.kind && !gives_way(at, p, parent);
        for policy in at.policies.iter().filter(of_parent) {
            let overwritten = at.world.overwrites_of(&parent.uid) + commits.written_beside(&parent.uid);
            let is_expected =
                overwritten >= OVERWRITES_BEFORE_FALLBACK || commits.has_yielded_before(&parent.uid);
            // What another release said looked like an overwrite, or had the type for a while.
            let is_expected = is_expected || was_shared(at, parent.kind);
            if given_up_for(policy, parent).is_some() && !is_expected {
                let name = format!("{}/{}", parent.namespace, parent.name);
                let what = format!("{name} gave up its condition, overwritten {overwritten} times");
                at.fail_invariant("eventually exact", what);
            }
            if !policy_checks::rests_on_refused(at, parent.kind) {
                check_answers_in_memory(at, &oracle, policy, parent, has_restarted);
            }
            if let Some(condition) = condition_of(policy, parent).filter(|_| !policy.shadow) {
                expected.insert(condition, oracle.expected_answer(policy, parent, true));
            }
        }
        policy_checks::check_entries_without_policy(at, parent);
        if at.policies.iter().any(|p| p.parent == parent.kind)
            && !policy_checks::rests_on_refused(at, parent.kind)
        {
            parents += 1;
            check_parent(at, parent, &expected);
        }
    }
    if at.policy_watch.is_changing {
        policy_checks::check_policies_in_force(at);
    }
    check_quotes(at, &models);
    check_rows(at, &models);
    parents
}

/// Checks that the engine comes to the same answer, whether it is written or not. Nothing records since when an answer in shadow
/// mode has stood: its limits begin again with each process, and nobody above counts them.
fn check_answers_in_memory(
    at: &JudgedMoment<'_>,
    oracle: &StoreOracle<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    has_restarted: bool,
) {
    let id = at.core.reflector.find_object(&parent.uid);
    let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
    let check = |said: Option<ParentReason>, is_limited: bool| {
        let expected = oracle.expected_answer(policy, parent, is_limited).reason;
        if said != Some(expected) {
            let name = at.describe_object(parent);
            let what = format!("{name} is {said:?} under {}, to be {expected:?}", policy.name());
            at.fail_invariant("eventually exact", what);
        }
    };
    check(answer.map(|answer| answer.counted_reason()), !policy.shadow);
    if !policy.shadow || !has_restarted {
        check(answer.map(|answer| answer.reason), true);
    }
}

fn check_parent(
    at: &JudgedMoment<'_>,
    parent: &ModelObject,
    expected: &BTreeMap<&'static str, ExpectedAnswer>,
) {
    let name = format!("{} {}/{}", at.scenario.kind_name(parent.kind), parent.namespace, parent.name);
    // What stood there is left to another release, which leaves alone what has said its end.
    let is_left = |policy: &PolicyDef| policy.parent == parent.kind && is_shared(at, policy, parent);
    if parent.deleted.is_some() && at.policies.iter().any(is_left) {
        return;
    }
    let mut types: Vec<&str> = expected.keys().copied().collect();
    for (condition, ExpectedAnswer { reason, stalled, sum }) in expected {
        let Some(said) = parent.ours.get(*condition) else {
            let says: Vec<&String> = parent.ours.keys().collect();
            let what = format!("{name} does not say {condition}: {reason:?}, but {says:?}");
            at.fail_invariant("eventually exact", what);
            continue;
        };
        // A parent that is being deleted was updated once and is then left alone.
        let about = parent.deleted.is_some() || said.observed == parent.generation;
        if !about || said.reason != *reason || said.status != reason.condition_status().as_str() {
            at.fail_invariant(
                "eventually exact",
                format_args!("{name} at {} says {said:?}, to be {reason:?}", parent.generation),
            );
        }
        let tells = sum.worst.is_empty() || sum.worst.iter().any(|w| said.message.contains(w.as_str()));
        let names = matches!(
            reason,
            ParentReason::ChildrenFailed | ParentReason::ChildrenStuck | ParentReason::ChildrenProgressing
        );
        if names && !tells {
            let message = &said.message;
            at.fail_invariant(
                "eventually exact",
                format_args!("{name} does not name {:?}: {message}", sum.worst),
            );
        }
        // A ready child must not be named as a cause.
        if said.status == "False" && said.message.contains("(AllChildrenReady)") {
            at.fail_invariant(
                "eventually exact",
                format_args!("{name} blames what is ready: {}", said.message),
            );
        }
        if *condition == "Ready" {
            let neutral = matches!(
                reason,
                ParentReason::AllChildrenReady | ParentReason::ChildrenSuspended | ParentReason::Terminating
            );
            types.extend(stalled.then_some("Stalled"));
            types.extend((!stalled && !neutral).then_some("Reconciling"));
        }
    }
    types.sort_unstable();
    let left = policy_checks::types_left_behind(at, parent.kind);
    let says: Vec<&str> = parent.ours.keys().map(String::as_str).filter(|of| !left.contains(of)).collect();
    if says != types {
        at.fail_invariant("eventually exact", format_args!("{name} has {says:?}, to have {types:?}"));
    }
    if !parent.doubled.is_empty() {
        at.fail_invariant("eventually exact", format_args!("{name} says twice: {:?}", parent.doubled));
    }
}

/// Checks that the reflector holds no object that is gone and no stale one.
fn check_rows(at: &JudgedMoment<'_>, models: &[Rc<ModelObject>]) {
    let mut there = BTreeSet::new();
    for model in models {
        there.insert((model.kind, model.namespace.clone(), model.name.clone(), model.version));
    }
    let mut strange = Vec::new();
    at.core.reflector.for_each_row(|_, row| {
        let key = (row.kind.index(), row.namespace.to_string(), row.name.to_string(), row.version);
        if !there.contains(&key) {
            strange.push(format!("{key:?}"));
        }
    });
    if let Some(first) = strange.first() {
        at.fail_invariant(
            "eventually exact",
            format_args!("the reflector holds {first}, which is not there"),
        );
    }
}
