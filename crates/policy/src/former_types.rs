//! Types of conditions that policies wrote before they were edited: what stands under them is theirs until they have said it under
//! the new ones.

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::ConditionInventory;
use super::plan::{Released, WatchPlan};
use super::policy_in_use::PolicyInUse;

/// Types of conditions that each policy wrote before it was edited, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormerTypes {
    by_policy: BTreeMap<String, BTreeSet<String>>,
}

impl FormerTypes {
    /// These policies are about to be decided anew: what they write may be what they wrote.
    pub fn note_in_use(&mut self, in_use: &[PolicyInUse]) {
        for used in in_use {
            let types = std::iter::once(&used.compiled.condition).chain(&used.compiled.fallback);
            self.by_policy.entry(used.name.clone()).or_default().extend(types.cloned());
        }
    }

    /// What is kept outside the process tells of edits before it.
    pub fn note_inventory(&mut self, inventory: &ConditionInventory) {
        for (policy, types) in inventory.former_types() {
            self.by_policy.entry(policy.to_owned()).or_default().extend(types);
        }
    }

    /// Forgets what nobody takes back any more, or what is written again.
    pub fn retain_released(&mut self, released: &Released) {
        let is_released = |of: &String| released.values().any(|types| types.contains(of));
        for types in self.by_policy.values_mut() {
            types.retain(is_released);
        }
        self.by_policy.retain(|_, types| !types.is_empty());
    }

    /// Lets every policy of a plan answer for what it said before it was edited.
    pub fn recall_in(&self, plan: &mut WatchPlan) {
        if self.by_policy.is_empty() {
            return;
        }
        for interest in plan.kinds.values_mut().map(|kind| &mut kind.interest) {
            for rule in &mut interest.parent {
                let policy = plan.policies.get(&rule.policy).map(|(_, summary)| &summary.name);
                let Some(types) = policy.and_then(|name| self.by_policy.get(name)) else { continue };
                let released = interest.release.iter().filter(|of| types.contains(&***of));
                rule.former = released.cloned().collect();
            }
        }
    }
}
