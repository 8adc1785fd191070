//! State of all policies, kinds and parents as numbers: for the status of policies, metrics and `/readyz`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::{KindId, KindState, ObjectId, PolicyId};
use readiness::Time;
use readiness::rollup::{ConditionStatus, LevelTally, ParentReason};
use watcher::plan::ChildRule;
use watcher::reflector::{RuleSuspension, RulingPolicy};

use policy::{AwaitedInput, WatchPlan};
use rollcall_core::{Core, FindingCounts, ParentPolicy, TopCause, WatchHealth};

/// Maximum number of overwritten conditions, and of owned ones, that are reported individually.
const MAX_REPORTED_CONFLICTS: usize = 1_024;
/// Maximum number of parents named per sort of conflict.
const MAX_NAMED_PARENTS: usize = 100;

/// Maximum number of parents named that a policy leaves to an older one.
const MAX_NAMED_LEFT_PARENTS: usize = 20;

/// Numbers of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyNumbers {
    /// Number of parents.
    pub(crate) parents: u64,
    /// Number of ready parents.
    pub(crate) ready: u64,
    /// Parents by the reason of their answer.
    pub(crate) reasons: BTreeMap<ParentReason, u64>,
    /// Verdicts of children by kind; contains every kind of the policy.
    pub(crate) children: BTreeMap<String, LevelTally>,
    /// Number of parents by what was found of them.
    pub(crate) findings: FindingCounts,
    /// Rules that are not evaluated for a while, by index in `spec.children`.
    pub(crate) suspended_rules: BTreeMap<u8, RuleSuspension>,
    /// Parents that the policy selects and leaves to an older one.
    pub(crate) left: LeftParents,
    /// All kinds of the policy were listed.
    pub(crate) synced: bool,
}

/// Parents that a policy selects and leaves to an older one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftParents {
    /// Number of them.
    pub(crate) count: u64,
    /// The first of them in the order of their names, with the name of the policy that rules each.
    pub(crate) named: BTreeMap<String, String>,
}

/// Numbers of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KindNumbers {
    /// `Deployment.apps`.
    pub(crate) label: String,
    /// State of its list and watch.
    pub(crate) state: KindState,
    /// What has to be read before it is listed.
    pub(crate) awaits: Option<AwaitedInput>,
    /// Current error, if any.
    pub(crate) trouble: Option<String>,
}

/// Parent that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotReadyParent {
    /// The parent.
    pub(crate) parent: ObjectId,
    /// Name of the policy.
    pub(crate) policy: String,
    /// Id of the policy in its current generation.
    pub(crate) id: PolicyId,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The reason of its answer.
    pub(crate) reason: ParentReason,
    /// Time since which it has not been ready.
    pub(crate) since: Time,
    /// Time of its deletion request, if it is being deleted.
    pub(crate) terminating_since: Option<Time>,
}

/// Details of a parent that is not ready.
#[derive(Clone, Debug)]
pub(crate) struct NotReadyDetail {
    /// Worst of the causes that hold it back.
    pub(crate) cause: TopCause,
    /// Verdicts of its children, optional ones included.
    pub(crate) children: LevelTally,
}

impl NotReadyDetail {
    /// Collects the details of this parent.
    pub(crate) fn of_parent(core: &Core, parent: &NotReadyParent, now: Time) -> NotReadyDetail {
        NotReadyDetail {
            cause: core.top_cause(parent.parent, parent.id, parent.reason, now),
            children: core.children_tally(parent.parent, parent.id),
        }
    }
}

/// Name of a parent under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentName {
    /// Its policy.
    pub(crate) policy: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

