//! Groups whose members have readiness rules of their own.

use std::sync::Arc;

use serde_json::{Value, json};
use watcher::plan::RuleSharing;

use super::super::compile::CompiledPolicy;
use super::super::protected_kinds::PolicySettings;
use super::super::ready_rule::GroupRule;
use super::fixtures::{group, is_in_force, kind_plan, policies, policy_for, settings};
use super::*;

fn protecting(protected: &[&str]) -> PolicySettings {
    PolicySettings {
        protected: protected.iter().map(|kind| kind.parse().expect("a kind")).collect(),
        ..settings()
    }
}

fn cel(current: &str) -> Value {
    json!({ "cel": { "current": current } })
}

/// A group of these kinds that are judged by this rule.
fn judged(kinds: &[&str], ready: &Value) -> Value {
    let kinds: Vec<_> = kinds.iter().map(|kind| json!({ "group": "example.com", "kind": kind })).collect();
    json!({ "members": [
        { "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" } },
        { "kinds": kinds, "labels": { "app": "web" }, "ready": ready },
    ] })
}

fn compiled(spec: &Value) -> CompiledPolicy {
    let spec = serde_json::from_value(spec.clone()).expect("a spec");
    policy_of_group(&spec).expect("a shape").compile_spec(&settings()).expect("it compiles")
}

/// What a group with this spec is told, where it cannot be judged.
fn refusal(spec: &Value, settings: &PolicySettings) -> String {
    let group = group("shop", "g", spec);
    if let Err(why) = &group.shape {
        return why.to_string();
    }
    let policies = policies([&group], settings);
    let groups = policy_for(&policies, &group).and_then(|found| found.groups.as_ref());
    groups.expect("a policy for the group").shape.refusal_of("shop", "{}").unwrap_or_default()
}

#[test]
fn a_member_is_judged_by_its_own_rule_and_others_by_the_built_in_ones() {
    for ready in [
        json!({ "cel": { "current": "status.phase == 'Up'", "inProgress": "true", "failed": "false" } }),
        json!({ "lua": "return { status = 'Healthy' }" }),
        json!({ "profile": "kstatus" }),
    ] {
        let compiled = compiled(&judged(&["Shard"], &ready));
        let rules: Vec<_> = compiled.groups.iter().map(|group| group.rule.is_some()).collect();
        assert_eq!(rules, [false, true], "{ready}");
    }
}

#[test]
fn a_rule_is_compiled_once_for_all_kinds_of_a_member() {
    let compiled = compiled(&judged(&["Shard", "Index", "Cache"], &cel("status.phase == 'Up'")));
    let rules: Vec<_> = compiled.groups.iter().filter_map(|group| group.rule.as_ref()).collect();
    let [GroupRule::Own { rule: first, .. }, others @ ..] = rules.as_slice() else { panic!("{rules:?}") };
    assert_eq!(others.len(), 2);
    for other in others {
        assert!(matches!(other, GroupRule::Own { rule, .. } if Arc::ptr_eq(rule, first)));
    }
}

#[test]
fn a_rule_that_cannot_be_is_refused_with_the_member_the_line_and_the_column_in_a_policys_words() {
    let broken = cel("status.phase ==\n  frobnicate(1)");
    let policy = json!({
        "parent": { "kind": "Shop" },
        "children": [{ "kind": { "group": "example.com", "kind": "Shard" }, "ready": broken }],
    });
    let policy = serde_json::from_value(policy).expect("a spec");
    let problems = crate::compile_with(&policy, &settings()).expect_err("refused");
    let of_policy = PolicyProblem::join_all(&problems);
    let of_group = of_policy.replace("spec.children[0]", "spec.members[1]");
    assert!(of_group.starts_with("spec.members[1].ready.cel.current: line 2, column 3: "), "{of_group}");
    let told = refusal(&judged(&["Shard", "Index"], &broken), &settings());
    let way_out = "mend it, or apply again a spec that was judged";
    assert_eq!(
        told,
        format!("it cannot be judged: {of_group}; {way_out}"),
        "once, for all kinds of the member"
    );
    let spec = serde_json::from_value(judged(&["Shard"], &broken)).expect("a spec");
    let checked = policy_of_group(&spec).expect("a shape").compile_spec(&settings());
    assert_eq!(checked.expect_err("refused"), of_group, "`rollcall check` says the same");
}

