//! What is followed for the policies in force.

use std::collections::{BTreeMap, BTreeSet};

use watcher::plan::{Interest, UserRule};

use crate::scenario::PolicyDef;
use crate::wires::ResolvedItems;

/// Policies in force, with the interest in each kind that is followed for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyPlan {
    pub(crate) policies: Vec<PolicyDef>,
    pub(crate) interests: BTreeMap<usize, Interest>,
    /// Labels, scripts and groups by which policies were resolved, if they are.
    pub(crate) resolved: Option<ResolvedItems>,
    /// Time at which it was decided.
    pub(crate) decided_at: i64,
}

/// Condition types that policies write, by parent kind.
pub(crate) type WrittenTypes = BTreeMap<usize, BTreeSet<String>>;

impl PolicyPlan {
    /// Returns the names of the policies that judge children of this kind by another rule than in `before`.
    pub(crate) fn changed_rules(&self, before: &PolicyPlan, kind: usize) -> Vec<String> {
        let Some((old, new)) = before.interests.get(&kind).zip(self.interests.get(&kind)) else {
            return Vec::new();
        };
        let changed = before.policies.iter().filter(|policy| {
            let successors = self.policies.iter().filter(|p| p.number == policy.number);
            let now: Vec<_> = successors.flat_map(|p| rules_of(new, p)).collect();
            let was = rules_of(old, policy);
            let differs = |at: usize, rule: &Option<UserRule>| {
                if now.len() == was.len() { now[at] != *rule } else { !now.contains(rule) }
            };
            !now.is_empty() && was.iter().enumerate().any(|(at, rule)| differs(at, rule))
        });
        changed.map(PolicyDef::name).collect()
    }

    /// Returns the condition types that are written, by parent kind.
    pub(crate) fn written_types(&self) -> WrittenTypes {
        let mut written = WrittenTypes::new();
        for policy in &self.policies {
            let types = watcher::status::written_types(policy.condition, policy.fallback);
            written.entry(policy.parent).or_default().extend(types.map(str::to_owned));
        }
        written
    }
}

fn rules_of(interest: &Interest, policy: &PolicyDef) -> Vec<Option<UserRule>> {
    let rules = interest.child.iter().filter(|rule| rule.policy == policy.id);
    rules.map(|rule| interest.assessment_rules[usize::from(rule.rule_index)].rule.clone()).collect()
}
