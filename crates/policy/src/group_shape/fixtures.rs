//! Groups, and what is made of them, for the tests of shapes.

use std::time::Duration;

use aggregator::{Acceptance, PolicyId};
use serde_json::{Value, json};

use super::super::kind_plan::KindPlan;
use super::super::library_rules::UnreadLibraries;
use super::super::plan::{IdRegistry, Released, WatchPlan, build_plan};
use super::super::policy_in_use::PolicyInUse;
use super::super::protected_kinds::PolicySettings;
use super::*;

pub(super) fn settings() -> PolicySettings {
    PolicySettings::with_stuck_after(Duration::from_mins(10))
}

pub(super) fn group(namespace: &str, name: &str, spec: &Value) -> FoundGroup {
    group_since(0, namespace, name, spec)
}

/// A group that was created in this second.
pub(super) fn group_since(second: u8, namespace: &str, name: &str, spec: &Value) -> FoundGroup {
    let object = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}"), "resourceVersion": "1",
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z") },
        "spec": spec,
    });
    read_group(&serde_json::from_value(object).expect("a group"))
}

pub(super) fn policies<'g>(
    groups: impl IntoIterator<Item = &'g FoundGroup>,
    settings: &PolicySettings,
) -> Vec<FoundPolicy> {
    policies_of_groups(groups.into_iter(), &LabelMatcher::default(), &ServedKinds::default(), settings)
}

/// The policy of a group's own shape.
pub(super) fn policy_for<'p>(policies: &'p [FoundPolicy], group: &FoundGroup) -> Option<&'p FoundPolicy> {
    let name = shape_name(group.shape.as_ref().expect("a shape"));
    policies.iter().find(|policy| policy.name == name)
}

pub(super) fn is_in_force(policy: &FoundPolicy) -> bool {
    policy.groups.as_ref().is_some_and(|groups| !groups.is_refused())
}

/// What is followed for these policies.
pub(super) fn watch_plan(policies: &[FoundPolicy], settings: &PolicySettings) -> WatchPlan {
    let used: Vec<_> = (1..)
        .zip(policies)
        .map(|(id, policy)| PolicyInUse {
            id: PolicyId(id),
            name: policy.name.clone(),
            compiled: policy.compile_spec(settings).expect("it compiles"),
            acceptance: Acceptance::Accepted,
        })
        .collect();
    build_plan(&used, &Released::new(), &mut IdRegistry::default(), &UnreadLibraries)
}

/// What the objects of a kind are taken in for.
pub(super) fn kind_plan(policies: &[FoundPolicy], settings: &PolicySettings, kind: &str) -> KindPlan {
    let plan = watch_plan(policies, settings);
    plan.kinds.into_values().find(|plan| plan.key.1 == kind).expect("the kind is followed")
}