#[test]
fn what_no_rule_may_read_is_refused_in_a_group_as_in_a_policy() {
    let secret = json!({ "members": [
        { "kinds": [{ "kind": "Secret" }], "labels": { "app": "web" }, "ready": { "profile": "argocd" } },
    ] });
    let told = refusal(&secret, &settings());
    assert!(told.contains("spec.members[0].ready: rules never read a Secret beyond its metadata"), "{told}");
    let by_name = json!({ "members": [
        { "objects": [{ "apiVersion": "v1", "kind": "Secret", "name": "token" }], "ready": cel("true") },
    ] });
    let told = refusal(&by_name, &settings());
    assert!(told.contains("spec.members[0].ready: rules never read a Secret"), "{told}");
    let vault = judged(&["Vault"], &cel("spec.token != ''"));
    assert_eq!(refusal(&vault, &settings()), "");
    let told = refusal(&vault, &protecting(&["Vault.example.com"]));
    assert!(told.contains("spec.members[1].ready: rules never read a Vault beyond its metadata"), "{told}");
}

#[test]
fn where_rules_of_groups_are_switched_off_a_group_with_one_says_so_by_the_member() {
    let off = PolicySettings { group_rules: false, ..settings() };
    let told = refusal(&judged(&["Vault", "Key"], &cel("spec.sealed == false")), &off);
    assert!(
        told.contains("spec.members[1].ready: rules of groups are switched off (--group-rules=false)"),
        "{told}"
    );
    assert!(!told.contains("members[0]"), "{told}");
    let plain = json!({ "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" } }] });
    assert_eq!(refusal(&plain, &off), "");
}

#[test]
fn no_rule_judges_what_rollcall_writes_itself() {
    let groups = json!({ "members": [{
        "objects": [{ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "name": "base" }],
        "ready": cel("true"),
    }] });
    let told = refusal(&groups, &settings());
    assert!(told.contains("spec.members[0].ready: no rule judges a ReadinessGroup"), "{told}");
}

#[test]
fn what_the_schema_refuses_of_a_rule_is_refused_by_the_field() {
    for (ready, said) in [
        (json!({}), "spec.members[1].ready: exactly one of cel, lua, profile, rules"),
        (json!({ "lua": "return nil", "profile": "flux" }), "spec.members[1].ready: exactly one of"),
        (json!({ "rules": "shop/scripts" }), "spec.members[1].ready.rules: only a ReadinessPolicy"),
        (json!({ "cel": { "current": "x".repeat(4_097) } }), "spec.members[1].ready.cel.current: Too long"),
        (json!({ "cel": { "current": "true", "names": [] } }), "unknown field `names`"),
    ] {
        let told = refusal(&judged(&["Shard"], &ready), &settings());
        assert!(told.contains(said), "{ready}: {told}");
    }
    let remembered = json!({ "members": [{
        "kinds": [{ "group": "batch", "kind": "Job" }], "labels": { "a": "b" }, "afterDeletion": "remember",
        "ready": cel("true"),
    }] });
    let told = refusal(&remembered, &settings());
    assert!(told.contains("spec.members[0].afterDeletion: remembers the Job's own outcome"), "{told}");
}

#[test]
fn what_rules_take_is_bounded_in_bytes_for_all_kinds_of_all_members() {
    let kinds: Vec<_> = (0..16).map(|n| format!("K{n}")).collect();
    let kinds: Vec<_> = kinds.iter().map(String::as_str).collect();
    let long = json!({ "lua": format!("return nil -- {}", "x".repeat(5_000)) });
    let told = refusal(&judged(&kinds, &long), &settings());
    assert!(told.contains("its rule, and together they have more than 64 KiB"), "{told}");
    assert_eq!(refusal(&judged(&kinds[..4], &long), &settings()), "");
}

