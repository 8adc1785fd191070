//! Detects changed readiness rules: verdicts that rest on the old ones are withdrawn.

use std::sync::Arc;

use aggregator::{KindId, PolicyId};
use api::ReadinessPolicySpec;

use super::kind_plan::KindPlan;
use super::plan::WatchPlan;

/// Names of the policies that judge children of this kind in `after` by a different rule than in `before`. A deleted policy or
/// group has no rule; neither has a kind that was not judged before.
pub fn changed_rules(before: &WatchPlan, after: &WatchPlan, kind: KindId) -> Vec<String> {
    let Some((old, new)) = before.kinds.get(&kind).zip(after.kinds.get(&kind)) else { return Vec::new() };
    if old.awaits.is_some() {
        return Vec::new();
    }
    let changed = before.policies.iter().filter_map(|(id, (_, words))| {
        let successors = after.policies.iter().filter(|(_, (_, new))| new.name == words.name);
        let now: Vec<_> = successors.flat_map(|(id, _)| rule_sources(new, *id)).collect();
        let was = rule_sources(old, *id);
        // Compared pairwise if their number is unchanged; else each old rule that occurs nowhere any more counts.
        let paired = now.len() == was.len();
        let differs =
            |at: usize, source| if paired { now.get(at) != Some(source) } else { !now.contains(source) };
        let changed = was.iter().enumerate().any(|(at, source)| differs(at, source));
        (changed && !now.is_empty()).then(|| words.name.clone())
    });
    changed.collect()
}

/// Rule source of each group of a policy; `None` for the native rules.
fn rule_sources(plan: &KindPlan, policy: PolicyId) -> Vec<Option<Arc<str>>> {
    let rules = plan.interest.child.iter().filter(|rule| rule.policy == policy);
    let source = |rule_index: u16| {
        plan.interest.assessment_rules.get(usize::from(rule_index))?.rule.as_ref().map(|r| r.source.clone())
    };
    rules.map(|rule| source(rule.rule_index)).collect()
}

/// True if two specs differ at most in the rules for children. The policy then keeps its id: its parents, and the
/// children that count for them, are the same.
pub(super) fn same_but_for_rules(old: &ReadinessPolicySpec, new: &ReadinessPolicySpec) -> bool {
    let without = |spec: &ReadinessPolicySpec| {
        let mut spec = spec.clone();
        spec.children.iter_mut().for_each(|child| child.ready = None);
        spec
    };
    without(old) == without(new)
}
