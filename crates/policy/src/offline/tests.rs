//! Tests of what policies say of given objects, as sentences over data.

mod earlier_groups;

use super::*;
use crate::compile::compile;
use serde_json::{Value, json};

const NOW: Time = Time(1_800_000_000_000);

fn object(kind: &str, api_version: &str, name: &str, owner: Option<&str>) -> ParentObject {
    object_of(kind, api_version, name, owner.map(|owner| ("Database", owner)))
}

fn object_of(kind: &str, api_version: &str, name: &str, owner: Option<(&str, &str)>) -> ParentObject {
    let owners = owner.map(
        |(kind, owner)| json!([{ "apiVersion": "example.com/v1", "kind": kind, "name": owner, "uid": owner }]),
    );
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let value: Value = json!({ "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners },
        "status": { "observedGeneration": 1, "phase": "Running", "conditions": ready } });
    serde_json::from_str(&value.to_string()).unwrap()
}

fn children(told: impl Fn(&mut OfflineRollup)) -> Vec<String> {
    let spec = json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [{ "kind": { "kind": "Pod" } }] });
    let policy = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
    let mut world = OfflineRollup::new(&[("p".to_owned(), policy)], NOW);
    told(&mut world);
    let trees = world.into_trees(&BTreeSet::new());
    assert_eq!(trees.len(), 1);
    trees[0].children.iter().map(|child| child.name.clone()).collect()
}

/// What is said of a parent in the namespace `shop`, or in none, below which a rule reads an object of `vault`.
fn said(of: Option<&str>, find: &Value, spec: &Value) -> (String, usize) {
    let policy = json!({
        "parent": { "group": "example.com", "kind": "Database" },
        "children": [{
            "kind": { "kind": "ConfigMap" }, "find": find,
            "ready": { "lua": "return { status = 'Degraded', message = obj.data.text }" },
        }],
    });
    let policy = compile(&serde_json::from_value(policy).unwrap(), Duration::from_mins(10)).unwrap();
    let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "spec": spec,
        "metadata": { "name": "db", "namespace": of, "uid": "db", "generation": 1 } });
    let child = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "text": "of the vault" },
        "metadata": { "name": "it", "namespace": "vault", "uid": "it", "labels": { "app": "web" },
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" }] } });
    let objects = [&parent, &child].map(|object| serde_json::from_str(&object.to_string()).unwrap());
    let trees = roll_up(&[("p".to_owned(), policy)], &objects.each_ref(), &BTreeSet::new(), NOW);
    (trees[0].detail.clone(), trees[0].children.len())
}

#[test]
fn the_words_of_a_rule_stay_in_their_namespace_unless_the_policy_names_it() {
    let (by_label, spec) =
        (json!({ "app": "web" }), json!({ "ns": "vault", "refs": [{ "name": "it", "namespace": "vault" }] }));
    let chosen = |allowed: &[&str]| json!({ "labels": by_label, "namespaces": ["{parent.spec.ns}"], "allowedNamespaces": allowed });
    let refs = |allowed: &[&str]| json!({ "refs": "spec.refs[*]", "allowedNamespaces": allowed });
    for (of, find, is_named) in [
        (Some("shop"), json!({}), false),
        (Some("shop"), json!({ "labels": by_label }), false),
        (Some("shop"), chosen(&["other"]), false),
        (Some("shop"), chosen(&["va*"]), true),
        (Some("shop"), json!({ "labels": by_label, "namespaces": ["vault"] }), true),
        (Some("shop"), refs(&["vault"]), false),
        (None, json!({}), false),
        (None, json!({ "labels": by_label }), false),
        (None, refs(&["other"]), false),
        (None, refs(&["vault"]), true),
        (None, json!({ "allowedNamespaces": ["other"] }), false),
        (None, json!({ "allowedNamespaces": ["vault"] }), true),
    ] {
        let (detail, children) = said(of, &find, &spec);
        assert_eq!(detail.contains("of the vault"), is_named, "{of:?} {find}: {detail}");
        assert_eq!(children > 0, is_named, "{of:?} {find}: {detail}");
    }
}

