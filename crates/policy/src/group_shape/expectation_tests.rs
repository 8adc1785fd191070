//! How many members groups expect, and how their writes are debounced.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::protected_kinds::PolicySettings;
use super::fixtures::{group, is_in_force, kind_plan, policies, policy_for, settings};
use super::*;

/// A group of these kinds, of which so many are expected.
fn expecting(kinds: &[&str], expect: &Value) -> Value {
    let kinds: Vec<_> = kinds.iter().map(|kind| json!({ "group": "apps", "kind": kind })).collect();
    let pods = json!({ "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" } });
    json!({ "members": [pods, { "kinds": kinds, "labels": { "app": "web" }, "expect": expect }] })
}

fn computed(cel: &str) -> Value {
    json!({ "cel": cel })
}

/// What a group with this spec is told, where it cannot be judged.
fn refusal(spec: &Value, settings: &PolicySettings) -> Option<String> {
    let group = group("shop", "g", spec);
    if let Err(why) = &group.shape {
        return Some(why.to_string());
    }
    let policies = policies([&group], settings);
    let groups = policy_for(&policies, &group).and_then(|found| found.groups.as_ref());
    groups.expect("a policy for the group").shape.refusal_of("shop", "{}")
}

#[test]
fn the_number_of_members_of_a_kind_is_computed_from_the_group_as_a_policy_computes_it_from_its_parent() {
    let cel = "size(parent.spec.members) + 1";
    let spec = expecting(&["Deployment", "StatefulSet"], &computed(cel));
    let policies = policies([&group("shop", "g", &spec)], &settings());
    let compiled = policies[0].compile_spec(&settings()).expect("it compiles");
    let expected: Vec<_> = compiled.groups.iter().map(|group| (group.min, group.count.is_some())).collect();
    assert_eq!(expected, [(1, false), (0, true), (0, true)], "in place of at least one");
    let parents = kind_plan(&policies, &settings(), "ReadinessGroup").interest.parent;
    let counts: Vec<_> = parents.iter().flat_map(|rule| &rule.counts).collect();
    assert_eq!(counts.iter().map(|count| count.group).collect::<Vec<_>>(), [1, 2]);
    let object = json!({ "spec": spec }).to_string();
    let count = counts[0].count.evaluate_count(rollcall_cel::ObjectJson::Text(&object));
    assert_eq!(count.ok(), Some(3));
}

#[test]
fn a_number_that_cannot_be_computed_is_refused_by_the_member_with_line_and_column() {
    let told = refusal(
        &expecting(&["Deployment", "StatefulSet"], &computed("size(parent.spec\n  .members")),
        &settings(),
    );
    let told = told.expect("it is refused");
    assert!(told.starts_with("it cannot be judged: spec.members[1].expect.cel: line 2, column "), "{told}");
    assert_eq!(told.matches("spec.members[1]").count(), 1, "once, for all kinds of the member: {told}");
    let told = refusal(&expecting(&["Deployment"], &computed("parent.metadata.name == 'x'")), &settings());
    assert!(told.expect("it is refused").contains("spec.members[1].expect.cel: "));
    let long = computed(&"1 + ".repeat(1_200));
    let told = refusal(&expecting(&["Deployment"], &long), &settings()).expect("it is refused");
    assert!(told.contains("spec.members[1].expect.cel: Too long"), "{told}");
}

#[test]
fn what_computes_a_number_is_for_named_kinds_and_nothing_computes_where_rules_are_switched_off() {
    let of_category =
        json!({ "members": [{ "category": "all", "labels": { "a": "b" }, "expect": computed("1") }] });
    let told = refusal(&of_category, &settings()).expect("it is refused");
    assert!(told.contains("spec.members[0].expect: cel does not go with category"), "{told}");
    let off = PolicySettings { group_rules: false, ..settings() };
    let told = refusal(&expecting(&["Deployment"], &computed("1")), &off).expect("it is refused");
    let said = "spec.members[1].expect.cel: rules of groups are switched off (--group-rules=false): remove expect.cel";
    assert!(told.contains(said), "{told}");
    assert_eq!(refusal(&expecting(&["Deployment"], &json!({ "min": 2 })), &off), None);
}

#[test]
fn groups_whose_numbers_are_computed_alike_share_a_policy_in_every_namespace() {
    let spec = expecting(&["Deployment"], &computed("int(parent.metadata.annotations['example.com/size'])"));
    let groups = ["shop", "books"].map(|namespace| group(namespace, "g", &spec));
    let policies: Vec<_> = policies(&groups, &settings()).into_iter().filter(is_in_force).collect();
    assert_eq!(policies.len(), 1);
    let scope = &kind_plan(&policies, &settings(), "Deployment").interest.child[0].scope;
    assert!(scope.covers("bank"), "it is evaluated on the group, and on no member");
}

#[test]
fn a_group_debounces_as_it_says_and_not_faster_than_by_default() {
    let debounced = |debounce: &Value| {
        let mut spec = expecting(&["Deployment"], &json!({ "min": 1 }));
        spec["debounce"] = debounce.clone();
        spec
    };
    let compiled = |spec: &Value| {
        let spec = serde_json::from_value(spec.clone()).expect("a spec");
        policy_of_group(&spec).expect("a shape").compile_spec(&settings()).expect("it compiles").debounce
    };
    let slow = compiled(&debounced(&json!({ "quiet": "2s", "cap": "1m" })));
    assert_eq!((slow.quiet, slow.cap), (Duration::from_secs(2), Duration::from_mins(1)));
    let default = compiled(&debounced(&json!({})));
    assert_eq!((default.quiet, default.cap), (Duration::from_millis(100), Duration::from_secs(1)));
    for (debounce, said) in [
        (json!({ "quiet": "99ms" }), "spec.debounce.quiet: must not be shorter than the default, 100ms"),
        (
            json!({ "quiet": "100ms", "cap": "999ms" }),
            "spec.debounce.cap: must not be shorter than the default, 1s",
        ),
        (json!({ "quiet": "3s", "cap": "2s" }), "spec.debounce.cap: must not be shorter than debounce.quiet"),
        (json!({ "quiet": "soon" }), "spec.debounce.quiet: "),
    ] {
        let told = refusal(&debounced(&debounce), &settings()).expect("it is refused");
        assert!(told.contains(said), "{debounce}: {told}");
        assert_eq!(told.matches("spec.debounce").count(), 1, "{told}");
    }
}
