//! ReadinessGroups as policies.

use std::collections::BTreeSet;

use rollcall_core::ParentOperator;
use serde_json::{Value, json};

use super::fixtures::{group, group_since, is_in_force, policies, policy_for, settings, watch_plan};
use super::*;

fn by_labels(kinds: &[&str], labels: &Value) -> Value {
    let kinds: Vec<_> = kinds.iter().map(|kind| json!({ "group": "apps", "kind": kind })).collect();
    json!({ "members": [{ "kinds": kinds, "labels": labels }] })
}

/// What selects the members of a group, as a policy would say it.
fn finds(spec: &Value) -> Value {
    let shape = group("shop", "g", spec).shape.expect("a shape");
    let policy: Value = serde_json::from_str(&shape).expect("a policy");
    let of_child = |child: &Value| {
        let kind = child["kind"]["kind"].clone();
        assert_eq!(child["find"]["namespaces"], Value::Null, "it stays in the group's own namespace");
        json!([kind, child["find"]["labels"], child["find"]["refs"]])
    };
    policy["children"].as_array().into_iter().flatten().map(of_child).collect()
}

#[test]
fn members_are_children_found_by_what_the_group_says() {
    let kinds = json!([{ "group": "apps", "kind": "Deployment" }]);
    let from = |path: &str| format!("{{parent.spec.members[0].{path}}}");
    for (member, labels) in [
        (
            json!({ "labels": { "app.kubernetes.io/part-of": "shop" } }),
            json!({ "app.kubernetes.io/part-of": from("labels['app.kubernetes.io/part-of']") }),
        ),
        (json!({ "helmRelease": "shop" }), json!({ "meta.helm.sh/release-name": from("helmRelease") })),
        (json!({ "application": "shop" }), json!({ "argocd.argoproj.io/tracking-id": from("application") })),
        (
            json!({ "inventory": "fleet_shop" }),
            json!({ "config.k8s.io/owning-inventory": from("inventory") }),
        ),
        (
            json!({ "applySet": "applyset-x-v1" }),
            json!({ "applyset.kubernetes.io/part-of": from("applySet") }),
        ),
        (
            json!({ "kustomization": { "name": "shop" } }),
            json!({ "kustomize.toolkit.fluxcd.io/name": from("kustomization.name"),
                "kustomize.toolkit.fluxcd.io/namespace": "{parent.metadata.namespace}" }),
        ),
        (
            json!({ "kustomization": { "name": "shop", "namespace": "flux-system" } }),
            json!({ "kustomize.toolkit.fluxcd.io/name": from("kustomization.name"),
                "kustomize.toolkit.fluxcd.io/namespace": from("kustomization.namespace") }),
        ),
    ] {
        let mut member = member;
        member["kinds"] = kinds.clone();
        assert_eq!(finds(&json!({ "members": [member] })), json!([["Deployment", labels, null]]));
    }
    let objects = json!([
        { "apiVersion": "batch/v1", "kind": "Job", "name": "migrate" },
        { "apiVersion": "v1", "kind": "Service", "name": "web" },
        { "apiVersion": "batch/v1", "kind": "Job", "name": "seed" },
    ]);
    let refs = "spec.members[0].objects[*]";
    let mut spec = json!({ "members": [{ "objects": objects }] });
    assert_eq!(finds(&spec), json!([["Service", null, refs], ["Job", null, refs]]));
    spec["after"] = json!([{ "name": "base" }, { "name": "data" }]);
    let awaited = json!(["ReadinessGroup", null, "spec.after[*]"]);
    assert_eq!(finds(&spec), json!([["Service", null, refs], ["Job", null, refs], awaited]));
}

#[test]
fn what_stands_in_annotations_may_be_longer_than_the_value_of_a_label() {
    let kinds = json!([{ "kind": "ConfigMap" }]);
    for (field, most) in [("application", 317), ("inventory", 317), ("applySet", 63), ("helmRelease", 53)] {
        let of = |length: usize| {
            let member = json!({ "kinds": kinds, (field): "x".repeat(length) });
            group("shop", "g", &json!({ "members": [member] })).shape
        };
        assert!(of(most).is_ok(), "{field}");
        assert!(of(most + 1).expect_err("refused").contains(&format!("spec.members[0].{field}")), "{field}");
    }
    let in_use = settings();
    for (member, annotations) in [
        (json!({ "application": "x" }), vec![0]),
        (json!({ "inventory": "x" }), vec![0]),
        (json!({ "helmRelease": "x" }), vec![0]),
    ] {
        let mut member = member;
        member["kinds"] = kinds.clone();
        let spec = serde_json::from_value(json!({ "members": [member] })).expect("a spec");
        let plan = watch_plan(&[policy_of_group(&spec).expect("a shape")], &in_use);
        let rules = plan.kinds.values().flat_map(|kind| &kind.interest.parent);
        let values: Vec<_> =
            rules.flat_map(|rule| &rule.labels).map(|labels| &labels.annotation_values).collect();
        assert_eq!(values, [&annotations]);
    }
}