/// All numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatsSnapshot {
    /// By policy name.
    pub(crate) policies: BTreeMap<String, PolicyNumbers>,
    /// By kind.
    pub(crate) kinds: BTreeMap<KindId, KindNumbers>,
    /// Parents that are not ready, worst first: as many as are to be named.
    pub(crate) unready: Vec<NotReadyParent>,
    /// Number of parents that are not ready.
    pub(crate) unready_count: u64,
    /// Parents whose condition is repeatedly overwritten.
    pub(crate) overwritten: BTreeSet<ObjectId>,
    /// Names of some of these.
    pub(crate) yielding: Vec<ParentName>,
    /// Names of some parents of which a finalizer, or one of a child's, is repeatedly removed and added again.
    pub(crate) flapping: Vec<ParentName>,
    /// Parents whose condition is owned by another writer, with the policy and the owner.
    pub(crate) owned: BTreeSet<(ObjectId, PolicyId, String)>,
    /// The loop has received a plan.
    pub(crate) planned: bool,
    /// Every kind of the plan that exists was listed.
    pub(crate) synced: bool,
    /// Number of objects in the reflector.
    pub(crate) rows: u64,
    /// Approximate memory of these objects, in bytes.
    pub(crate) bytes: u64,
    /// Number of evaluations of user rules so far, and their total duration.
    pub(crate) user_rule_usage: (u64, Duration),
    /// Objects that wait for a custom rule, one for each rule that they wait for.
    pub(crate) rules_waiting: usize,
    /// Number of parents in the resync.
    pub(crate) resynced: usize,
    /// Number of parents whose debounce is running.
    pub(crate) debounced: usize,
}

impl StatsSnapshot {
    /// Takes a snapshot in which at most `named` parents that are not ready are named. It costs what has changed since the last
    /// one, and the number of policies and kinds.
    pub(crate) fn take_snapshot(
        core: &mut Core,
        plan: Option<&WatchPlan>,
        health: &WatchHealth,
        named: usize,
        now: Time,
    ) -> StatsSnapshot {
        core.refresh_numbers(now);
        let mut snapshot = StatsSnapshot { planned: plan.is_some(), ..StatsSnapshot::default() };
        let Some(plan) = plan else { return snapshot };
        for (id, kind) in &plan.kinds {
            let (state, trouble) = health.kind_status(*id);
            let trouble = trouble.map(|(cause, detail)| format!("{}: {detail}", cause.metric_label()));
            let (label, awaits) = (core.kind_label(*id), kind.awaits);
            snapshot.kinds.insert(*id, KindNumbers { label, state, awaits, trouble });
        }
        snapshot.synced = snapshot.kinds.values().all(|k| k.state != KindState::Listing);
        for (id, (_, words)) in &plan.policies {
            snapshot.policies.insert(words.name.clone(), PolicyNumbers::of_policy(core, plan, *id));
        }
        count_suspended_rules(&mut snapshot, core, plan);
        snapshot.name_parents(core, plan, named);
        (snapshot.rows, snapshot.bytes) = (core.reflector.len() as u64, core.reflector.held_bytes() as u64);
        snapshot.user_rule_usage = core.reflector.rule_work().usage();
        (snapshot.resynced, snapshot.debounced) =
            (core.engine.unready_parent_count(), core.engine.debounced_count());
        snapshot
    }

    /// Names parents that are not ready, and parents in conflicts.
    fn name_parents(&mut self, core: &Core, plan: &WatchPlan, named: usize) {
        let is_planned = |policy: &PolicyId| plan.policies.contains_key(policy);
        let unready = core.numbers.unready().filter(|((_, policy), ..)| is_planned(policy));
        self.unready = unready
            .filter_map(|((parent, policy), reason, since)| {
                NotReadyParent::find(core, plan, (parent, policy), reason, since)
            })
            .take(named)
            .collect();
        self.unready_count = self.policies.values().map(|numbers| numbers.parents - numbers.ready).sum();
        let yielding = || core.numbers.yielding().filter(|(_, policy)| is_planned(policy));
        self.overwritten = yielding().map(|(parent, _)| parent).take(MAX_REPORTED_CONFLICTS).collect();
        let name = |(parent, policy)| parent_name(core, plan, parent, policy);
        self.yielding = yielding().take(MAX_NAMED_PARENTS).filter_map(name).collect();
        let owned = core.numbers.kept_by_owner().filter(|((_, policy), _)| is_planned(policy));
        self.owned = owned
            .map(|((parent, policy), owner)| (parent, policy, owner.to_owned()))
            .take(MAX_REPORTED_CONFLICTS)
            .collect();
        self.flapping = core.flapping_parents(MAX_NAMED_PARENTS).into_iter().filter_map(name).collect();
    }
}

