//! Manifests of the crowd: its policies, and its children in each state.

use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::crowd_fate::{ChildState, REPLICAS};
use super::crowd_member::CrowdMember;
use super::fixtures::{
    DemoObject, database_policy, demo_crd, handled_annotations, job_status, pod_status, shop_policy,
};

/// Label by which groups find their members.
const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";

/// Returns the CRDs and policies that the crowd needs.
pub(super) fn crowd_setup() -> anyhow::Result<Vec<Value>> {
    let policy = |name: &str, spec: Value| {
        json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": name }, "spec": spec,
        })
    };
    let parent = |kind: &str| json!({ "group": "example.com", "kind": kind });
    // Not every shop of the crowd has a database.
    let mut shops = shop_policy();
    shops["spec"]["children"][1]["expect"] = json!({ "min": 0 });
    Ok(vec![
        serde_json::to_value(api::ReadinessPolicy::crd())?,
        serde_json::to_value(api::ReadinessGroup::crd())?,
        serde_json::to_value(api::ReadinessRecord::crd())?,
        demo_crd("Shop", "shops"),
        demo_crd("Database", "databases"),
        demo_crd("Cache", "caches"),
        demo_crd("Pipeline", "pipelines"),
        shops,
        database_policy(),
        policy(
            "caches",
            json!({
                "parent": parent("Cache"), "mode": "shadow", "settle": "1s",
                "children": [{ "kind": { "group": "apps", "kind": "StatefulSet" } }],
            }),
        ),
        policy(
            "pipelines",
            json!({
                "parent": parent("Pipeline"), "settle": "1s",
                "children": [{ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" }],
            }),
        ),
    ])
}

/// Returns the parent's manifest. Its operator, written with Kopf, says by an annotation which spec it has handled.
pub(super) fn parent_manifest(member: &CrowdMember, is_handled: bool) -> Value {
    let parent = member.parent_object();
    if parent.kind == "ReadinessGroup" {
        let labels = json!({ (PART_OF_LABEL): parent.name });
        let deployments = json!([{ "group": "apps", "kind": "Deployment" }]);
        return parent
            .to_manifest(&json!({ "members": [{ "kinds": deployments, "labels": labels }] }), &Value::Null);
    }
    let mut manifest = parent.to_manifest(&json!({ "version": "v2" }), &Value::Null);
    let (version, generation) = if is_handled { ("v2", 1) } else { ("v1", 0) };
    manifest["metadata"]["annotations"] = handled_annotations(&json!({ "version": version }), generation);
    manifest
}

/// Returns the manifest of the acting child in a state.
pub(super) fn child_manifest(member: &CrowdMember, state: ChildState) -> Value {
    let child = member.child_object();
    let spec = match child.kind {
        "Deployment" | "StatefulSet" => json!({ "replicas": REPLICAS }),
        "Job" => json!({ "completions": 1, "parallelism": 1, "suspend": state == ChildState::Suspended }),
        _ => json!({}),
    };
    let mut manifest = child.to_manifest(&spec, &child_status(child, state));
    if member.parent_object().kind == "ReadinessGroup" {
        manifest["metadata"]["labels"] = json!({ (PART_OF_LABEL): member.parent_object().name });
    }
    manifest
}

/// Returns the status that the child's controller writes in a state.
pub(super) fn child_status(child: DemoObject<'_>, state: ChildState) -> Value {
    let ready = match state {
        ChildState::Starting(ready) => ready,
        ChildState::Failed => 0,
        _ => REPLICAS,
    };
    match (child.kind, state) {
        ("Pod", ChildState::Failed) => pod_status("Running", Some("CrashLoopBackOff")),
        ("Pod", ChildState::Starting(_)) => pod_status("Pending", Some("ContainerCreating")),
        ("Pod", ChildState::Lost) => pod_status("Unknown", None),
        ("Pod", _) => pod_status("Running", None),
        ("Job", ChildState::Suspended) => json!({}),
        ("Job", ChildState::Failed) => failed_job_status(),
        ("Job", state) => job_status(!matches!(state, ChildState::Starting(_))),
        ("StatefulSet", _) => stateful_set_status(ready),
        (_, state) => deployment_status(ready, state == ChildState::Failed),
    }
}

fn failed_job_status() -> Value {
    let start = "2026-01-01T00:00:00Z";
    let entry = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        })
    };
    json!({ "startTime": start, "failed": 7, "conditions": [entry("FailureTarget"), entry("Failed")] })
}

fn stateful_set_status(ready: i64) -> Value {
    json!({
        "observedGeneration": 1, "replicas": REPLICAS, "readyReplicas": ready, "availableReplicas": ready,
        "updatedReplicas": REPLICAS, "currentRevision": "a", "updateRevision": "a",
    })
}

fn deployment_status(ready: i64, has_failed: bool) -> Value {
    let progressing = if has_failed {
        json!({ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" })
    } else {
        json!({ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" })
    };
    let available = if ready == REPLICAS { "True" } else { "False" };
    json!({
        "observedGeneration": 1, "replicas": REPLICAS, "updatedReplicas": REPLICAS,
        "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": REPLICAS - ready,
        "conditions": [{ "type": "Available", "status": available }, progressing],
    })
}
