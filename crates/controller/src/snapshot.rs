//! Where everything stands, as numbers: for policies' status, for metrics and for `/readyz`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::{KindId, KindState, ObjectId, PolicyId, RollState};
use readiness::Time;
use readiness::rollup::{ParentReason, Status, Tally};
use rustc_hash::FxHashMap;
use watcher::status::ParentStatus;

use crate::core::{Core, Health, Worst};
use crate::policies::Plan;

/// So many fights, and so many owners, are told of one by one.
const FIGHTS: usize = 1_024;
/// So many parents are named of each sort of fight.
const NAMED: usize = 100;

/// One policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyNumbers {
    /// Parents that it applies to.
    pub(crate) parents: u64,
    /// Of those, ready.
    pub(crate) ready: u64,
    /// Parents by the reason of their answer.
    pub(crate) reasons: BTreeMap<ParentReason, u64>,
    /// How their children stand, by kind; every kind of the policy is in it.
    pub(crate) children: BTreeMap<String, Tally>,
    /// Parents on which the condition belongs to somebody else, with its managers.
    pub(crate) owned: BTreeMap<String, u64>,
    /// Parents on which somebody keeps overwriting what is written, with who else writes conditions there.
    pub(crate) yielding: BTreeMap<String, u64>,
    /// Parents on which the server drops what is written.
    pub(crate) pruned: u64,
    /// Parents whose CRD has not the default that makes the first read true: whoever goes by kstatus may be early.
    pub(crate) undefaulted: u64,
    /// Parents that say of themselves what this policy, in shadow, does not find.
    pub(crate) disagreeing: u64,
    /// Everything that it rests on was listed.
    pub(crate) synced: bool,
}

/// One kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KindNumbers {
    /// `Deployment.apps`.
    pub(crate) label: String,
    /// Where its list and watch stand.
    pub(crate) state: KindState,
    /// What ails it.
    pub(crate) trouble: Option<String>,
}

/// A parent that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotReady {
    /// The parent.
    pub(crate) parent: ObjectId,
    /// Its policy.
    pub(crate) policy: String,
    /// The policy, in one of its generations.
    pub(crate) id: PolicyId,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The reason of its answer.
    pub(crate) reason: ParentReason,
    /// Since when.
    pub(crate) since: Time,
}

/// More of a parent that is not ready.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    /// What holds it back most.
    pub(crate) cause: Worst,
    /// How its children stand, optional ones included.
    pub(crate) children: Tally,
}

impl Story {
    /// The story of this one.
    pub(crate) fn of(core: &Core, parent: &NotReady, now: Time) -> Story {
        Story {
            cause: core.worst(parent.parent, parent.id, parent.reason, now),
            children: core.family(parent.parent, parent.id),
        }
    }
}

/// A parent, as people call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentName {
    /// Its policy.
    pub(crate) policy: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// By policy name.
    pub(crate) policies: BTreeMap<String, PolicyNumbers>,
    /// By kind.
    pub(crate) kinds: BTreeMap<KindId, KindNumbers>,
    /// Parents that are not ready.
    pub(crate) unready: Vec<NotReady>,
    /// Parents on which somebody keeps overwriting what is written.
    pub(crate) fights: BTreeSet<ObjectId>,
    /// Some of these by name.
    pub(crate) yielding: Vec<ParentName>,
    /// Some of the parents of which a finalizer, or one of a child's, is taken off and put back again and again.
    pub(crate) flapping: Vec<ParentName>,
    /// Parents on which the condition belongs to somebody else: under which policy, and to whom.
    pub(crate) owned: BTreeSet<(ObjectId, PolicyId, String)>,
    /// The loop has heard of a plan.
    pub(crate) planned: bool,
    /// Every kind of it that exists was listed.
    pub(crate) synced: bool,
    /// Objects that are held.
    pub(crate) rows: u64,
    /// So many bytes they take, about.
    pub(crate) bytes: u64,
    /// How often rules of users were asked so far, and how long that took in all.
    pub(crate) asked: (u64, Duration),
    /// Parents that the periodic pass looks after.
    pub(crate) passed: usize,
    /// Parents that wait for quiet.
    pub(crate) debounced: usize,
}

/// Since when each parent has not been ready, whatever it said meanwhile: `lastTransitionTime` moves between False and
/// Unknown too. After a restart, and where nothing is written, as far back as is known.
#[derive(Debug, Default)]
pub(crate) struct Since(FxHashMap<(ObjectId, PolicyId), Time>);

