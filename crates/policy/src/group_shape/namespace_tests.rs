//! Groups whose members are in other namespaces.

use serde_json::{Value, json};
use watcher::plan::{ForeignNamespaces, Interest};

use super::super::protected_kinds::PolicySettings;
use super::fixtures::{group, kind_plan, policies};
use super::*;

/// Settings by which these namespaces are opened.
fn opening(grants: &str) -> PolicySettings {
    PolicySettings {
        group_namespaces: ForeignNamespaces {
            grants: grants.parse().expect("grants"),
            ..ForeignNamespaces::default()
        },
        ..super::fixtures::settings()
    }
}

fn in_namespaces(names: &[&str], ready: &Value) -> Value {
    json!({ "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" }, "namespaces": names, "ready": ready }] })
}

/// What the objects of a kind are taken in for.
fn interest(groups: &[FoundGroup], settings: &PolicySettings, kind: &str) -> Interest {
    kind_plan(&policies(groups, settings), settings, kind).interest
}

#[test]
fn groups_that_name_as_many_namespaces_share_a_policy_whichever_these_are() {
    let of =
        |namespace: &str, names: &[&str]| group(namespace, "g", &in_namespaces(names, &Value::Null)).shape;
    assert_eq!(of("shop", &["bank", "books"]), of("platform", &["a", "b"]));
    assert_ne!(of("shop", &["bank"]), of("shop", &["bank", "books"]));
    let policy: Value = serde_json::from_str(&of("shop", &["bank"]).expect("a shape")).expect("a policy");
    assert_eq!(
        policy["children"][0]["find"]["namespaces"],
        json!(["{parent.spec.members[0].namespaces[0]}"])
    );
}

#[test]
fn what_is_opened_to_groups_stands_in_the_rule_for_them() {
    let settings = opening("platform=*");
    let groups = [group("shop", "g", &in_namespaces(&["bank"], &Value::Null))];
    let parents = interest(&groups, &settings, "ReadinessGroup").parent;
    assert!(parents.iter().all(|rule| rule.foreign == settings.group_namespaces));
    assert_eq!(
        parents.iter().flat_map(|rule| &rule.labels).map(|labels| labels.namespaces.len()).sum::<usize>(),
        1
    );
}

#[test]
fn a_rule_is_evaluated_in_the_namespaces_that_are_open_to_its_groups_and_not_in_those_that_they_name() {
    let up = json!({ "cel": { "current": "status.phase == 'Up'" } });
    let groups = [group("shop", "g", &in_namespaces(&["bank", "books"], &up))];
    let covers = |grants: &str| {
        let scope = interest(&groups, &opening(grants), "Pod").child[0].scope.clone();
        ["shop", "books", "bank", "vault"].map(|namespace| scope.covers(namespace))
    };
    assert_eq!(covers(""), [true, false, false, false]);
    assert_eq!(covers("shop=books"), [true, true, false, false]);
    assert_eq!(covers("shop=*"), [true, true, true, false]);
    assert_eq!(covers("bank=*"), [true, false, false, false], "it is open to others");
    let moved = group("shop", "g", &in_namespaces(&["bank", "vault"], &up));
    assert!(!groups[0].asks_the_same(&moved), "a plan is due, though the shape is the same");
    assert_eq!(groups[0].shape, moved.shape);
}

#[test]
fn what_the_schema_refuses_of_namespaces_is_refused_by_the_field() {
    let objects = |namespace: &str| json!([{ "apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": "x" }]);
    let jobs = json!([{ "group": "batch", "kind": "Job" }]);
    for (member, said) in [
        (
            json!({ "objects": objects("bank"), "namespaces": ["bank"] }),
            "spec.members[0].namespaces: does not go with objects",
        ),
        (json!({ "objects": objects("Bank") }), "spec.members[0].objects[0].namespace: should match"),
        (
            json!({ "kinds": jobs, "labels": { "a": "b" }, "namespaces": ["ba*"] }),
            "spec.members[0].namespaces[0]: must be the name of a namespace",
        ),
        (
            json!({ "kinds": jobs, "labels": { "a": "b" }, "namespaces": vec!["a"; 17] }),
            "spec.members[0].namespaces: Too many",
        ),
        (
            json!({ "kinds": jobs, "labels": { "a": "b" }, "namespaces": ["bank"], "afterDeletion": "remember" }),
            "spec.members[0].afterDeletion: only supported for Jobs in the namespace of the group",
        ),
        (
            json!({ "objects": objects("bank"), "afterDeletion": "remember" }),
            "spec.members[0].afterDeletion: only supported for Jobs in the namespace of the group",
        ),
    ] {
        let why = group("shop", "g", &json!({ "members": [member] })).shape.expect_err("refused");
        assert!(why.contains(said), "{why}");
    }
}
