//! Which rules are others than before: what rested on those is to be taken back.

use std::sync::Arc;

use aggregator::{KindId, PolicyId};
use api::ReadinessPolicySpec;

use super::plan::{KindPlan, Plan};

impl Plan {
    /// Policies of `before`, with those of their groups (as bits) whose children of this kind are judged by another rule
    /// now. A policy or a group that is gone has no rule; nor has a kind that was not judged yet.
    pub(crate) fn rules_changed(&self, before: &Plan, kind: KindId) -> Vec<(PolicyId, u64)> {
        let Some((old, new)) = before.kinds.get(&kind).zip(self.kinds.get(&kind)) else { return Vec::new() };
        if old.waits {
            return Vec::new();
        }
        let changed = before.policies.iter().filter_map(|(id, (_, words))| {
            let successors = self.policies.iter().filter(|(_, (_, new))| new.name == words.name);
            let now: Vec<_> = successors.flat_map(|(id, _)| new.sources(*id)).map(|(_, s)| s).collect();
            let was = old.sources(*id);
            // One by one where they are as many as before; else each that is found nowhere any more.
            let paired = now.len() == was.len();
            let differs =
                |at: usize, source| if paired { now.get(at) != Some(source) } else { !now.contains(source) };
            let groups = was.iter().enumerate().filter(|(at, (_, source))| differs(*at, source));
            let bits = groups.fold(0, |bits, (_, (group, _))| bits | 1_u64.wrapping_shl(u32::from(*group)));
            (bits != 0 && !now.is_empty()).then_some((*id, bits))
        });
        changed.collect()
    }
}

impl KindPlan {
    /// What each group of a policy is judged by; `None` for the native rules.
    fn sources(&self, policy: PolicyId) -> Vec<(u8, Option<Arc<str>>)> {
        let rules = self.interest.child.iter().filter(|rule| rule.policy == policy);
        let source =
            |lens: u8| self.interest.lenses.get(usize::from(lens))?.rule.as_ref().map(|r| r.source.clone());
        rules.map(|rule| (rule.group, source(rule.lens))).collect()
    }
}

/// Do two specs differ in rules for children at most? Then the policy stays the one that it was: its parents and what
/// counts for them are the same.
pub(super) fn same_but_for_rules(old: &ReadinessPolicySpec, new: &ReadinessPolicySpec) -> bool {
    let without = |spec: &ReadinessPolicySpec| {
        let mut spec = spec.clone();
        spec.children.iter_mut().for_each(|child| child.ready = None);
        spec
    };
    without(old) == without(new)
}
