//! State of all policies, kinds and parents as numbers: for the status of policies, metrics and `/readyz`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::{EvaluationState, KindId, KindState, ObjectId, PolicyId};
use readiness::Time;
use readiness::rollup::{ConditionStatus, LevelTally, ParentReason};
use rustc_hash::FxHashMap;
use watcher::plan::ChildRule;
use watcher::reflector::RuleSuspension;
use watcher::status::ParentStatus;

use policy::WatchPlan;
use rollcall_core::{Core, TopCause, WatchHealth};

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
    /// Number of parents whose condition is owned by another writer, by its field managers.
    pub(crate) owned: BTreeMap<String, u64>,
    /// Number of parents whose condition is repeatedly overwritten, by the other writers of conditions there.
    pub(crate) yielding: BTreeMap<String, u64>,
    /// Number of parents on which the API server prunes the condition.
    pub(crate) pruned: u64,
    /// Number of parents whose CRD lacks the default status: readers that use kstatus may see them ready too early.
    pub(crate) undefaulted: u64,
    /// Number of parents that carry Kopf's mark, of which nothing shows whether their operator succeeded.
    pub(crate) hidden_outcomes: u64,
    /// Number of parents in shadow mode whose own condition differs from the policy's answer.
    pub(crate) disagreeing: u64,
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

impl LeftParents {
    pub(crate) fn add(&mut self, parent: String, ruling: &str) {
        self.count += 1;
        self.named.insert(parent, ruling.to_owned());
        if self.named.len() > MAX_NAMED_LEFT_PARENTS {
            self.named.pop_last();
        }
    }
}

/// Numbers of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KindNumbers {
    /// `Deployment.apps`.
    pub(crate) label: String,
    /// State of its list and watch.
    pub(crate) state: KindState,
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
    /// Parents that are not ready.
    pub(crate) unready: Vec<NotReadyParent>,
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

/// Time since which each parent has not been ready, regardless of its conditions in between: `lastTransitionTime` also
/// changes between False and Unknown. After a restart, and in shadow mode, as far back as is known.
#[derive(Debug, Default)]
pub(crate) struct NotReadySince(FxHashMap<(ObjectId, PolicyId), Time>);

impl StatsSnapshot {
    /// Number of parents under all policies.
    pub(crate) fn parents(&self) -> u64 {
        self.policies.values().map(|numbers| numbers.parents).sum()
    }

    /// Takes a snapshot.
    pub(crate) fn take_snapshot(
        core: &Core,
        plan: Option<&WatchPlan>,
        health: &WatchHealth,
        since: &mut NotReadySince,
        now: Time,
    ) -> StatsSnapshot {
        let mut snapshot = StatsSnapshot { planned: plan.is_some(), ..StatsSnapshot::default() };
        let Some(plan) = plan else { return snapshot };
        for id in plan.kinds.keys() {
            let (state, trouble) = health.kind_status(*id);
            let trouble = trouble.map(|(cause, detail)| format!("{}: {detail}", cause.metric_label()));
            snapshot.kinds.insert(*id, KindNumbers { label: core.kind_label(*id), state, trouble });
        }
        snapshot.synced = snapshot.kinds.values().all(|k| k.state != KindState::Listing);
        let mut groups: BTreeMap<PolicyId, Vec<LevelTally>> = BTreeMap::new();
        for (id, (policy, words)) in &plan.policies {
            let synced = core.engine.is_open(*id);
            snapshot
                .policies
                .insert(words.name.clone(), PolicyNumbers { synced, ..PolicyNumbers::default() });
            groups.insert(*id, vec![LevelTally::default(); policy.groups.len()]);
        }
        let before = std::mem::take(&mut since.0);
        for state in core.engine.evaluation_states() {
            let Some((_, words)) = plan.policies.get(&state.policy) else { continue };
            for (group, tally) in state.groups {
                if let Some(sum) = groups.get_mut(&state.policy).and_then(|g| g.get_mut(usize::from(*group)))
                {
                    *sum = sum.sum_with(tally);
                }
            }
            let numbers = snapshot.policies.entry(words.name.clone()).or_default();
            if state.yielding && snapshot.overwritten.len() < MAX_REPORTED_CONFLICTS {
                snapshot.overwritten.insert(state.parent);
            }
            if state.yielding && snapshot.yielding.len() < MAX_NAMED_PARENTS {
                snapshot.yielding.extend(parent_name(core, plan, state.parent, state.policy));
            }
            let known = before.get(&(state.parent, state.policy)).copied();
            if let Some(owner) = condition_owner(core, &state)
                && snapshot.owned.len() < MAX_REPORTED_CONFLICTS
            {
                snapshot.owned.insert((state.parent, state.policy, owner));
            }
            if let Some(unready) = count_parent(numbers, core, &state, &words.name, known.unwrap_or(now)) {
                since.0.insert((state.parent, state.policy), unready.since);
                snapshot.unready.push(unready);
            }
        }
        count_children(&mut snapshot, core, plan, groups);
        count_suspended_rules(&mut snapshot, core, plan);
        count_left_parents(&mut snapshot, core, plan);
        let flapping = core.flapping_parents(MAX_NAMED_PARENTS);
        snapshot
            .flapping
            .extend(flapping.into_iter().filter_map(|(id, policy)| parent_name(core, plan, id, policy)));
        (snapshot.rows, snapshot.bytes) = (core.reflector.len() as u64, core.reflector.held_bytes() as u64);
        snapshot.user_rule_usage = core.reflector.rule_work().usage();
        (snapshot.resynced, snapshot.debounced) =
            (core.engine.unready_parent_count(), core.engine.debounced_count());
        snapshot
    }
}