impl PolicyNumbers {
    fn of_policy(core: &Core, plan: &WatchPlan, id: PolicyId) -> PolicyNumbers {
        let mut numbers = PolicyNumbers { synced: core.engine.is_open(id), ..PolicyNumbers::default() };
        let sums = core.engine.reader().policy_sums(id);
        if let Some(sums) = sums {
            let is_true = |reason: &ParentReason| reason.condition_status() == ConditionStatus::True;
            numbers.parents = sums.parents;
            numbers.ready = sums.reasons.iter().filter(|(reason, _)| is_true(reason)).map(|(_, n)| n).sum();
            numbers.reasons.clone_from(&sums.reasons);
        }
        let groups = plan.policies.get(&id).map_or(&[][..], |(policy, _)| &policy.groups);
        for (at, group) in (0..=u8::MAX).zip(groups) {
            let sum = numbers.children.entry(core.kind_label(group.kind)).or_default();
            let tally = sums.and_then(|sums| sums.groups.get(&at));
            *sum = tally.map_or(*sum, |tally| sum.sum_with(tally));
        }
        numbers.findings = core.numbers.counts_of(id).cloned().unwrap_or_default();
        numbers.left = LeftParents::of_policy(core, plan, id);
        numbers
    }
}

impl LeftParents {
    fn of_policy(core: &Core, plan: &WatchPlan, id: PolicyId) -> LeftParents {
        let name_of = |policy: &RulingPolicy| match policy {
            RulingPolicy::Own(policy) => plan.policies.get(policy).map(|(_, summary)| summary.name.clone()),
            RulingPolicy::Other(words) => Some(words.to_string()),
        };
        let (count, named) = core.numbers.left_by(id);
        LeftParents::new(count, named.filter_map(|(name, by)| Some((name.to_owned(), name_of(by)?))))
    }

    /// So many of them; `named` are in the order of their names, each with the name of the policy that rules it.
    pub(crate) fn new(count: usize, named: impl Iterator<Item = (String, String)>) -> LeftParents {
        LeftParents { count: count as u64, named: named.take(MAX_NAMED_LEFT_PARENTS).collect() }
    }
}

impl NotReadyParent {
    fn find(
        core: &Core,
        plan: &WatchPlan,
        (parent, id): ParentPolicy,
        reason: ParentReason,
        since: Time,
    ) -> Option<NotReadyParent> {
        let (_, words) = plan.policies.get(&id)?;
        core.reflector.read_row(parent, |row| NotReadyParent {
            parent,
            policy: words.name.clone(),
            id,
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
            reason,
            since,
            terminating_since: row.parent.as_ref().and_then(|of| Some(of.deletion()?.since)),
        })
    }
}

/// Objects that wait for rules, and rules that are not evaluated for a while, by the policies that have them.
fn count_suspended_rules(snapshot: &mut StatsSnapshot, core: &Core, plan: &WatchPlan) {
    snapshot.rules_waiting = core.reflector.rule_work().waiting().0;
    for (kind, planned) in &plan.kinds {
        let interest = &planned.interest;
        for (rule, suspension) in core.reflector.rule_work().suspended_rules(*kind) {
            let judges = |child: &&ChildRule| {
                let judged_by = interest.assessment_rules.get(usize::from(child.rule_index));
                // By its text: the version of the kind that the reflector follows is not the plan's.
                judged_by
                    .and_then(|judged_by| judged_by.rule.as_ref())
                    .is_some_and(|held| (&held.source, held.shared_by) == (&rule.source, rule.shared_by))
            };
            for child in interest.child.iter().filter(judges) {
                if let Some((_, words)) = plan.policies.get(&child.policy) {
                    let numbers = snapshot.policies.entry(words.name.clone()).or_default();
                    numbers.suspended_rules.insert(child.group, suspension);
                }
            }
        }
    }
}

fn parent_name(core: &Core, plan: &WatchPlan, parent: ObjectId, policy: PolicyId) -> Option<ParentName> {
    let (_, words) = plan.policies.get(&policy)?;
    core.reflector.read_row(parent, |row| ParentName {
        policy: words.name.clone(),
        namespace: row.namespace.to_string(),
        name: row.name.to_string(),
    })
}
