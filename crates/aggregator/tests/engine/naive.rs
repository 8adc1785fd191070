//! The answer computed naively from the whole cluster, without state and without debounce.

use std::collections::BTreeSet;

use aggregator::{EnginePolicy, GroupRole, HandledEvidence, KindState, PolicyId, Quorum, ReportedFailure};
use readiness::Level::{Failed, Missing, Progressing, Ready, Stuck, Suspended, Terminating, Unknown};
use readiness::Time;
use readiness::rollup::{ChildWeight, ConditionStatus, ParentReason};

use crate::conditions::ParentEntry;
use crate::harness::EngineHarness;
use crate::object::{ParentState, StoredObject};

/// Expected reason and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NaiveAnswer {
    pub(crate) reason: ParentReason,
    pub(crate) stalled: bool,
    pub(crate) total: usize,
    pub(crate) ready: usize,
}

impl NaiveAnswer {
    fn bare(reason: ParentReason) -> NaiveAnswer {
        NaiveAnswer { reason, stalled: false, total: 0, ready: 0 }
    }
}

/// Returns the parents for which `child` counts, with policy and group; each once, however many links lead there.
fn owners(harness: &EngineHarness, child: &StoredObject) -> BTreeSet<(PolicyId, u8, String)> {
    let mut owners: BTreeSet<_> = child.owners.iter().cloned().collect();
    for (policy, group, selector) in &child.labels {
        for (name, object) in &harness.objects {
            let selects = object.parent.as_ref().is_some_and(|p| p.selects.contains(&(*policy, *selector)));
            if selects {
                owners.insert((*policy, *group, name.clone()));
            }
            if object.lends.contains(&(*policy, *selector)) {
                let lent = object.owners.iter().filter(|(p, _, _)| p == policy);
                owners.extend(lent.map(|(policy, _, owner)| (*policy, *group, owner.clone())));
            }
        }
    }
    owners
}

/// Returns `true` if the parent was there when everything was listed, says nothing but Unknown, and had been ready for so long
/// that its first word may be that.
pub(crate) fn is_found_at_rest(
    harness: &EngineHarness,
    name: &str,
    policy: PolicyId,
    before: Option<&ParentEntry>,
) -> bool {
    let (parent, rules) = (&harness.objects[name], &harness.policies[&policy]);
    let evidence = parent.parent.as_ref().map(|state| state.evidence);
    let listed = harness.listed_for(policy);
    let reports_failure =
        parent.parent.as_ref().is_some_and(|state| state.reported_failure != ReportedFailure::None);
    let is_handled = match evidence {
        _ if reports_failure => false,
        Some(HandledEvidence::Handled | HandledEvidence::Unproven) => true,
        Some(HandledEvidence::Silent) => rules.settle <= rules.debounce.quiet,
        _ => false,
    };
    let is_old = |child: &StoredObject| {
        // An API server counts creations in whole seconds.
        let created = Time(child.created.0 / 1_000 * 1_000);
        created + rules.debounce.quiet + rules.settle <= listed
            && listed + rules.debounce.quiet <= harness.now
    };
    let counts = |child: &&StoredObject| {
        owners(harness, child).iter().any(|(of, _, owner)| *of == policy && owner == name)
    };
    let is_untold = before.is_none_or(|said| said.reason == ParentReason::ChildrenPending);
    is_untold
        && is_handled
        && rules.hold.is_zero()
        && parent.created <= listed
        && harness.objects.values().filter(counts).all(is_old)
        && answer(harness, name, policy).reason == ParentReason::AllChildrenReady
}

/// Returns `name` and all its ancestors.
fn above(harness: &EngineHarness, name: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::from([name.to_owned()]);
    loop {
        let objects = seen.iter().filter_map(|name| harness.objects.get(name));
        let more: BTreeSet<String> =
            objects.flat_map(|object| owners(harness, object)).map(|(_, _, owner)| owner).collect();
        let before = seen.len();
        seen.extend(more);
        if seen.len() == before {
            return seen;
        }
    }
}

/// Returns the counted children of `parent` in one group of a policy.
pub(crate) fn children(
    harness: &EngineHarness,
    parent: &str,
    policy: PolicyId,
    group: u8,
) -> Vec<(String, ChildWeight)> {
    let beyond = above(harness, parent);
    let counts = |child: &StoredObject| owners(harness, child).contains(&(policy, group, parent.to_owned()));
    let children = harness.objects.iter().filter(|(name, child)| counts(child) && !beyond.contains(*name));
    children.map(|(name, child)| (name.clone(), weight(harness, name, child))).collect()
}

/// Returns the weight of a parent by its worst answer, unless it is being deleted.
fn weight(harness: &EngineHarness, name: &str, object: &StoredObject) -> ChildWeight {
    let own = object.weights[0];
    let Some(parent) = &object.parent else { return own };
    if parent.deleting && matches!(own.level(), Stuck | Terminating) {
        return own;
    }
    let answers = parent.policies.iter().map(|policy| answer(harness, name, *policy));
    answers.map(|a| ChildWeight::of(a.reason.child_level()).with_terminal(a.stalled)).min().unwrap_or(own)
}

