//! What policies and records may say: defaults, round trips, refusals, and the schema that the server is given.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeSet;

use api::{
    ReadinessGroup, ReadinessGroupSpec, ReadinessPolicy, ReadinessPolicySpec, ReadinessRecord,
    ReadinessRecordSpec,
};
use kube::CustomResourceExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A policy that says everything that can be said.
fn full_policy() -> Value {
    let selector = || {
        json!({
            "matchLabels": { "a": "b" },
            "matchExpressions": [{ "key": "c", "operator": "In", "values": ["d"] }],
        })
    };
    json!({
        "parent": {
            "group": "example.com", "version": "v1", "kind": "Database",
            "selector": selector(), "namespaceSelector": selector(),
        },
        "children": [{
            "kind": { "group": "apps", "version": "v1", "kind": "StatefulSet" },
            "find": { "labels": { "db": "{parent.metadata.name}" }, "namespaces": ["shop"], "allowedNamespaces": ["team-*"], "refs": "spec.refs[*]" },
            "expect": { "min": 1, "max": 3, "names": ["x"], "cel": "parent.spec.size" },
            "role": "optional",
            "afterDeletion": "rememberGeneration",
            "ignore": { "selector": selector() },
            "quorum": "80%",
            "ready": {
                "cel": { "current": "a", "inProgress": "b", "failed": "c" },
                "lua": "return {}", "profile": "argocd", "rules": "argocd-cm",
            },
        }],
        "condition": { "type": "Ready", "fallback": "RollcallReady", "takeover": true },
        "debounce": { "quiet": "200ms", "cap": "2s" },
        "settle": "6s",
        "evidence": "kopf",
        "ownStatus": "ignore",
        "proof": "children.size() == parent.spec.size",
        "hold": "3s",
        "availability": "strict",
        "grace": "4s",
        "limits": { "pending": "5m", "progress": "7m", "terminating": "6m", "deadline": "1h" },
        "observedGeneration": "write",
        "mode": "shadow",
    })
}

fn full_record() -> Value {
    json!({
        "parent": { "group": "example.com", "kind": "Database", "namespace": "shop", "name": "orders" },
        "outcomes": [{
            "group": "batch", "kind": "Job", "namespace": "shop", "name": "migrate-1", "slot": "migrate-", "uid": "u",
            "created": "2026-01-01T00:00:00Z", "resourceVersion": "7", "labels": { "a": "b" }, "generation": 2,
            "outcome": "Failed", "reason": "BackoffLimitExceeded", "heard": true, "discarded": ["v"],
        }],
    })
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

fn round_trip<T: DeserializeOwned + Serialize>(value: &Value) -> Value {
    serde_json::to_value(read::<T>(value).unwrap()).unwrap()
}

/// Paths of all objects inside a value that are no free maps of labels.
fn object_paths(value: &Value, at: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            paths.push(at.to_owned());
            let fixed = map.iter().filter(|(key, _)| !is_free_map(key));
            for (key, value) in fixed {
                object_paths(value, &format!("{at}/{key}"), paths);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                object_paths(value, &format!("{at}/{index}"), paths);
            }
        }
        _ => {}
    }
}

fn is_free_map(key: &str) -> bool {
    matches!(key, "matchLabels" | "labels")
}

#[test]
fn a_policy_that_names_only_its_parent_has_these_defaults() {
    let minimal = round_trip::<ReadinessPolicySpec>(&json!({ "parent": { "kind": "Database" } }));
    assert_eq!(
        minimal,
        json!({
            "parent": { "kind": "Database" },
            "condition": { "type": "Ready", "takeover": false },
            "debounce": { "quiet": "100ms", "cap": "1s" },
            "settle": "5s", "evidence": "auto", "hold": "0s", "availability": "tolerant", "grace": "0s", "limits": {},
            "observedGeneration": "auto", "mode": "write",
        })
    );
    let part = json!({ "parent": { "kind": "D" }, "debounce": { "quiet": "1ms" }, "condition": { "takeover": true } });
    let part = round_trip::<ReadinessPolicySpec>(&part);
    assert_eq!(part["debounce"], json!({ "quiet": "1ms", "cap": "1s" }));
    assert_eq!(part["condition"], json!({ "type": "Ready", "takeover": true }));
    let child = json!({ "parent": { "kind": "D" }, "children": [{ "kind": { "kind": "Pod" } }] });
    let child = round_trip::<ReadinessPolicySpec>(&child);
    assert_eq!(child["children"], json!([{ "kind": { "kind": "Pod" }, "role": "critical" }]));
}

#[test]
fn all_that_can_be_said_is_read_and_written_as_it_was() {
    assert_eq!(round_trip::<ReadinessPolicySpec>(&full_policy()), full_policy());
    assert_eq!(round_trip::<ReadinessRecordSpec>(&full_record()), full_record());
    assert_eq!(round_trip::<ReadinessGroupSpec>(&full_group()), full_group());
    let least = json!({ "parent": { "kind": "Database", "name": "orders" }, "outcomes": [] });
    assert_eq!(round_trip::<ReadinessRecordSpec>(&least), least);
}

