//! Where everything stands, as numbers: for policies' status, for metrics and for `/readyz`.

use std::collections::BTreeMap;

use aggregator::{KindId, KindState};
use readiness::Time;
use readiness::rollup::{ParentReason, Status};

use crate::core::{Core, Health};
use crate::policies::Plan;

/// One policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyNumbers {
    /// Parents that it applies to.
    pub(crate) parents: u64,
    /// Of those, ready.
    pub(crate) ready: u64,
    /// Parents by the reason of their answer.
    pub(crate) reasons: BTreeMap<ParentReason, u64>,
    /// Parents on which the condition belongs to somebody else, with its managers.
    pub(crate) owned: BTreeMap<String, u64>,
    /// Parents on which somebody keeps overwriting what is written.
    pub(crate) yielding: u64,
    /// Parents on which the server drops what is written.
    pub(crate) pruned: u64,
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
    /// Its policy.
    pub(crate) policy: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// The reason of its answer.
    pub(crate) reason: ParentReason,
    /// Since when, where it says so.
    pub(crate) since: Option<Time>,
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
    /// The loop has heard of a plan.
    pub(crate) planned: bool,
    /// Every kind of it that exists was listed.
    pub(crate) synced: bool,
    /// Objects that are held.
    pub(crate) rows: u64,
}

impl Snapshot {
    /// Counts.
    pub(crate) fn take(core: &Core, plan: Option<&Plan>, health: &Health) -> Snapshot {
        let mut snapshot = Snapshot { planned: plan.is_some(), ..Snapshot::default() };
        let Some(plan) = plan else { return snapshot };
        for id in plan.kinds.keys() {
            let (state, trouble) = health.of(*id);
            let trouble = trouble.map(|(cause, detail)| format!("{}: {detail}", cause.label()));
            snapshot.kinds.insert(*id, KindNumbers { label: core.kind_label(*id), state, trouble });
        }
        snapshot.synced = snapshot.kinds.values().all(|k| k.state != KindState::Listing);
        for (id, (_, words)) in &plan.policies {
            let synced = core.engine.is_open(*id);
            snapshot
                .policies
                .insert(words.name.clone(), PolicyNumbers { synced, ..PolicyNumbers::default() });
        }
        for roll in core.engine.rolls() {
            let Some((_, words)) = plan.policies.get(&roll.policy) else { continue };
            let numbers = snapshot.policies.entry(words.name.clone()).or_default();
            numbers.parents += 1;
            numbers.yielding += u64::from(roll.yielding);
            numbers.pruned += u64::from(roll.pruned);
            *numbers.reasons.entry(roll.answer.reason).or_default() += 1;
            let ready = roll.answer.reason.status() == Status::True;
            numbers.ready += u64::from(ready);
            let told = core.reflector.read(roll.parent, |row| {
                let parent = row.parent.as_ref()?;
                let target = parent.targets.iter().find(|t| t.policy == roll.policy)?;
                let owner =
                    target.condition.is_none().then(|| target.owner.as_deref().unwrap_or("").to_owned());
                let view = parent.view.answers.iter().find(|a| a.policy == roll.policy)?;
                let unready = (!ready).then(|| NotReady {
                    policy: words.name.clone(),
                    namespace: row.namespace.to_string(),
                    name: row.name.to_string(),
                    reason: roll.answer.reason,
                    since: view.told.map(|t| t.since),
                });
                Some((owner, unready))
            });
            let Some(Some((owner, unready))) = told else { continue };
            if let Some(owner) = owner {
                *numbers.owned.entry(owner).or_default() += 1;
            }
            snapshot.unready.extend(unready);
        }
        snapshot.rows = core.reflector.len() as u64;
        snapshot
    }
}
