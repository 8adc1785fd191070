//! Numbers of policies, kinds and rules are never given twice and never cut off.

use std::collections::BTreeSet;
use std::time::Duration;

use readiness::Time;
use serde_json::{Value, json};
use watcher::ParentObject;

use super::super::compile::{CompiledPolicy, compile};
use super::*;
use crate::offline::roll_up;

const NOW: Time = Time(1_800_000_000_000);

fn compiled(spec: Value) -> CompiledPolicy {
    let spec = serde_json::from_value(spec).expect("a spec");
    compile(&spec, Duration::from_mins(10)).expect("a policy")
}

fn object(value: Value) -> ParentObject {
    serde_json::from_value(value).expect("an object")
}

/// A policy of its own condition type over Databases and their Deployments, which are ready where `current` holds.
fn judged_by(number: usize, current: &str) -> (String, CompiledPolicy) {
    let policy = compiled(json!({
        "parent": { "group": "example.com", "kind": "Database" },
        "condition": { "type": format!("Ready{number}") },
        "children": [{ "kind": { "group": "apps", "kind": "Deployment" }, "ready": { "cel": { "current": current } } }],
    }));
    (format!("policy-{number:03}"), policy)
}

#[test]
fn with_three_hundred_policies_over_one_kind_each_judges_by_its_own_rule() {
    let policies: Vec<_> =
        (0..300).map(|number| judged_by(number, &format!("metadata.name == 'web{number}'"))).collect();
    let database = object(json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": { "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" },
    }));
    let web = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web0", "namespace": "shop", "uid": "web", "resourceVersion": "2", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" }] },
    }));
    let nodes = roll_up(&policies, &[&database, &web], &BTreeSet::new(), NOW);
    assert_eq!(nodes.len(), 300);
    let ready: Vec<_> = nodes.iter().filter(|n| n.verdict == "Ready").map(|n| n.policy.as_str()).collect();
    assert_eq!(ready, ["policy-000"], "its rule alone holds for web0");
}

#[test]
fn a_policy_number_is_never_given_twice_while_it_is_held() {
    let mut registry = IdRegistry::default();
    let held: BTreeSet<PolicyId> = (0..200).map(|_| registry.new_policy_id()).collect();
    assert_eq!(held.len(), 200);
    for number in 0..(2 * POLICY_NUMBERS) {
        let new = registry.new_policy_id();
        assert!(!held.contains(&new), "{new:?}");
        if number % 100 == 0 {
            registry.retain_policies(held.iter().copied());
        }
    }
}

#[test]
fn a_kind_for_which_there_is_no_number_left_is_named() {
    let mut registry = IdRegistry { next_kind: u32::MAX - 1, ..IdRegistry::default() };
    assert_eq!(registry.kind("example.com", "Last"), Some(KindId(u32::MAX - 1)));
    assert_eq!(registry.kind("example.com", "Other"), None);
    assert_eq!(registry.kind("example.com", "Last"), Some(KindId(u32::MAX - 1)), "what has one keeps it");
    let policy = judged_by(0, "true").1;
    assert_eq!(registry.enroll(&policy).expect_err("no number").kind, "Deployment");
}
