//! `doctor` looks at the parents that policies choose, and at no others.

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, own_definition, policy};

/// A Database in a namespace of this tier, whose `Ready` another field manager has.
fn foreign_database(cluster: &LiveCluster, tier: &str) {
    let labels = json!({ "tier": tier });
    cluster.create(
        &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": tier, "labels": labels } }),
    );
    let mut database = custom("Database", "db");
    database["metadata"]["namespace"] = json!(tier);
    database["metadata"]["managedFields"] = json!([{ "manager": "kopf", "operation": "Update",
        "subresource": "status", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:status": { "f:conditions": { "k:{\"type\":\"Ready\"}": {} } } } }]);
    database["status"]["conditions"] = json!([{ "type": "Ready", "status": "True", "reason": "Created",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    cluster.create(&database);
}

async fn diagnose(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, Value, String) {
    let mut command = cluster.bare();
    command.args(["doctor", "-o", "json"]).args(args);
    let (code, out, err) = done(command).await;
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")), err)
}

/// The objects that this check finds something about.
fn found(findings: &Value, check: &str) -> Vec<String> {
    let of_check = findings.as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    of_check.map(|finding| finding["object"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_looks_at_the_namespaces_that_a_policy_chooses() {
    let cluster = LiveCluster::start("doctor-namespaces").await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    let mut gold = policy("Database", "", "Pod");
    gold["spec"]["parent"]["namespaceSelector"] = json!({ "matchLabels": { "tier": "gold" } });
    gold["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True", "reason": "Judging",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    cluster.create(&gold);
    for tier in ["gold", "tin"] {
        foreign_database(&cluster, tier);
    }
    for (args, code, expected) in [
        (&[][..], 1, &["Database gold/db"][..]),
        (&["-n", "gold"], 1, &["Database gold/db"]),
        (&["-n", "tin"], 0, &[]),
    ] {
        let (ended, findings, err) = diagnose(&cluster, args).await;
        assert_eq!(ended, Some(code), "{args:?}: {findings}{err}");
        assert_eq!(found(&findings, "condition-owner"), *expected, "{args:?}: {findings}");
        assert_eq!(found(&findings, "orphaned-entry"), [""; 0], "{args:?}: {findings}");
    }
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List);
    cluster.server.faults().add(forbidden.on_kind("", "namespaces"));
    let (_, findings, err) = diagnose(&cluster, &[]).await;
    assert_eq!(found(&findings, "condition-owner"), [""; 0], "{findings}");
    assert!(err.contains("not read: Namespace: you may not list it"), "{err}");
}
