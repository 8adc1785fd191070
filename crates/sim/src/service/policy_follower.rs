//! The service's knowledge of policies in one life of the process, and its decision which specs are in force.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{Acceptance, PolicyId};
use readiness::saturating_millis;
use rollcall_core::StagedList;

use super::other_policies::OtherPolicies;
use super::policy_plan::PolicyPlan;
use super::type_inventory::TypeInventory;
use crate::scenario::{ChildRuleDef, PolicyDef, Sabotage, Scenario};
use crate::timeline::ClaimWrite;
use crate::wires::ResolvedItems;
use crate::world::{PolicyChange, SelectedBy, StoredPolicy};

/// Time after which the Trues of a policy that is refused, and was never accepted, are taken back. 2 min.
pub(crate) const REFUSED_FOR_LONG: std::time::Duration = std::time::Duration::from_mins(2);

/// A policy in use: its UID and the spec by which it is known.
struct PolicyInForce {
    id: PolicyId,
    uid: u64,
    spec: PolicyDef,
}

/// What one life of the process knows of policies.
#[derive(Default)]
pub(crate) struct PolicyFollower {
    /// Policies by number.
    items: StagedList<usize, StoredPolicy>,
    /// Policies that are said to be gone, until the server confirms it.
    departing: BTreeMap<usize, StoredPolicy>,
    /// Number, UID, and generation and spec that were last accepted.
    accepted: BTreeMap<usize, (u64, (i64, PolicyDef))>,
    in_force: BTreeMap<usize, PolicyInForce>,
    last_id: u32,
    /// What policies ever wrote: it outlives the process.
    inventory: TypeInventory,
    refused_since: BTreeMap<usize, i64>,
    /// Policies of another release, in histories in which there are two.
    others: Option<OtherPolicies>,
    pub(crate) plan: PolicyPlan,
}

/// True if two specs differ at most in the rules for children.
fn same_but_for_rules(old: &PolicyDef, new: &PolicyDef) -> bool {
    let without = |spec: &PolicyDef| {
        let mut spec = PolicyDef { id: PolicyId(0), acceptance: Acceptance::Accepted, ..spec.clone() };
        spec.groups.iter_mut().for_each(|group| group.rule = ChildRuleDef::Native);
        spec
    };
    without(old) == without(new)
}

/// Returns `true` if a policy has another spec than it had, or is another one.
fn is_renewed(old: &StoredPolicy, new: &StoredPolicy) -> bool {
    (old.uid, old.generation) != (new.uid, new.generation)
}

/// Returns what stands for a policy that was never accepted: nothing is judged by it.
fn refused_stub(policy: &StoredPolicy, since: i64, now: i64) -> PolicyDef {
    let is_long = since + saturating_millis(REFUSED_FOR_LONG) <= now;
    let acceptance = if is_long { Acceptance::RefusedForLong } else { Acceptance::Refused };
    PolicyDef { acceptance, ..policy.stub.clone() }
}

impl PolicyInForce {
    /// Returns `true` if the engine may go on with what it knows of the policy.
    fn is_same(&self, uid: u64, spec: &PolicyDef) -> bool {
        self.uid == uid
            && self.spec.groups.is_empty() == spec.groups.is_empty()
            && same_but_for_rules(&self.spec, spec)
    }
}

impl PolicyFollower {
    /// Returns a follower that knows nothing yet but what policies wrote.
    pub(crate) fn new(others: Option<OtherPolicies>, inventory: TypeInventory) -> PolicyFollower {
        PolicyFollower { inventory, others, ..PolicyFollower::default() }
    }

    /// Returns what the next process is to know of this one.
    pub(crate) fn take_inventory(&mut self) -> TypeInventory {
        std::mem::take(&mut self.inventory)
    }

    pub(crate) fn begin_list(&mut self) {
        self.others.iter_mut().for_each(OtherPolicies::begin_list);
        self.items.begin_list();
    }

    pub(crate) fn stage_policy(&mut self, policy: StoredPolicy) {
        if !self.others.as_mut().is_some_and(|others| others.stage(&policy)) {
            self.items.stage_item(policy.number, policy);
        }
    }