impl Snapshot {
    /// Counts.
    pub(crate) fn take(
        core: &Core,
        plan: Option<&Plan>,
        health: &Health,
        since: &mut Since,
        now: Time,
    ) -> Snapshot {
        let mut snapshot = Snapshot { planned: plan.is_some(), ..Snapshot::default() };
        let Some(plan) = plan else { return snapshot };
        for id in plan.kinds.keys() {
            let (state, trouble) = health.of(*id);
            let trouble = trouble.map(|(cause, detail)| format!("{}: {detail}", cause.label()));
            snapshot.kinds.insert(*id, KindNumbers { label: core.kind_label(*id), state, trouble });
        }
        snapshot.synced = snapshot.kinds.values().all(|k| k.state != KindState::Listing);
        let mut groups: BTreeMap<PolicyId, Vec<Tally>> = BTreeMap::new();
        for (id, (policy, words)) in &plan.policies {
            let synced = core.engine.is_open(*id);
            snapshot
                .policies
                .insert(words.name.clone(), PolicyNumbers { synced, ..PolicyNumbers::default() });
            groups.insert(*id, vec![Tally::default(); policy.groups.len()]);
        }
        let before = std::mem::take(&mut since.0);
        for roll in core.engine.rolls() {
            let Some((_, words)) = plan.policies.get(&roll.policy) else { continue };
            for (group, tally) in roll.groups {
                if let Some(sum) = groups.get_mut(&roll.policy).and_then(|g| g.get_mut(usize::from(*group))) {
                    *sum = sum.plus(tally);
                }
            }
            let numbers = snapshot.policies.entry(words.name.clone()).or_default();
            if roll.yielding && snapshot.fights.len() < FIGHTS {
                snapshot.fights.insert(roll.parent);
            }
            if roll.yielding && snapshot.yielding.len() < NAMED {
                snapshot.yielding.extend(named(core, plan, roll.parent, roll.policy));
            }
            let known = before.get(&(roll.parent, roll.policy)).copied();
            if let Some(owner) = owner(core, &roll)
                && snapshot.owned.len() < FIGHTS
            {
                snapshot.owned.insert((roll.parent, roll.policy, owner));
            }
            if let Some(unready) = count(numbers, core, &roll, &words.name, known.unwrap_or(now)) {
                since.0.insert((roll.parent, roll.policy), unready.since);
                snapshot.unready.push(unready);
            }
        }
        for (id, tallies) in groups {
            let Some((policy, words)) = plan.policies.get(&id) else { continue };
            let numbers = snapshot.policies.entry(words.name.clone()).or_default();
            for (group, tally) in policy.groups.iter().zip(tallies) {
                let sum = numbers.children.entry(core.kind_label(group.kind)).or_default();
                *sum = sum.plus(&tally);
            }
        }
        let flapping = core.flapping(NAMED);
        snapshot
            .flapping
            .extend(flapping.into_iter().filter_map(|(id, policy)| named(core, plan, id, policy)));
        snapshot.rows = core.reflector.len() as u64;
        snapshot.bytes = core.reflector.bytes() as u64;
        snapshot.asked = core.reflector.asked();
        (snapshot.passed, snapshot.debounced) = (core.engine.unready(), core.engine.debounced());
        snapshot
    }
}

fn named(core: &Core, plan: &Plan, parent: ObjectId, policy: PolicyId) -> Option<ParentName> {
    let (_, words) = plan.policies.get(&policy)?;
    core.reflector.read(parent, |row| ParentName {
        policy: words.name.clone(),
        namespace: row.namespace.to_string(),
        name: row.name.to_string(),
    })
}

/// Who else writes conditions; empty where nobody says so.
pub(crate) fn rivals(status: &ParentStatus) -> String {
    let names: BTreeSet<&str> = status.foreign.iter().flat_map(|(_, owners, _)| owners.split(", ")).collect();
    names.into_iter().filter(|name| !name.is_empty()).take(3).collect::<Vec<_>>().join(", ")
}

/// Whose condition it is where it belongs to somebody else, and something would be written.
fn owner(core: &Core, roll: &RollState<'_>) -> Option<String> {
    if core.engine.is_shadow(roll.policy) {
        return None;
    }
    let owner = core.reflector.read(roll.parent, |row| {
        let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == roll.policy)?;
        target.condition.is_none().then(|| target.owner.as_deref().unwrap_or("").to_owned())
    });
    owner.flatten()
}

/// Counts one parent; it is returned where it is not ready, as it has been since `known` at the latest.
fn count(
    numbers: &mut PolicyNumbers,
    core: &Core,
    roll: &RollState<'_>,
    policy: &str,
    known: Time,
) -> Option<NotReady> {
    numbers.parents += 1;
    numbers.pruned += u64::from(roll.pruned);
    *numbers.reasons.entry(roll.answer.reason).or_default() += 1;
    let ready = roll.answer.reason.status() == Status::True;
    numbers.ready += u64::from(ready);
    let judged = core.engine.is_shadow(roll.policy) && core.engine.has_judged(roll.parent, roll.policy);
    let (owner, undefaulted, unready, rivals, disagrees) = core
        .reflector
        .read(roll.parent, |row| {
            let parent = row.parent.as_ref()?;
            let target = parent.targets.iter().find(|t| t.policy == roll.policy)?;
            let owner = target.condition.is_none().then(|| target.owner.as_deref().unwrap_or("").to_owned());
            let view = parent.view.answers.iter().find(|a| a.policy == roll.policy)?;
            let told = view.told.filter(|told| told.reason.status() != Status::True);
            let unready = (!ready).then(|| NotReady {
                parent: roll.parent,
                policy: policy.to_owned(),
                id: roll.policy,
                namespace: row.namespace.to_string(),
                name: row.name.to_string(),
                reason: roll.answer.reason,
                // A place may have passed to another parent, which was not there before it was created.
                since: told.map_or(known, |told| told.since.min(known)).max(row.created()),
            });
            let ours = target.condition.as_deref() == Some("Ready") && !parent.view.deleting;
            let undefaulted = ours && parent.status.observed_generation.is_none();
            let rivals = roll.yielding.then(|| rivals(&parent.status));
            let disagrees = judged && target.theirs.is_some_and(|theirs| theirs != ready);
            Some((owner, undefaulted, unready, rivals, disagrees))
        })
        .flatten()?;
    numbers.undefaulted += u64::from(undefaulted);
    if let Some(rivals) = rivals {
        *numbers.yielding.entry(rivals).or_default() += 1;
    }
    if let Some(owner) = owner {
        *numbers.owned.entry(owner).or_default() += 1;
    }
    numbers.disagreeing += u64::from(disagrees);
    unready
}
