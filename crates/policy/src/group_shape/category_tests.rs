//! Groups by categories of kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use watcher::{ServedKind, ServedKinds};

use super::super::compile::CompiledPolicy;
use super::fixtures::settings;
use super::*;

fn served_kind(namespaced: bool, categories: &[&str]) -> ServedKind {
    let categories = categories.iter().map(|category| (*category).into()).collect();
    ServedKind { namespaced, is_followable: true, categories }
}

fn served_with(
    others: impl IntoIterator<Item = ((String, String), ServedKind)>,
    unread: &[&str],
) -> ServedKinds {
    let key = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
    let kinds = [
        (key("apps", "Deployment"), served_kind(true, &["all"])),
        (key("", "Pod"), served_kind(true, &["all"])),
        (key("", "ConfigMap"), served_kind(true, &[])),
        (key("", "Binding"), ServedKind { is_followable: false, ..served_kind(true, &["all"]) }),
        (key("", "Namespace"), served_kind(false, &["all"])),
    ];
    ServedKinds::of(kinds.into_iter().chain(others), unread.iter().map(|group| (*group).into()).collect())
}

fn served() -> ServedKinds {
    served_with([], &[])
}

fn all_of(member: &Value) -> Value {
    let mut all = json!({ "category": "all", "labels": { "app.kubernetes.io/part-of": "shop" } });
    for (field, value) in member.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    json!({ "members": [all] })
}

fn policy(spec: &Value, served: &ServedKinds) -> FoundPolicy {
    let spec = serde_json::from_value(spec.clone()).expect("a spec");
    fill_in_kinds(policy_of_group(&spec).expect("a shape"), served)
}

fn compiled(spec: &Value, served: &ServedKinds) -> CompiledPolicy {
    policy(spec, served).compile_spec(&settings()).expect("it compiles")
}

fn refusal(spec: &Value, served: &ServedKinds) -> String {
    let compiled = compiled(spec, served);
    assert!(compiled.groups.is_empty(), "nothing is followed for it");
    compiled.shape.and_then(|shape| shape.refusal_of("shop", "{}")).expect("it is refused")
}

fn kinds(compiled: &CompiledPolicy) -> Vec<&str> {
    compiled.groups.iter().map(|group| &*group.kind.kind).collect()
}

#[test]
fn a_category_is_all_of_its_namespaced_kinds_that_can_be_watched_and_no_kind_of_it_is_expected_alone() {
    let compiled = compiled(&all_of(&json!({})), &served());
    assert_eq!(kinds(&compiled), ["Pod", "Deployment"]);
    assert!(compiled.groups.iter().all(|group| group.min == 0 && group.max.is_none()));
    let joint = &compiled.joint[0];
    assert_eq!(
        (&*joint.of, joint.count.groups.clone(), joint.count.min),
        ("object of category all", 0..2, 1)
    );
}

#[test]
fn what_is_expected_of_a_category_is_a_number_in_all() {
    for (member, min, max) in [
        (json!({ "expect": { "min": 3, "max": 5 } }), 3, Some(5)),
        (json!({ "expect": { "max": 0 } }), 0, Some(0)),
        (json!({ "expect": { "min": 0 } }), 0, None),
        (json!({ "role": "optional" }), 0, None),
        (json!({ "role": "optional", "expect": { "min": 3 } }), 0, None),
    ] {
        let compiled = compiled(&all_of(&member), &served());
        let count = &compiled.joint[0].count;
        assert_eq!((count.min, count.max), (min, max), "{member}");
        assert!(compiled.groups.iter().all(|group| group.min == 0 && group.max.is_none()), "{member}");
    }
}