#[test]
fn an_unknown_field_is_refused_at_every_depth() {
    fn refused<T: DeserializeOwned>(full: &Value) -> usize {
        let mut paths = Vec::new();
        object_paths(full, "", &mut paths);
        for path in &paths {
            let mut changed = full.clone();
            changed.pointer_mut(path).unwrap()["settel"] = json!(1);
            let error = read::<T>(&changed).err().unwrap_or_default();
            assert!(error.contains("unknown field `settel`"), "{path}: {error}");
        }
        paths.len()
    }
    assert_eq!(refused::<ReadinessPolicySpec>(&full_policy()), 18);
    assert_eq!(refused::<ReadinessRecordSpec>(&full_record()), 3);
    assert_eq!(refused::<ReadinessGroupSpec>(&full_group()), 14);
}

#[test]
fn a_word_of_a_closed_set_is_read_in_its_own_spelling_only() {
    let sets: [(&str, &[&str]); 9] = [
        ("/mode", &["write", "shadow"]),
        ("/evidence", &["auto", "kopf", "own"]),
        ("/ownStatus", &["failures", "ignore"]),
        ("/observedGeneration", &["auto", "write", "never"]),
        ("/children/0/role", &["critical", "optional"]),
        ("/children/0/afterDeletion", &["remember", "rememberGeneration", "forget"]),
        ("/children/0/ready/profile", &["kstatus", "flux", "argocd"]),
        ("/parent/selector/matchExpressions/0/operator", &["In", "NotIn", "Exists", "DoesNotExist"]),
        ("/children/0/quorum", &["all", "80%", "2"]),
    ];
    for (path, words) in sets {
        let with = |word: &str| {
            let mut policy = full_policy();
            *policy.pointer_mut(path).unwrap() = word.into();
            policy
        };
        for word in words {
            assert_eq!(round_trip::<ReadinessPolicySpec>(&with(word)), with(word), "{path}");
        }
        if !path.ends_with("quorum") {
            assert!(read::<ReadinessPolicySpec>(&with("WRITE")).is_err(), "{path}");
        }
    }
    for word in ["Running", "Complete", "Failed", "Unseen"] {
        let mut record = full_record();
        record["outcomes"][0]["outcome"] = word.into();
        assert_eq!(round_trip::<ReadinessRecordSpec>(&record), record);
    }
}

#[test]
fn a_quorum_is_a_number_or_a_text() {
    let with = |quorum: Value| {
        let mut policy = full_policy();
        policy["children"][0]["quorum"] = quorum;
        read::<ReadinessPolicySpec>(&policy).map(|spec| spec.children[0].quorum.clone())
    };
    assert_eq!(with(json!(2)), Ok(Some("2".to_owned())));
    assert_eq!(with(json!("50%")), Ok(Some("50%".to_owned())));
    assert_eq!(with(Value::Null), Ok(None));
    assert!(with(json!(true)).unwrap_err().contains("all, a number, or a percentage"));
    assert!(with(json!(1.5)).is_err());
}

fn schema(crd: impl Serialize) -> Value {
    let crd = serde_json::to_value(crd).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// Every field of a schema, with what is said of it.
fn schema_fields(schema: &Value, at: &str, fields: &mut Vec<(String, Value)>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}/{name}");
        fields.push((path.clone(), field.clone()));
        schema_fields(field, &path, fields);
        schema_fields(&field["items"], &format!("{path}/0"), fields);
    }
}

fn all_fields(crd: impl Serialize) -> Vec<(String, Value)> {
    let mut fields = Vec::new();
    schema_fields(&schema(crd), "", &mut fields);
    fields
}

/// A group that says everything that can be said, in a member that says more than the rules of the schema allow.
fn full_group() -> Value {
    let flux = json!({ "name": "shop", "namespace": "flux-system" });
    let selector = json!({
        "matchLabels": { "a": "b" },
        "matchExpressions": [{ "key": "c", "operator": "In", "values": ["d"] }],
    });
    json!({
        "members": [{
            "kinds": [{ "group": "apps", "kind": "Deployment" }],
            "category": "all",
            "namespaces": ["shop"],
            "labels": { "a": "b" },
            "helmRelease": "shop",
            "application": "shop",
            "kustomization": flux,
            "applySet": "applyset-x-v1",
            "inventory": "fleet_shop",
            "objects": [{ "apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web" }],
            "expect": { "min": 1, "max": 3, "cel": "parent.spec.size" },
            "role": "optional",
            "afterDeletion": "remember",
            "ignore": { "selector": selector },
            "quorum": "80%",
            "ready": {
                "cel": { "current": "a", "inProgress": "b", "failed": "c" },
                "lua": "return {}", "profile": "argocd", "rules": "argocd-cm",
            },
        }],
        "after": [{ "name": "base" }],
        "debounce": { "quiet": "200ms", "cap": "2s" },
        "settle": "5s",
        "hold": "0s",
        "grace": "0s",
        "availability": "tolerant",
        "limits": { "pending": "1m", "progress": "1m", "terminating": "1m", "deadline": "1m" },
    })
}