#[test]
fn each_policy_tells_of_a_child_in_the_words_of_its_own_rule() {
    let says = |script: &str| {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s",
            "children": [{ "kind": { "kind": "ConfigMap" }, "ready": { "lua": script } }],
        });
        compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap()
    };
    let told =
        |status: &str, word: &str| says(&format!("return {{ status = '{status}', message = '{word}' }}"));
    let words = [("Progressing", "still copying"), ("Healthy", "copied"), ("Degraded", "copy failed")];
    let mut policies: Vec<_> =
        words.iter().map(|(status, word)| ((*word).to_owned(), told(status, word))).collect();
    let objects =
        [object("Database", "example.com/v1", "db", None), object("ConfigMap", "v1", "copy", Some("db"))];
    for _ in 0..policies.len() {
        policies.rotate_left(1);
        for tree in roll_up(&policies, &objects.each_ref(), &BTreeSet::new(), NOW) {
            let own = tree.policy.as_str();
            for (_, word) in words.iter().filter(|(status, _)| *status != "Healthy") {
                assert_eq!(tree.detail.contains(word), own == *word, "{own}: {}", tree.detail);
            }
        }
    }
}

#[test]
fn objects_come_in_any_order_and_a_list_that_is_told_anew_counts_alone() {
    let (db, web) = (object("Database", "example.com/v1", "db", None), |n: u8| {
        object("Pod", "v1", &format!("web-{n}"), Some("db"))
    });
    let pods = (String::new(), "Pod".to_owned());
    let mixed = children(|world| {
        for object in [&web(1), &db, &web(0)] {
            world.add_object(object);
        }
    });
    assert_eq!(mixed, ["web-0", "web-1"]);
    let anew = children(|world| {
        for object in [&db, &web(0), &web(1)] {
            world.add_object(object);
        }
        world.restart_kind(&pods);
        world.add_object(&web(1));
        world.add_object(&web(2));
    });
    assert_eq!(anew, ["web-1", "web-2"]);
}

#[test]
fn what_a_policy_asks_for_and_nobody_can_see_leaves_its_parents_unknown_and_no_others() {
    use ParentReason::{AllChildrenReady, ChildrenUnknown, KindNotVisible};
    let compiled = |kind: &str, child: &str| {
        let spec = json!({ "parent": { "group": "example.com", "kind": kind }, "settle": "0s",
            "children": [{ "kind": { "group": "example.com", "kind": child } }] });
        compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap()
    };
    let policies = [("shops", compiled("Shop", "Database")), ("databases", compiled("Database", "Part"))];
    let policies = policies.map(|(name, policy)| (name.to_owned(), policy));
    let own = |kind, name, owner| object_of(kind, "example.com/v1", name, owner);
    let objects = [
        own("Shop", "books", None),
        own("Database", "db", Some(("Shop", "books"))),
        own("Part", "part", Some(("Database", "db"))),
    ];
    let answers = |hidden: &[&str]| {
        let mut rollup = OfflineRollup::new(&policies, NOW);
        for name in hidden {
            rollup.hide_policy(name, "what it asks for");
        }
        for object in &objects {
            rollup.add_object(object);
        }
        let mut answers = rollup.into_answers(&BTreeSet::new());
        answers.sort_by(|a, b| a.policy.cmp(&b.policy));
        answers.into_iter().map(|answer| (answer.reason, answer.message)).collect::<Vec<_>>()
    };
    let reasons = |hidden| answers(hidden).into_iter().map(|(reason, _)| reason).collect::<Vec<_>>();
    assert_eq!(reasons(&[]), [AllChildrenReady, AllChildrenReady]);
    assert_eq!(reasons(&["databases"]), [KindNotVisible, ChildrenUnknown]);
    assert_eq!(reasons(&["shops"]), [AllChildrenReady, KindNotVisible]);
    let (_, message) = &answers(&["databases"])[0];
    assert_eq!(message, "not permitted to list and watch what it asks for");
}