    /// Swaps a complete list in; returns the policies that are to be asked for.
    pub(crate) fn finish_list(&mut self) -> Vec<StoredPolicy> {
        let mut gone: Vec<_> = self.items.finish_list().into_values().collect();
        let listed = self.items.items();
        if let Some(others) = &mut self.others {
            others.finish_list(listed.into_iter().flatten().map(|(_, policy)| policy));
            // The list itself says of these that they are not for this release any more.
            gone.retain(|policy| !others.contains(policy));
        }
        self.departing.retain(|number, _| listed.is_none_or(|listed| !listed.contains_key(number)));
        self.departing.extend(gone.iter().map(|policy| (policy.number, policy.clone())));
        gone
    }

    /// Takes what of other releases' policies is listed so far for all of them: a sabotage. Returns `true` if a plan rests on it.
    pub(crate) fn finish_half_others(&mut self) -> bool {
        self.others.iter_mut().for_each(OtherPolicies::finish_half_list);
        self.others.is_some() && self.items.items().is_some()
    }

    /// Takes in a half list as if it were complete: a sabotage.
    pub(crate) fn finish_half_list(&mut self) {
        self.items.finish_list();
        let half = self.items.items().cloned().unwrap_or_default();
        self.items.begin_list();
        for (number, policy) in half {
            self.items.stage_item(number, policy);
        }
    }

    /// Applies a change; returns whether a new plan is due, and the policy that is to be asked for.
    pub(crate) fn apply_change(&mut self, change: PolicyChange) -> (bool, Option<StoredPolicy>) {
        match change {
            PolicyChange::Applied(policy) => (self.apply_policy(policy), None),
            PolicyChange::Deleted(policy) => {
                let held = self.items.remove_item(&policy.number);
                let was_others = self.others.as_mut().is_some_and(|others| others.remove(&policy, true));
                if policy.object.selected_by != SelectedBy::Ours {
                    return (held.is_some() || was_others, None);
                }
                self.departing.insert(policy.number, policy.clone());
                (was_others, Some(policy))
            }
        }
    }

    fn apply_policy(&mut self, policy: StoredPolicy) -> bool {
        if let Some(others) = &mut self.others {
            if let Some(speaks_anew) = others.apply(&policy) {
                // The event itself says that it is not for this release any more.
                return self.items.remove_item(&policy.number).is_some() || speaks_anew;
            }
            if others.remove(&policy, false) {
                self.departing.remove(&policy.number);
                self.items.apply_item(policy.number, policy);
                return true;
            }
        }
        self.departing.remove(&policy.number);
        let before = self.items.apply_item(policy.number, policy.clone());
        before.is_none_or(|old| is_renewed(&old, &policy))
    }

    /// The server was asked for a policy that is said to be gone, and has this one; returns whether a new plan is due.
    pub(crate) fn settle_departure(&mut self, asked: &StoredPolicy, live: Option<&StoredPolicy>) -> bool {
        if self.departing.get(&asked.number).is_none_or(|departing| departing.uid != asked.uid) {
            return false;
        }
        self.departing.remove(&asked.number);
        let is_same =
            |live: &&StoredPolicy| live.uid == asked.uid && live.object.selected_by == SelectedBy::Ours;
        match live.filter(is_same) {
            Some(live) => {
                self.items.apply_item(live.number, live.clone());
                false
            }
            None => true,
        }
    }

    /// Decides which specs are in force, and what is followed for them; returns the plan that held before and the specs
    /// that were accepted just now. `None` before policies were listed.
    pub(crate) fn decide(
        &mut self,
        now: i64,
        scenario: &Scenario,
        sabotage: Option<Sabotage>,
        resolved: Option<ResolvedItems>,
    ) -> Option<(PolicyPlan, Vec<StoredPolicy>)> {
        let items = self.items.items()?;
        if let Some(others) = &mut self.others {
            others.note(&self.plan, now);
        }
        let found: Vec<_> = items.values().chain(self.departing.values()).cloned().collect();
        let (mut policies, mut newly_accepted) = (BTreeMap::new(), Vec::new());
        let mut in_force = std::mem::take(&mut self.in_force);
        let (refused_before, accepted_before) =
            (std::mem::take(&mut self.refused_since), std::mem::take(&mut self.accepted));
        for policy in found.clone() {
            let known = accepted_before.get(&policy.number).filter(|(uid, _)| *uid == policy.uid);
            let last = known.map(|(_, last)| last.clone()).or_else(|| policy.kept.clone());
            let accepted = match &policy.spec {
                Some(spec) => Some((policy.generation, spec.clone())),
                None if sabotage == Some(Sabotage::ReleasedOnRefusal) => continue,
                None => last,
            };
            if let Some(accepted) = &accepted {
                self.accepted.insert(policy.number, (policy.uid, accepted.clone()));
                if Some(accepted) != policy.kept.as_ref() {
                    newly_accepted.push(StoredPolicy { kept: Some(accepted.clone()), ..policy.clone() });
                }
            }
            let spec = accepted.map_or_else(
                || {
                    let since = refused_before.get(&policy.number).copied().unwrap_or(now);
                    self.refused_since.insert(policy.number, since);
                    refused_stub(&policy, since, now)
                },
                |(_, spec)| spec,
            );
            let spec = resolved.as_ref().map_or(spec.clone(), |items| items.resolve(&spec));
            let held = in_force.remove(&policy.number).filter(|held| held.is_same(policy.uid, &spec));
            let id = held.map_or_else(|| self.next_id(), |held| held.id);
            policies.insert(policy.number, PolicyDef { id, ..spec.clone() });
            self.in_force.insert(policy.number, PolicyInForce { id, uid: policy.uid, spec });
        }
        let policies = policies.into_values().collect();
        let plan = PolicyPlan { policies, interests: BTreeMap::new(), resolved, decided_at: now };
        Some((self.replace_plan(scenario, plan, &found), newly_accepted))
    }

