//! What rested on a rule that is another one now: unknown, until it was judged anew.

use std::collections::BTreeMap;

use super::Graph;
use crate::types::{ObjectId, PolicyId};

/// Groups whose rule changed, by policy, as bits; almost always none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withdrawn {
    groups: BTreeMap<PolicyId, u64>,
}

impl Withdrawn {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Of this policy.
    pub(crate) fn of(&self, policy: PolicyId) -> u64 {
        self.groups.get(&policy).copied().unwrap_or_default()
    }

    pub(crate) fn has(&self, policy: PolicyId, group: u8) -> bool {
        !self.is_empty() && self.of(policy) & bit(group) != 0
    }

    pub(crate) fn set(&mut self, policy: PolicyId, groups: u64) {
        match groups {
            0 => _ = self.groups.remove(&policy),
            groups => _ = self.groups.insert(policy, groups),
        }
    }

    /// Policies of which anything is withdrawn.
    pub(crate) fn policies(&self) -> Vec<PolicyId> {
        self.groups.keys().copied().collect()
    }
}

/// A policy has at most 64 groups.
pub(crate) fn bit(group: u8) -> u64 {
    1_u64.checked_shl(u32::from(group)).unwrap_or_default()
}

impl Graph {
    /// Every child in these groups of this policy. Walks all objects: rules change rarely.
    pub(crate) fn children_in(&self, policy: PolicyId, groups: u64) -> Vec<ObjectId> {
        let within = |id| self.roll(id).is_some_and(|r| r.policy == policy);
        let mut children: Vec<_> = self
            .edges()
            .filter(|(_, edge)| bit(edge.group) & groups != 0 && within(edge.roll))
            .map(|(child, _)| child)
            .collect();
        children.sort_unstable();
        children.dedup();
        children
    }
}
