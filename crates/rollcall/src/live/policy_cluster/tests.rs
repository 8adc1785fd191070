//! Tests of gathering and aggregation, written as scenarios.

use super::*;
use crate::limits::STUCK_AFTER;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use watcher::wire::ChildObject;

fn object(value: &Value) -> ParentObject {
    let text = RawValue::from_string(value.to_string()).unwrap();
    ParentObject { child: ChildObject::from_raw(&text), text }
}

fn cluster(policies: Vec<(String, CompiledPolicy)>) -> PolicyCluster {
    let config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    PolicyCluster::of_policies(kube::Client::try_from(config).unwrap(), policies, None)
}

fn policy(child: &Value) -> Vec<(String, CompiledPolicy)> {
    let spec = json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [child] });
    vec![("p".to_owned(), policy::compile(&serde_json::from_value(spec).unwrap(), STUCK_AFTER).unwrap())]
}

const NOW: Time = Time(1_767_225_600_000);

fn database(status: &Value) -> ParentObject {
    object(&json!({
        "apiVersion": "example.com/v1", "kind": "Database", "status": status,
        "metadata": { "name": "db", "namespace": "shop", "uid": "d", "generation": 1, "creationTimestamp": "2025-12-31T00:00:00Z" },
    }))
}

#[tokio::test]
async fn without_a_policy_an_object_that_owns_nothing_is_judged_by_what_it_says() {
    let mut cluster = cluster(Vec::new());
    cluster
        .add_target_kind(&KindName { group: "example.com".to_owned(), kind: "Database".to_owned() })
        .unwrap();
    let ready = database(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
    let silent = database(&json!(null));
    for (parent, verdict) in [(ready, "Ready"), (silent, "Unknown")] {
        assert_eq!(cluster.build_trees(&[&parent], NOW)[0].verdict, verdict);
    }
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_never_makes_a_parent_ready() {
    let mut cluster = cluster(Vec::new());
    cluster
        .add_target_kind(&KindName { group: "example.com".to_owned(), kind: "Database".to_owned() })
        .unwrap();
    let parent = database(&json!({}));
    let job = object(&json!({
        "apiVersion": "batch/v1", "kind": "Job", "status": { "conditions": [{ "type": "Complete", "status": "True" }] },
        "metadata": { "name": "seed", "namespace": "shop", "uid": "j", "creationTimestamp": "2025-12-31T00:00:00Z",
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "d" }] },
    }));
    let objects = [&parent, &job];
    assert_eq!(cluster.build_trees(&objects, NOW)[0].verdict, "Ready");
    cluster.places.hidden.insert(("apps".to_owned(), "Deployment".to_owned()));
    let tree = &cluster.build_trees(&objects, NOW)[0];
    assert_eq!((tree.verdict, tree.reason.as_str()), ("Unknown", "KindNotVisible"), "{}", tree.detail);
}

#[tokio::test]
async fn scripts_of_a_config_map_are_a_rule() {
    let script = "local hs = {}\nhs.status = 'Suspended'\nhs.message = 'asleep'\nreturn hs";
    let map = json!({ "data": { "resource.customizations.health.example.com_Part": script } });
    let child =
        json!({ "kind": { "group": "example.com", "kind": "Part" }, "ready": { "rules": "argocd-cm" } });
    let mut libraries = ClusterLibraries::default();
    libraries.add_map("argocd/argocd-cm".to_owned(), Some(&map));
    let mut cluster = cluster(policy(&child));
    cluster.policies.read_scripts(&libraries);
    let part = object(&json!({ "apiVersion": "example.com/v1", "kind": "Part",
        "metadata": { "name": "part", "namespace": "shop", "uid": "p", "creationTimestamp": "2025-12-31T00:00:00Z",
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "d" }] } }));
    let tree = &cluster.build_trees(&[&database(&json!({})), &part], NOW)[0];
    assert_eq!((tree.children[0].verdict, &*tree.children[0].detail), ("Suspended", "asleep"));
    libraries.add_map("x/empty".to_owned(), Some(&json!({})));
    assert_eq!(
        libraries.unread().collect::<Vec<_>>(),
        [("ConfigMap x/empty".to_owned(), "it holds no texts".to_owned())]
    );
}

#[tokio::test]
async fn a_job_that_is_gone_counts_as_its_record_says() {
    let child = json!({ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" });
    let cluster = cluster(policy(&child));
    let record = |outcome: &str| {
        let job = json!({ "group": "batch", "kind": "Job", "namespace": "shop", "name": "seed", "slot": "seed",
            "uid": "j", "created": "2025-12-31T00:00:00Z", "outcome": outcome });
        object(&json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessRecord",
            "metadata": { "name": "d", "namespace": "rollcall-system", "uid": "r" },
            "spec": { "outcomes": [job],
                "parent": { "group": "example.com", "kind": "Database", "namespace": "shop", "name": "db" } } }))
    };
    let parent = database(&json!({}));
    assert_eq!(cluster.build_trees(&[&parent], NOW)[0].reason.as_str(), "ChildrenMissing");
    for (outcome, verdict) in [("Complete", "Ready"), ("Failed", "Failed"), ("Unseen", "Unknown")] {
        let record = record(outcome);
        let tree = &cluster.build_trees(&[&parent, &record], NOW)[0];
        assert_eq!(tree.verdict, verdict, "{outcome}: {} {}", tree.reason.as_str(), tree.detail);
    }
}

#[tokio::test]
async fn a_workload_of_kubernetes_is_judged_by_its_own_rule() {
    let mut cluster = cluster(Vec::new());
    cluster.add_target_kind(&KindName { group: "batch".to_owned(), kind: "Job".to_owned() }).unwrap();
    let failed =
        json!({ "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }] });
    let job = object(&json!({ "apiVersion": "batch/v1", "kind": "Job", "status": failed,
        "metadata": { "name": "seed", "namespace": "shop", "uid": "j" } }));
    let tree = &cluster.build_trees(&[&job], NOW)[0];
    assert_eq!((tree.verdict, tree.stalled), ("Failed", true));
}
