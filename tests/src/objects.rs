//! Objects that operators create: workloads that kwok can run, and their owner references.

use serde_json::{Value, json};

/// A Deployment whose pods become ready.
pub fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } }, "template": template(name),
        },
    })
}

/// A StatefulSet whose pods become ready, all at once.
pub fn stateful_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": name } }, "template": template(name),
        },
    })
}

/// A Job of one pod, which completes and has no retries.
pub fn job(name: &str) -> Value {
    let mut template = template(name);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": { "backoffLimit": 0, "template": template },
    })
}

/// A standalone Pod.
pub fn pod(name: &str) -> Value {
    let template = template(name);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": template["metadata"]["labels"] }, "spec": template["spec"],
    })
}

/// A ConfigMap, which has no readiness.
pub fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": {} })
}

/// Sets the behaviour of a workload's pods: `hold`, `crash`, `flicker` or `fail`.
#[must_use]
pub fn playing(part: &str, mut workload: Value) -> Value {
    let labels = if workload["kind"] == "Pod" {
        &mut workload["metadata"]["labels"]
    } else {
        &mut workload["spec"]["template"]["metadata"]["labels"]
    };
    labels["play"] = json!(part);
    workload
}

/// Adds an ownerReference to `parent`.
#[must_use]
pub fn owned_by(parent: &Value, mut child: Value) -> Value {
    let reference = owner_reference(parent);
    if let Some(owners) = child["metadata"]["ownerReferences"].as_array_mut() {
        owners.push(reference);
    } else {
        child["metadata"]["ownerReferences"] = json!([reference]);
    }
    child
}

/// Returns the ownerReference to `parent`.
pub fn owner_reference(parent: &Value) -> Value {
    json!({
        "apiVersion": parent["apiVersion"], "kind": parent["kind"],
        "name": parent["metadata"]["name"], "uid": parent["metadata"]["uid"],
    })
}

/// Returns `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Returns the condition of this type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|entry| entry["type"] == kind)
}

fn template(name: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": name } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
    })
}
