//! Decoding of one object: whatever its fields contain, values that can be understood are present and the rest is
//! absent.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};
use watcher::wire::ChildObject;

fn read(text: &str) -> ChildObject {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_no_object_has_nothing() {
    for text in ["null", "true", "7", "-7", "7.5", "\"text\"", "[]", r#"[1, {"metadata": {"name": "n"}}]"#] {
        assert_eq!(read(text), ChildObject::default(), "{text}");
    }
}

#[test]
fn a_part_of_another_type_is_absent_and_the_other_parts_are_there() {
    for odd in ["null", "true", "7", "-7", "7.5", "\"text\"", "[]", "[[{}], 1]"] {
        for part in ["metadata", "spec", "status", "endpoints"] {
            let whole =
                json!({"metadata": {"name": "n"}, "spec": {"replicas": 3}, "status": {"replicas": 2}});
            let mut object = whole.as_object().unwrap().clone();
            object.insert(part.to_owned(), serde_json::from_str(odd).unwrap());
            let child = read(&Value::from(object).to_string());
            assert_eq!(&*child.meta.name, if part == "metadata" { "" } else { "n" }, "{part} is {odd}");
            assert_eq!(child.facts.spec.replicas, (part != "spec").then_some(3), "{part} is {odd}");
            assert_eq!(child.facts.status.replicas, (part != "status").then_some(2), "{part} is {odd}");
        }
    }
}

#[test]
fn a_status_may_be_one_word() {
    for (text, word) in
        [(r#"{"status": "Running"}"#, "Running"), (r#"{"status": "\u0052unning"}"#, "Running")]
    {
        let words = read(text).facts.status.state_fields;
        assert_eq!(words.iter().map(|w| &*w.value).collect::<Vec<_>>(), [word]);
    }
}

#[test]
fn a_key_that_is_no_text_costs_nothing_but_itself() {
    let child = read(r#"{"\ud800": {"x": 1}, "metadata": {"\udc00name": "no", "n\u0061me": "yes"}}"#);
    assert_eq!(&*child.meta.name, "yes");
}

#[test]
fn two_hundred_levels_are_passed_over_wherever_they_stand() {
    let deep = format!("{}1{}", r#"{"a":["#.repeat(200), "]}".repeat(200));
    for place in ["spec", "status", "data"] {
        for key in ["template", "phase", "conditions", "containerStatuses", "anything"] {
            let text =
                format!(r#"{{"metadata": {{"x": {deep}, "name": "n"}}, "{place}": {{"{key}": {deep}}}}}"#);
            assert_eq!(&*read(&text).meta.name, "n", "{place}.{key}");
        }
    }
}

#[test]
fn an_object_is_of_the_helm_release_that_annotates_it_or_else_of_the_one_that_its_labels_name() {
    let release = |annotations: &str, labels: &str, rest: &str| {
        let text = format!(
            r#"{{"metadata":{{"namespace":"shop","annotations":{{{annotations}}},"labels":{{{labels}}}{rest}}}}}"#
        );
        let labels = read(&text).meta.labels.into_iter();
        labels
            .filter(|(key, _)| &**key == "meta.helm.sh/release-name")
            .map(|(_, value)| value)
            .collect::<Vec<_>>()
    };
    let by_helm = |name: &str, namespace: &str| {
        format!(r#""meta.helm.sh/release-name":"{name}","meta.helm.sh/release-namespace":"{namespace}""#)
    };
    let by_chart = |name: &str, manager: &str| {
        format!(r#""app.kubernetes.io/instance":"{name}","app.kubernetes.io/managed-by":"{manager}""#)
    };
    let made = r#","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]"#;
    for (annotations, labels, rest, expected) in [
        (by_helm("a", "shop"), String::new(), "", Some("a")),
        (String::new(), by_chart("b", "Helm"), "", Some("b")),
        (by_helm("a", "shop"), by_chart("b", "Helm"), "", Some("a")),
        (by_helm("a", "bank"), by_chart("a", "Helm"), "", None),
        (String::new(), by_chart("b", "argocd"), "", None),
        (String::new(), String::new(), "", None),
        // A ReplicaSet has the annotations of its Deployment.
        (by_helm("a", "shop"), String::new(), made, None),
        (by_helm("a", "shop"), by_chart("b", "Helm"), made, Some("b")),
    ] {
        let found = release(&annotations, &labels, rest);
        assert_eq!(found.first().map(|name| &**name), expected, "{annotations} {labels} {rest}");
        assert!(found.len() < 2);
    }
}

#[test]
fn an_annotation_that_names_the_object_is_found_as_a_label_and_a_copied_one_is_not() {
    let labels = |place: &str, tracking_id: &str| {
        let text = format!(
            r#"{{"metadata":{{"annotations":{{"argocd.argoproj.io/tracking-id":"{tracking_id}",
                "config.k8s.io/owning-inventory":"fleet_shop","other":"x"}},"labels":{{"a":"b"}},{place}}}}}"#
        );
        let labels = read(&text).meta.labels.into_iter();
        labels.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let web = r#""name":"web","namespace":"shop""#;
    let tracked =
        ["a=b", "argocd.argoproj.io/tracking-id=books", "config.k8s.io/owning-inventory=fleet_shop"];
    let untracked = ["a=b", "config.k8s.io/owning-inventory=fleet_shop"];
    assert_eq!(labels(web, "books:apps/Deployment:shop/web"), tracked);
    assert_eq!(labels(web, "books:/Service:shop/web"), tracked);
    for copied in
        ["books:apps/Deployment:shop/other", "books:apps/Deployment:bank/web", "books", "a:b", ":", ""]
    {
        assert_eq!(labels(web, copied), untracked, "{copied}");
    }
    // Names of roles may have colons, and cluster-scoped objects have the namespace of the Application's destination.
    let role = r#""name":"system:web""#;
    assert_eq!(labels(role, "books:rbac.authorization.k8s.io/ClusterRole:shop/system:web"), tracked);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[\\PC\"\\\\]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\é]{0,6}", inner, 0..4)
                .prop_map(|map| Value::from(map.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

proptest! {
    /// Parts that are never read are skipped to their very end, whatever they contain.
    #[test]
    fn what_nobody_reads_changes_nothing(odd in anything()) {
        let object = |odd: Option<&Value>| {
            let mut object = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"a": odd, "managedFields": odd, "name": "n", "uid": "u", "labels": {"a": "b"}},
                "spec": {"containers": odd, "template": odd, "replicas": 3},
                "zzz": odd,
                "status": {"podIPs": odd, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            if odd.is_none() {
                object.as_object_mut().unwrap().remove("zzz");
            }
            let mut read = read(&object.to_string());
            // Which the whole spec goes into, read or not.
            read.meta.spec_version = watcher::wire::SpecVersion::default();
            read
        };
        prop_assert_eq!(object(Some(&odd)), object(None));
    }
}