#[test]
fn groups_with_the_same_rule_share_one_and_groups_with_others_do_not() {
    let up = judged(&["Shard"], &cel("status.phase == 'Up'"));
    let down = judged(&["Shard"], &cel("status.phase == 'Down'"));
    let labelled = json!({ "members": [{
        "kinds": [{ "group": "example.com", "kind": "Shard" }], "labels": { "team": "web" },
        "ready": cel("status.phase == 'Up'"),
    }] });
    let mut groups: Vec<_> =
        (0..10_000).map(|n| group(&format!("ns-{}", n % 7), &format!("g-{n}"), &up)).collect();
    groups.extend([group("ns-1", "down", &down), group("ns-1", "labelled", &labelled)]);
    let policies: Vec<_> = policies(&groups, &settings()).into_iter().filter(is_in_force).collect();
    assert_eq!(policies.len(), 3);
    let shards = kind_plan(&policies, &settings(), "Shard");
    let rules: Vec<_> =
        shards.interest.assessment_rules.iter().filter_map(|rule| rule.rule.as_ref()).collect();
    assert_eq!(rules.len(), 2, "one for `Up`, however it is selected, and one for `Down`");
}

#[test]
fn a_rule_is_evaluated_in_the_namespaces_of_its_groups_and_nowhere_else() {
    let up = judged(&["Shard"], &cel("status.phase == 'Up'"));
    let scopes = |groups: &[FoundGroup]| {
        let policies: Vec<_> = policies(groups, &settings()).into_iter().filter(is_in_force).collect();
        let shards = kind_plan(&policies, &settings(), "Shard");
        let of_children = shards.interest.child[0].scope.clone();
        let parents = kind_plan(&policies, &settings(), "ReadinessGroup");
        assert_eq!(parents.interest.parent[0].namespaces, of_children, "the same for the groups themselves");
        ["shop", "books", "bank"].map(|namespace| of_children.covers(namespace))
    };
    let shop = group("shop", "g", &up);
    assert_eq!(scopes(std::slice::from_ref(&shop)), [true, false, false]);
    assert_eq!(scopes(&[shop, group("books", "g", &up)]), [true, true, false]);
    let plain = group("shop", "plain", &judged(&["Shard"], &Value::Null));
    assert_eq!(scopes(&[plain]), [true; 3], "without a rule all of that shape are judged at once");
}

#[test]
fn a_rule_of_a_group_is_not_the_one_of_a_policy_with_the_same_text() {
    let text = "status.phase == 'Up'";
    let policy = json!({
        "parent": { "kind": "Shop" },
        "children": [{ "kind": { "group": "example.com", "kind": "Shard" }, "ready": cel(text) }],
    });
    let spec: ReadinessPolicySpec = serde_json::from_value(policy).expect("a spec");
    let mut policies = policies([&group("shop", "g", &judged(&["Shard"], &cel(text)))], &settings());
    let policy =
        FoundPolicy { name: "shards".to_owned(), spec: Ok(spec), groups: None, ..policies[0].clone() };
    policies.push(policy);
    let shards = kind_plan(&policies, &settings(), "Shard");
    let rules: Vec<_> =
        shards.interest.assessment_rules.iter().filter_map(|rule| rule.rule.as_ref()).collect();
    let [of_group, of_policy] = rules[..] else { panic!("{rules:?}") };
    assert_eq!(of_group.source, of_policy.source);
    assert_ne!(of_group, of_policy, "what suspends one leaves the other");
    let shared_by = [of_group.shared_by, of_policy.shared_by];
    assert_eq!(shared_by, [RuleSharing::Namespace, RuleSharing::Kind], "nor does it leave its namespace");
}

#[test]
fn rules_that_cannot_be_are_all_told_why_and_take_the_place_of_nobody_elses_words() {
    let broken: Vec<_> = (0..40)
        .map(|n| group(&format!("ns-{n}"), "g", &judged(&["Shard"], &cel(&format!("frobnicate({n})")))))
        .collect();
    let policies = policies(&broken, &settings());
    for group in &broken {
        let found = policy_for(&policies, group).expect("a policy of its own");
        let told = found.groups.as_ref().and_then(|groups| groups.shape.refusal_of(&group.namespace, "{}"));
        assert!(told.is_some_and(|told| told.contains("frobnicate")));
    }
}