#[test]
fn groups_that_select_alike_share_a_policy_whatever_they_select() {
    let groups = [
        group_since(1, "a", "x", &by_labels(&["Deployment"], &json!({ "part": "shop" }))),
        group_since(2, "b", "y", &by_labels(&["Deployment"], &json!({ "part": "books" }))),
        group_since(3, "b", "z", &by_labels(&["Deployment"], &json!({ "team": "books" }))),
    ];
    let alike = policies(&groups, &settings());
    let accepted = alike.iter().filter(|policy| is_in_force(policy));
    assert_eq!(accepted.count(), 2);
    assert_eq!(
        alike.iter().map(|policy| &policy.name).collect::<BTreeSet<_>>().len(),
        3,
        "one is for the rest"
    );
    let in_use = settings();
    for policy in alike.iter().filter(|policy| is_in_force(policy)) {
        let compiled = policy.compile_spec(&in_use).expect("it compiles");
        assert_eq!((compiled.min, compiled.groups.len()), (1, 1));
        assert!(compiled.shape.is_some() && !compiled.shadow);
        let plan = watch_plan(std::slice::from_ref(policy), &in_use);
        assert!(
            plan.policies.values().all(|(_, words)| words.operator == ParentOperator::None),
            "nobody handles a group"
        );
    }
    assert_eq!(policies(&[], &settings()), [], "without groups nothing is followed for them");
}

#[test]
fn a_group_that_says_nonsense_is_refused_by_the_field() {
    for (spec, said) in [
        (json!({ "members": [] }), "spec.members: at least one member"),
        (
            json!({ "members": [{ "labels": { "a": "b" } }] }),
            "spec.members[0].kinds: goes with whatever selects",
        ),
        (
            json!({ "members": [{ "kinds": [{ "version": "v1beta1", "kind": "Pod" }], "labels": { "a": "b" } }] }),
            "unknown field `version`",
        ),
        (by_labels(&["Deployment"], &json!({})), "spec.members[0]: exactly one of"),
        (by_labels(&["Deployment"], &json!({ "x']}{parent.spec": "b" })), "spec.members[0].labels: "),
        (
            by_labels(&["x/y"], &json!({ "a": "b" })),
            "spec.members[0].kinds[0].kind: must be the name of a kind",
        ),
        (
            json!({ "members": [{ "objects": [{ "apiVersion": "v1", "kind": "Pod", "name": "x" }], "expect": { "min": 1 } }] }),
            "spec.members[0].expect: does not go with objects",
        ),
        (
            json!({ "members": [{ "objects": [{ "apiVersion": "/", "kind": "Pod", "name": "x" }] }] }),
            "spec.members[0].objects[0].apiVersion: should match",
        ),
        (
            json!({ "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" }, "surprise": 1 }] }),
            "unknown field",
        ),
    ] {
        let why = group("shop", "g", &spec).shape.expect_err("refused");
        assert!(why.contains(said), "{spec}: {why}");
    }
    let every = |count: usize| {
        let kinds: Vec<_> =
            (0..16).map(|n| json!({ "group": "example.com", "kind": format!("K{n}") })).collect();
        let member = json!({ "kinds": kinds, "labels": { "a": "b" } });
        group("shop", "g", &json!({ "members": vec![member; count] })).shape
    };
    assert!(every(4).is_ok());
    assert!(every(5).expect_err("refused").contains("select in 80 ways, and may in 64"));
}

#[test]
fn nobody_takes_all_ways_to_select_and_older_groups_keep_theirs() {
    let own = |namespace: &str, second: u8, n: usize| {
        let labels = json!({ (format!("key-{n}")): "x" });
        group_since(
            second,
            namespace,
            &format!("g{n:03}"),
            &by_labels(&["Deployment", "StatefulSet"], &labels),
        )
    };
    let greedy: Vec<_> = (0..50).map(|n| own("greedy", 1, n)).collect();
    let modest = [own("modest", 2, 3), own("modest", 2, 49)];
    let asked = policies(greedy.iter().chain(&modest), &settings());
    let of = |group: &FoundGroup| {
        let found = policy_for(&asked, group)?;
        Some(found.groups.as_ref()?.shape.refusal_of(&group.namespace, ""))
    };
    assert!(greedy[..32].iter().all(|group| of(group) == Some(None)), "the oldest");
    let why = of(&greedy[32]).flatten().expect("refused");
    assert!(why.contains("groups of namespace greedy would select in more than 64 ways"), "{why}");
    assert_eq!(of(&modest[1]), Some(None), "another namespace asks for the same and has room");
    let crowd: Vec<_> = (0..12).flat_map(|n| (0..30).map(move |k| (n, k))).collect();
    let crowd: Vec<_> = crowd.into_iter().map(|(n, k)| own(&format!("ns-{n}"), 1, 100 * n + k)).collect();
    let of_crowd = policies(&crowd, &settings());
    assert_eq!(of_crowd.iter().filter(|policy| is_in_force(policy)).count(), 256, "of two ways each");
    assert_eq!(of_crowd.len(), 256 + 32 + 1);
}