#[test]
fn the_schema_has_the_fields_that_are_read_and_no_others() {
    for (fields, full) in [
        (all_fields(ReadinessPolicy::crd()), full_policy()),
        (all_fields(ReadinessRecord::crd()), full_record()),
        (all_fields(ReadinessGroup::crd()), full_group()),
    ] {
        for (path, _) in &fields {
            assert!(full.pointer(path).is_some(), "{path} is in the schema and not in the example");
        }
        let known: BTreeSet<_> = fields.iter().map(|(path, _)| path.as_str()).collect();
        let mut objects = Vec::new();
        object_paths(&full, "", &mut objects);
        for object in objects {
            for key in full.pointer(&object).unwrap().as_object().unwrap().keys() {
                assert!(
                    known.contains(format!("{object}/{key}").as_str()),
                    "{object}/{key} is not in the schema"
                );
            }
        }
    }
}

#[test]
fn every_field_of_the_schema_says_what_it_is_and_is_bounded() {
    for (path, field) in [all_fields(ReadinessPolicy::crd()), all_fields(ReadinessRecord::crd())].concat() {
        assert!(field["description"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
        let bounded = |keys: &[&str]| keys.iter().any(|key| !field[*key].is_null());
        match field["type"].as_str() {
            Some("string") => {
                assert!(bounded(&["maxLength", "enum", "format"]) || path.contains("names"), "{path}");
            }
            Some("array") => assert!(bounded(&["maxItems"]), "{path}"),
            _ => {}
        }
    }
}

#[test]
fn the_defaults_of_the_schema_are_those_of_the_reader() {
    let minimal = round_trip::<ReadinessPolicySpec>(&json!({ "parent": { "kind": "D" } }));
    let mut compared = 0;
    for (path, field) in all_fields(ReadinessPolicy::crd()) {
        if let Some(default) = field.get("default").filter(|_| minimal.pointer(&path).is_some()) {
            assert_eq!(Some(default), minimal.pointer(&path), "{path}");
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn the_resources_are_called_as_users_call_them() {
    let crds = [
        serde_json::to_value(ReadinessPolicy::crd()),
        serde_json::to_value(ReadinessGroup::crd()),
        serde_json::to_value(ReadinessRecord::crd()),
    ];
    let said = crds.map(|crd| {
        let crd = crd.unwrap();
        let spec = &crd["spec"];
        let version = &spec["versions"][0];
        let columns = version["additionalPrinterColumns"].as_array().unwrap().iter();
        let columns: Vec<_> = columns.map(|column| column["name"].as_str().unwrap()).collect();
        json!([
            crd["metadata"]["name"],
            spec["names"]["kind"],
            spec["names"]["shortNames"][0],
            spec["names"]["categories"][0],
            spec["scope"],
            version["name"],
            version["subresources"]["status"].is_object(),
            columns.join(" "),
        ])
    });
    let policies = json!([
        "readinesspolicies.rollcall.dev",
        "ReadinessPolicy",
        "rpol",
        "rollcall",
        "Cluster",
        "v1alpha1",
        true,
        "Parent Parents Ready Mode Accepted Age",
    ]);
    let records = json!([
        "readinessrecords.rollcall.dev",
        "ReadinessRecord",
        "rrec",
        "rollcall",
        "Namespaced",
        "v1alpha1",
        false,
        "Kind Of Parent Outcomes Age",
    ]);
    let groups = json!([
        "readinessgroups.rollcall.dev",
        "ReadinessGroup",
        "rgroup",
        "rollcall",
        "Namespaced",
        "v1alpha1",
        true,
        "Ready Reason Message Age",
    ]);
    assert_eq!(said, [policies, groups, records]);
}

/// The API server writes a default into what it shows of every stored group, and a version that does not know the field refuses
/// the group: during an upgrade the one before this, and on the way back.
#[test]
fn no_field_of_groups_is_given_a_value_that_the_version_before_does_not_know() {
    let schema = serde_json::to_value(ReadinessGroup::crd()).unwrap();
    let spec =
        &schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let fields = spec.as_object().unwrap().iter();
    let defaulted: Vec<&str> =
        fields.filter(|(_, field)| !field["default"].is_null()).map(|(name, _)| &**name).collect();
    assert_eq!(defaulted, ["availability", "grace", "hold", "limits", "settle"]);
}