#[test]
fn what_an_object_of_the_category_has_made_does_not_count_beside_it() {
    let mut spec = all_of(&json!({}));
    let pods = json!({ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" } });
    spec["members"].as_array_mut().expect("members").insert(0, pods);
    let compiled = compiled(&spec, &served());
    assert_eq!(kinds(&compiled), ["Pod", "Pod", "Deployment"]);
    assert!(compiled.groups[0].made_by_none_of.is_empty(), "whoever names a kind has decided");
    let makers: Vec<_> = compiled.groups[1].made_by_none_of.iter().map(|(_, kind)| &**kind).collect();
    assert_eq!(makers, ["Pod", "Deployment"]);
    assert_eq!(compiled.joint[0].count.groups, 1..3);
}

#[test]
fn a_category_that_cannot_be_filled_in_is_refused_with_the_reason() {
    let many = (0..65)
        .map(|n| (("example.com".to_owned(), format!("Kind{n}")), served_kind(true, &["managed", "crowd"])));
    let crowd = served_with(many, &[]);
    let of = |category: &str| all_of(&json!({ "category": category }));
    for (spec, served, why) in [
        (of("all"), ServedKinds::default(), "only the API server knows that"),
        (of("all"), ServedKinds::unknown_for("connection refused"), "connection refused"),
        (of("nothing"), served(), "lists no namespaced kind in category nothing"),
        (of("managed"), crowd, "category managed has 65 kinds"),
        (of("all"), served_with([], &["metrics.k8s.io"]), "API group metrics.k8s.io"),
    ] {
        let told = refusal(&spec, &served);
        assert!(told.contains(why) && told.starts_with("it cannot be judged: "), "{told}");
    }
}

#[test]
fn members_of_cluster_scoped_kinds_are_refused_where_the_scope_is_known() {
    let by_labels = json!({ "members": [{ "kinds": [{ "kind": "Namespace" }], "labels": { "a": "b" } }] });
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "name": "shop" });
    let by_name = json!({ "members": [{ "objects": [object] }] });
    for spec in [by_labels, by_name] {
        assert!(refusal(&spec, &served()).contains("Namespace is cluster-scoped"));
        assert!(!policy(&spec, &ServedKinds::default()).groups.expect("of a group").is_refused());
    }
}

#[test]
fn groups_depend_on_what_is_served_while_a_scope_is_open_or_a_category_is_named() {
    let depend = |spec: &Value| {
        let object = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
            "metadata": { "name": "g", "namespace": "shop", "uid": "g", "resourceVersion": "1" }, "spec": spec });
        let group = read_group(&serde_json::from_value(object).expect("a group"));
        depend_on_served_kinds([group].iter(), &served())
    };
    let of_kind =
        |kind: &str| json!({ "members": [{ "kinds": [{ "kind": kind }], "labels": { "a": "b" } }] });
    assert!(!depend(&of_kind("Pod")));
    for spec in [of_kind("Namespace"), of_kind("Unknown"), all_of(&json!({}))] {
        assert!(depend(&spec), "{spec}");
    }
}

#[test]
fn a_kind_that_joins_a_category_changes_the_policy_and_not_its_name() {
    let joined = (("example.com".to_owned(), "Shop".to_owned()), served_kind(true, &["all"]));
    let (before, after) =
        (policy(&all_of(&json!({})), &served()), policy(&all_of(&json!({})), &served_with([joined], &[])));
    assert_eq!(before.name, after.name);
    assert_ne!(before.spec, after.spec);
}

#[test]
fn the_ways_of_a_category_are_those_of_its_kinds() {
    let many =
        (0..40).map(|n| (("example.com".to_owned(), format!("Kind{n}")), served_kind(true, &["crowd"])));
    let served = served_with(many, &[]);
    let group = |name: &str, key: &str, second: u8| {
        let spec = json!({ "members": [{ "category": "crowd", "labels": { key: "x" } }] });
        let object = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
            "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
                "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z") }, "spec": spec });
        read_group(&serde_json::from_value(object).expect("a group"))
    };
    let groups = [group("older", "a", 1), group("younger", "b", 2)];
    let policies = policies_of_groups(groups.iter(), &LabelMatcher::default(), &served, &settings());
    let in_force: BTreeSet<_> = policies
        .iter()
        .filter(|policy| !policy.groups.as_ref().is_some_and(GroupSelection::is_refused))
        .map(|policy| policy.groups.as_ref().and_then(|groups| groups.shape.shape()))
        .collect();
    let older: Option<&str> = groups[0].shape.as_deref().ok();
    assert_eq!(in_force, [older].into(), "a second one of 40 kinds has no room");
}
