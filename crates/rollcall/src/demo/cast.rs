//! Who plays: a custom resource `Shop` over a `Database`, workloads below both, and two policies.

use api::ReadinessPolicy;
use kube::CustomResourceExt;
use serde_json::{Value, json};

/// One object of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// `apiVersion`.
    pub(super) api: &'static str,
    /// Kind.
    pub(super) kind: &'static str,
    /// Name.
    pub(super) name: &'static str,
}

pub(super) const SHOP: Part = Part { api: "example.com/v1", kind: "Shop", name: "books" };
pub(super) const DATABASE: Part = Part { api: "example.com/v1", kind: "Database", name: "books-db" };
pub(super) const WEB: Part = Part { api: "apps/v1", kind: "Deployment", name: "books-web" };
pub(super) const MEDIA: Part = Part { api: "v1", kind: "PersistentVolumeClaim", name: "media" };
pub(super) const POD: Part = Part { api: "v1", kind: "Pod", name: "books-db-0" };
pub(super) const JOB: Part = Part { api: "batch/v1", kind: "Job", name: "books-db-migrate" };

/// Somebody's finalizer.
pub(super) const FINALIZER: &str = "example.org/backup";
/// Where a Kopf operator notes what it has handled.
pub(super) const MARK: &str = "kopf.zalando.org/last-handled-configuration";

/// Where everything plays.
pub(super) const NAMESPACE: &str = "default";

/// The kinds that no Kubernetes has from the start, and the policies over them.
pub(super) fn scenery() -> anyhow::Result<Vec<Value>> {
    Ok(vec![
        serde_json::to_value(ReadinessPolicy::crd())?,
        definition("Shop", "shops"),
        definition("Database", "databases"),
        shops(),
        databases(),
    ])
}

/// A definition as operators ship it: nothing in it speaks of readiness.
fn definition(kind: &str, plural: &str) -> Value {
    let text = json!({ "type": "string" });
    let condition = json!({
        "type": "object", "required": ["type", "status"],
        "properties": {
            "type": text, "status": text, "reason": text, "message": text,
            "lastTransitionTime": { "type": "string", "format": "date-time" },
            "observedGeneration": { "type": "integer", "format": "int64" },
        },
    });
    let conditions = json!({
        "type": "array", "items": condition,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "status": { "type": "object", "properties": { "conditions": conditions } },
        } } },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
        },
    })
}

/// Shorter spans than the defaults, so that nobody has to wait ten minutes for something to be stuck.
fn shops() -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "shops" },
        "spec": {
            "parent": { "group": "example.com", "kind": "Shop" },
            "children": [
                { "kind": { "group": "apps", "kind": "Deployment" } },
                { "kind": { "group": "example.com", "kind": "Database" } },
                { "kind": { "kind": "PersistentVolumeClaim" }, "expect": { "min": 0 } },
            ],
            "settle": "1s", "hold": "1s", "limits": { "terminating": "3s" },
        },
    })
}

fn databases() -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "databases" },
        "spec": {
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [
                { "kind": { "kind": "Pod" } },
                { "kind": { "group": "batch", "kind": "Job" }, "expect": { "min": 0 } },
            ],
            "settle": "500ms",
        },
    })
}

impl Part {
    /// Its manifest.
    pub(super) fn manifest(self, spec: &Value, status: &Value) -> Value {
        json!({
            "apiVersion": self.api, "kind": self.kind,
            "metadata": { "name": self.name, "namespace": NAMESPACE }, "spec": spec, "status": status,
        })
    }
}

/// Names an owner.
pub(super) fn owned_by(owner: Part, uid: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{
        "apiVersion": owner.api, "kind": owner.kind, "name": owner.name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }] } })
}

/// What the Deployment's controller says with so many of three pods up, at this generation.
pub(super) fn web_status(generation: i64, up: i64) -> Value {
    let available = if up == 3 { "True" } else { "False" };
    json!({
        "observedGeneration": generation, "replicas": 3, "updatedReplicas": 3,
        "readyReplicas": up, "availableReplicas": up, "unavailableReplicas": 3 - up,
        "conditions": [
            { "type": "Available", "status": available },
            { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        ],
    })
}

/// What the kubelet says of a pod whose one container is ready, or waits for this reason.
pub(super) fn pod_status(phase: &str, waiting: Option<&str>) -> Value {
    let ready = if waiting.is_none() { "True" } else { "False" };
    let state = match waiting {
        None => json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } }),
        Some(reason) => json!({ "waiting": { "reason": reason } }),
    };
    json!({
        "phase": phase,
        "conditions": [
            { "type": "PodScheduled", "status": "True" },
            { "type": "Ready", "status": ready },
        ],
        "containerStatuses": [{ "name": "db", "ready": waiting.is_none(), "restartCount": 0, "state": state }],
    })
}

/// What the Job controller says of a Job that runs, or is through.
pub(super) fn job_status(through: bool) -> Value {
    let start = "2026-01-01T00:00:00Z";
    if !through {
        return json!({ "startTime": start, "active": 1 });
    }
    json!({
        "startTime": start, "completionTime": start, "active": null, "succeeded": 1,
        "conditions": [
            { "type": "SuccessCriteriaMet", "status": "True" },
            { "type": "Complete", "status": "True" },
        ],
    })
}