/// Children of each policy by kind, from the tallies of its groups.
fn count_children(
    snapshot: &mut StatsSnapshot,
    core: &Core,
    plan: &WatchPlan,
    groups: BTreeMap<PolicyId, Vec<LevelTally>>,
) {
    for (id, tallies) in groups {
        let Some((policy, words)) = plan.policies.get(&id) else { continue };
        let numbers = snapshot.policies.entry(words.name.clone()).or_default();
        for (group, tally) in policy.groups.iter().zip(tallies) {
            let sum = numbers.children.entry(core.kind_label(group.kind)).or_default();
            *sum = sum.sum_with(&tally);
        }
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
                    .is_some_and(|held| held.source == rule.source)
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

/// Parents that policies leave to older ones. Looks at rows only where two policies write the same condition on a kind.
fn count_left_parents(snapshot: &mut StatsSnapshot, core: &Core, plan: &WatchPlan) {
    let may_meet = plan.kinds.values().any(|kind| {
        let mut types = BTreeSet::new();
        kind.interest.parent.iter().any(|rule| !types.insert(&rule.condition))
    });
    if !may_meet {
        return;
    }
    let name_of = |policy: PolicyId| plan.policies.get(&policy).map(|(_, summary)| summary.name.clone());
    core.reflector.for_each_row(|_, row| {
        for left in row.parent.iter().flat_map(|parent| parent.outranked()) {
            let Some((name, ruling)) = name_of(left.policy).zip(name_of(left.by)) else { continue };
            let parent = match &*row.namespace {
                "" => row.name.to_string(),
                namespace => format!("{namespace}/{}", row.name),
            };
            snapshot.policies.entry(name).or_default().left.add(parent, &ruling);
        }
    });
}

fn parent_name(core: &Core, plan: &WatchPlan, parent: ObjectId, policy: PolicyId) -> Option<ParentName> {
    let (_, words) = plan.policies.get(&policy)?;
    core.reflector.read_row(parent, |row| ParentName {
        policy: words.name.clone(),
        namespace: row.namespace.to_string(),
        name: row.name.to_string(),
    })
}

/// Other writers of conditions; empty if none is known.
pub(crate) fn rival_managers(status: &ParentStatus) -> String {
    let names: BTreeSet<&str> = status.foreign.iter().flat_map(|(_, owners, _)| owners.split(", ")).collect();
    names.into_iter().filter(|name| !name.is_empty()).take(3).collect::<Vec<_>>().join(", ")
}

/// Owner of the condition, if another writer owns it and something would be written.
fn condition_owner(core: &Core, state: &EvaluationState<'_>) -> Option<String> {
    if core.engine.is_shadow(state.policy) {
        return None;
    }
    let owner = core.reflector.read_row(state.parent, |row| {
        let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == state.policy)?;
        target.condition.is_none().then(|| target.owner().unwrap_or("").to_owned())
    });
    owner.flatten()
}

/// Counts one parent. Returns it if it is not ready, since `known` at the latest.
fn count_parent(
    numbers: &mut PolicyNumbers,
    core: &Core,
    state: &EvaluationState<'_>,
    policy: &str,
    known: Time,
) -> Option<NotReadyParent> {
    numbers.parents += 1;
    numbers.pruned += u64::from(state.pruned);
    *numbers.reasons.entry(state.answer.reason).or_default() += 1;
    let ready = state.answer.reason.condition_status() == ConditionStatus::True;
    numbers.ready += u64::from(ready);
    let judged = core.engine.is_shadow(state.policy) && core.engine.has_evaluated(state.parent, state.policy);
    let (owner, undefaulted, unready, rivals, disagrees, hides_outcome) = core
        .reflector
        .read_row(state.parent, |row| {
            let parent = row.parent.as_ref()?;
            let target = parent.targets.iter().find(|t| t.policy == state.policy)?;
            let owner = target.condition.is_none().then(|| target.owner().unwrap_or("").to_owned());
            let view = parent.view.answers.iter().find(|a| a.policy == state.policy)?;
            let told = view.written.filter(|told| told.reason.condition_status() != ConditionStatus::True);
            let unready = (!ready).then(|| NotReadyParent {
                parent: state.parent,
                policy: policy.to_owned(),
                id: state.policy,
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                reason: state.answer.reason,
                // The id may have been reused for another parent, which did not exist before its creation.
                since: told.map_or(known, |told| told.since.min(known)).max(row.created_at()),
                terminating_since: parent.deletion().map(|deletion| deletion.since),
            });
            let ours = target.condition.as_deref() == Some("Ready") && !parent.view.deleting;
            let undefaulted = ours && parent.status.observed_generation.is_none();
            let rivals = state.yielding.then(|| rival_managers(&parent.status));
            let disagrees = judged && target.owner_says_true().is_some_and(|theirs| theirs != ready);
            Some((owner, undefaulted, unready, rivals, disagrees, parent.hides_outcome()))
        })
        .flatten()?;
    numbers.undefaulted += u64::from(undefaulted);
    numbers.hidden_outcomes += u64::from(hides_outcome);
    if let Some(rivals) = rivals {
        *numbers.yielding.entry(rivals).or_default() += 1;
    }
    if let Some(owner) = owner {
        *numbers.owned.entry(owner).or_default() += 1;
    }
    numbers.disagreeing += u64::from(disagrees);
    unready
}