    fn next_id(&mut self) -> PolicyId {
        self.last_id += 1;
        PolicyId(self.last_id)
    }

    fn replace_plan(
        &mut self,
        scenario: &Scenario,
        mut plan: PolicyPlan,
        found: &[StoredPolicy],
    ) -> PolicyPlan {
        let left = self.others.as_mut().map(OtherPolicies::take_released).unwrap_or_default();
        for policy in &plan.policies {
            let uid = self.in_force.get(&policy.number).map(|held| held.uid);
            let types = watcher::status::written_types(policy.condition, policy.fallback);
            self.inventory.add(policy.parent, types.map(str::to_owned), uid);
        }
        for (kind, types) in left {
            self.inventory.add(kind, types, None);
        }
        let refused = plan.policies.iter().filter(|policy| policy.groups.is_empty());
        let refused = refused.filter_map(|policy| Some(self.in_force.get(&policy.number)?.uid)).collect();
        let released = self.inventory.released(&plan.written_types(), &refused);
        for kind in 0..scenario.kinds.len() {
            let mut interest = scenario.kind_interest(kind, &plan.policies);
            interest.release =
                released.get(&kind).into_iter().flatten().map(|of| of.as_str().into()).collect();
            if !interest.child.is_empty() || !interest.parent.is_empty() || !interest.release.is_empty() {
                plan.interests.insert(kind, interest);
            }
        }
        if let Some(others) = &mut self.others {
            let stored = |spec: &PolicyDef| found.iter().find(|policy| policy.number == spec.number).cloned();
            let in_use = plan.policies.iter().filter_map(|spec| Some((spec.clone(), stored(spec)?)));
            others.leave_in(&mut plan.interests, &in_use.collect::<Vec<_>>(), plan.decided_at);
        }
        std::mem::replace(&mut self.plan, plan)
    }

    /// Returns `true` if a policy is refused and was never accepted.
    pub(crate) fn has_refused(&self) -> bool {
        !self.refused_since.is_empty()
    }

    /// Returns what is to be said in the status of policies of who has them, and was not sent yet.
    pub(crate) fn claim_writes(&mut self, now: i64) -> Vec<ClaimWrite> {
        let Some(others) = &mut self.others else { return Vec::new() };
        let items = self.items.items().into_iter().flatten();
        let in_use = items.filter(|(number, _)| self.in_force.contains_key(number));
        let accepted =
            in_use.map(|(number, policy)| (policy, self.accepted.get(number).map(|(_, accepted)| accepted)));
        others.claim_writes(accepted, now)
    }

    /// Returns when something is to be decided of policies of other releases.
    pub(crate) fn next_step(&self) -> Option<i64> {
        self.others.as_ref()?.next_step(self.plan.decided_at)
    }

    /// Returns `true` if this release had policies that it does not select any more.
    pub(crate) fn has_left(&self) -> bool {
        self.others.as_ref().is_some_and(OtherPolicies::has_left)
    }

    /// Looks whether what such policies wrote is gone; returns `true` if it is, and a new plan is due.
    pub(crate) fn check_release(&mut self, has_entries: impl Fn(usize, &BTreeSet<String>) -> bool) -> bool {
        let decided_at = self.plan.decided_at;
        self.others.as_mut().is_some_and(|others| others.check_release(decided_at, has_entries))
    }
}
