//! Groups with a changed rule: their verdicts are unknown until the new rule has evaluated them.

use std::collections::BTreeMap;

use crate::ids::PolicyId;

/// Groups whose rule changed, by policy, as a bit mask; almost always empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedRuleGroups {
    groups: BTreeMap<PolicyId, u64>,
}

impl ChangedRuleGroups {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the groups of this policy.
    pub(crate) fn groups_of(&self, policy: PolicyId) -> u64 {
        self.groups.get(&policy).copied().unwrap_or_default()
    }

    pub(crate) fn has_group(&self, policy: PolicyId, group: u8) -> bool {
        !self.is_empty() && self.groups_of(policy) & group_bit(group) != 0
    }

    pub(crate) fn set_groups(&mut self, policy: PolicyId, groups: u64) {
        match groups {
            0 => _ = self.groups.remove(&policy),
            groups => _ = self.groups.insert(policy, groups),
        }
    }

    /// Returns the policies with a changed rule.
    pub(crate) fn changed_policies(&self) -> Vec<PolicyId> {
        self.groups.keys().copied().collect()
    }
}

/// Bit of a group in the mask. A policy has at most 64 groups.
pub(crate) fn group_bit(group: u8) -> u64 {
    1_u64.checked_shl(u32::from(group)).unwrap_or_default()
}