#[test]
fn what_is_said_of_a_refused_shape_names_no_namespace_but_the_groups_own() {
    let own = |namespace: &str, second: u8, n: usize| {
        let labels = json!({ (format!("key-{n}")): "x" });
        group_since(
            second,
            namespace,
            &format!("g{n:03}"),
            &by_labels(&["Deployment", "StatefulSet"], &labels),
        )
    };
    // Both ask for the same 40 ways of two, of which 32 are in force: those that one of them brought.
    let both = ["red", "blue"].map(|namespace| (0..80).map(move |n| (namespace, n)));
    let groups: Vec<_> = both.into_iter().flatten().map(|(namespace, n)| own(namespace, 1, n)).collect();
    let policies = policies(&groups, &settings());
    let mut told = BTreeSet::new();
    for group in &groups {
        let Some(found) = policy_for(&policies, group) else { continue };
        let shape = &found.groups.as_ref().expect("groups").shape;
        let Some(why) = shape.refusal_of(&group.namespace, "") else { continue };
        let other = if &*group.namespace == "red" { "blue" } else { "red" };
        assert!(!why.contains(other), "{}: {why}", group.namespace);
        assert!(why.contains(&format!("groups of namespace {} would", group.namespace)), "{why}");
        told.insert(group.namespace.clone());
        assert_eq!(
            shape.refusal_of("green", "").as_deref(),
            Some(group_quota::NOT_IN_FORCE),
            "it has not asked"
        );
    }
    assert_eq!(told.len(), 2);
}

#[test]
fn shapes_have_short_names_that_nobody_can_make_equal() {
    assert_eq!(shape_name("{}"), "ReadinessGroup/44136fa355b3678a1146ad16f7e8649e94fb4fc2");
    // FNV-1a of 64 bits is the same for both: what is hashed is what a tenant writes.
    assert_ne!(shape_name("8yn0iYCKYHlIj4-BwPqk"), shape_name("GReLUrM4wMqfg9yzV3KQ"));
}

#[test]
fn an_old_group_that_is_edited_takes_no_ways_of_younger_ones() {
    let wide = |n: usize| {
        let kinds: Vec<_> =
            (0..16).map(|k| json!({ "group": "example.com", "kind": format!("K{k}") })).collect();
        let labels = json!({ (format!("old-{n}")): "x" });
        let members = vec![json!({ "kinds": kinds, "labels": labels }); 4];
        group_since(1, &format!("old-{n}"), "g", &json!({ "members": members }))
    };
    let young = group_since(50, "young", "g", &by_labels(&["Deployment"], &json!({ "part": "shop" })));
    let old: Vec<_> = (0..8).map(wide).collect();
    let policies = policies(old.iter().chain([&young]), &settings());
    let in_force = |group: &FoundGroup| policy_for(&policies, group).is_some_and(is_in_force);
    assert!(in_force(&young));
    assert_eq!(old.iter().filter(|group| in_force(group)).count(), 7, "and whoever takes most is cut");
}

#[test]
fn what_a_group_selects_by_is_bounded_in_bytes() {
    let long = "k".repeat(318);
    let why = group("shop", "g", &by_labels(&["Deployment"], &json!({ (long): "x" }))).shape;
    assert!(why.expect_err("refused").contains("no label has a key of more than 317"));
    let kinds: Vec<_> = (0..16).map(|k| json!({ "group": "example.com", "kind": format!("K{k}") })).collect();
    let labels: serde_json::Map<_, _> = (0..64).map(|n| (format!("{n:0>300}"), json!("x"))).collect();
    let why = group("shop", "g", &json!({ "members": [{ "kinds": kinds, "labels": labels }] })).shape;
    assert!(why.expect_err("refused").contains("more than 64 KiB"));
    let ignored: Vec<_> = (0..32)
        .map(|n| json!({ "key": format!("key-{n}"), "operator": "In", "values": vec!["v".repeat(63); 64] }))
        .collect();
    let ignore = json!({ "selector": { "matchExpressions": ignored } });
    let member = json!({ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" }, "ignore": ignore });
    let why = group("shop", "g", &json!({ "members": [member] })).shape;
    assert!(why.expect_err("refused").contains("more than 64 KiB"));
}