/// Returns the expected answer of `policy` about `parent` once nothing has happened for longer than any limit.
pub(crate) fn answer(harness: &EngineHarness, name: &str, id: PolicyId) -> NaiveAnswer {
    let parent = harness.objects[name].parent.as_ref().unwrap();
    let policy = &harness.policies[&id];
    let groups: Vec<Vec<(String, ChildWeight)>> =
        policy.indexed_groups().map(|(group, _)| children(harness, name, id, group)).collect();
    let critical = |at: &usize| policy.groups[*at].role == GroupRole::Critical;
    let all = groups.iter().enumerate().filter(|(at, _)| critical(at)).flat_map(|(_, g)| g);
    let (total, ready) = all.fold((0, 0), |(t, r), (_, w)| (t + 1, r + usize::from(w.level() == Ready)));
    let say = |reason| NaiveAnswer { reason, stalled: false, total, ready };
    if parent.deleting {
        return say(ParentReason::Terminating);
    }
    if parent.unrendered {
        return say(ParentReason::TemplateFailed);
    }
    if parent.evidence == HandledEvidence::NotYet {
        return NaiveAnswer { stalled: true, ..NaiveAnswer::bare(ParentReason::OperatorSilent) };
    }
    if parent.reported_failure != ReportedFailure::None {
        let stalled = parent.reported_failure == ReportedFailure::Final;
        return NaiveAnswer { stalled, ..NaiveAnswer::bare(ParentReason::OperatorFailed) };
    }
    let (reason, stalled) = of_children(parent, policy, id, &groups);
    let blind = policy.kinds.iter().map(|kind| harness.kinds[kind]);
    let blind = blind.filter(|s| matches!(s, KindState::Forbidden | KindState::Stale)).min();
    match blind {
        Some(state)
            if reason.condition_status() != ConditionStatus::False
                || matches!(reason, ParentReason::ChildrenMissing | ParentReason::ChildrenSuspended) =>
        {
            say(if state == KindState::Stale && !forbidden(harness, policy) {
                ParentReason::WatchStale
            } else {
                ParentReason::KindNotVisible
            })
        }
        _ => NaiveAnswer { stalled, ..say(reason) },
    }
}

/// Returns `true` if a condition that already says True may go on to: under a tolerant policy where whatever is not ready is
/// steady, with grace where nothing failed.
pub(crate) fn may_stay_ready(harness: &EngineHarness, name: &str, id: PolicyId) -> bool {
    let policy = &harness.policies[&id];
    let parent = harness.objects[name].parent.as_ref().unwrap();
    // A failure that its status reports may pass in a moment, where nothing else is wrong.
    if parent.reported_failure != ReportedFailure::None {
        let groups: Vec<_> =
            policy.indexed_groups().map(|(group, _)| children(harness, name, id, group)).collect();
        return of_children(parent, policy, id, &groups).0 == ParentReason::AllChildrenReady;
    }
    let groups = policy.indexed_groups().filter(|(_, group)| group.role == GroupRole::Critical);
    let children: Vec<_> = groups.flat_map(|(at, _)| children(harness, name, id, at)).collect();
    let steady = |(_, w): &(String, ChildWeight)| {
        w.level() == Ready || w.steadiness() != readiness::Steadiness::Unsteady
    };
    let tolerated = policy.availability == aggregator::Availability::Tolerant && children.iter().all(steady);
    let failed = children.iter().any(|(_, w)| matches!(w.level(), Failed | Stuck));
    tolerated || (!policy.grace.is_zero() && !failed)
}

fn forbidden(harness: &EngineHarness, policy: &EnginePolicy) -> bool {
    policy.kinds.iter().any(|kind| harness.kinds[kind] == KindState::Forbidden)
}

fn of_children(
    parent: &ParentState,
    policy: &EnginePolicy,
    id: PolicyId,
    groups: &[Vec<(String, ChildWeight)>],
) -> (ParentReason, bool) {
    let (mut troubles, mut missing, mut surplus, mut total) = (Vec::new(), false, false, 0);
    let mut some_ready = false;
    for (at, (group, children)) in policy.groups.iter().zip(groups).enumerate() {
        if group.role == GroupRole::Optional {
            continue;
        }
        total += children.len();
        let awake: Vec<_> = children.iter().filter(|(_, w)| w.level() != Suspended).collect();
        let ready = awake.iter().filter(|(_, w)| w.level() == Ready).count();
        let (least, quorum) = match group.quorum {
            Quorum::All => (0, None),
            Quorum::Count(n) => (n as usize, Some(n as usize)),
            Quorum::Percent(p) => (1, Some((awake.len() * p as usize).div_ceil(100))),
        };
        missing |= children.len() < least.max(group.min as usize);
        some_ready |= ready > 0;
        surplus |= group.max.is_some_and(|max| children.len() > max as usize);
        if !quorum.is_some_and(|needed| needed > 0 && ready >= needed) {
            troubles.extend(children.iter().map(|(_, w)| *w));
        }
        let expected = parent.expects.iter().filter(|(p, g, _)| *p == id && usize::from(*g) == at);
        missing |= expected.into_iter().any(|(_, _, name)| !children.iter().any(|(n, _)| n == name));
    }
    missing |= total == 0 || total < policy.min as usize;
    let any = |level| troubles.iter().any(|w| w.level() == level);
    match () {
        () if any(Failed) => (ParentReason::ChildrenFailed, troubles.iter().any(|w| w.is_terminal())),
        () if any(Stuck) => (ParentReason::ChildrenStuck, true),
        () if missing || any(Missing) => (ParentReason::ChildrenMissing, true),
        () if surplus => (ParentReason::TooManyChildren, false),
        () if any(Unknown) => (ParentReason::ChildrenUnknown, false),
        () if any(Progressing) => (ParentReason::ChildrenProgressing, false),
        () if any(Terminating) => (ParentReason::ChildrenTerminating, false),
        () if any(Suspended) && !some_ready => (ParentReason::ChildrenSuspended, false),
        () => (ParentReason::AllChildrenReady, false),
    }
}
