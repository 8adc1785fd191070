//! Objects of the demo: a custom resource `Shop` that owns a `Database`, workloads of both, and two policies.

use api::ReadinessPolicy;
use kube::CustomResourceExt;
use serde_json::{Value, json};

/// One object of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DemoObject<'n> {
    /// `apiVersion`.
    pub(super) api: &'static str,
    /// Kind.
    pub(super) kind: &'static str,
    /// Namespace.
    pub(super) namespace: &'n str,
    /// Name.
    pub(super) name: &'n str,
}

pub(super) const SHOP: DemoObject<'_> = of_the_story("example.com/v1", "Shop", "books");
pub(super) const DATABASE: DemoObject<'_> = of_the_story("example.com/v1", "Database", "books-db");
pub(super) const WEB: DemoObject<'_> = of_the_story("apps/v1", "Deployment", "books-web");
pub(super) const MEDIA: DemoObject<'_> = of_the_story("v1", "PersistentVolumeClaim", "media");
pub(super) const POD: DemoObject<'_> = of_the_story("v1", "Pod", "books-db-0");
pub(super) const JOB: DemoObject<'_> = of_the_story("batch/v1", "Job", "books-db-migrate");

/// A finalizer of another controller.
pub(super) const BACKUP_FINALIZER: &str = "example.org/backup";
/// Annotation in which a Kopf operator stores the configuration it last handled.
const KOPF_LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";
/// Annotation in which one that imports `rollcall_kopf.py` keeps how the handlers of a generation ended.
const KOPF_LAST_OUTCOME: &str = "kopf.zalando.org/last-outcome";

/// Namespace of all objects of the story.
pub(super) const DEMO_NAMESPACE: &str = "default";

const fn of_the_story(api: &'static str, kind: &'static str, name: &'static str) -> DemoObject<'static> {
    DemoObject { api, kind, namespace: DEMO_NAMESPACE, name }
}

/// Annotations of a parent whose operator has handled this spec, which is that of this generation, with success.
pub(super) fn handled_annotations(spec: &Value, generation: i64) -> Value {
    let outcome = json!({ "generation": generation, "failed": {} });
    json!({ (KOPF_LAST_HANDLED): json!({ "spec": spec }).to_string(), (KOPF_LAST_OUTCOME): outcome.to_string() })
}

/// Returns the CRDs and the policies that the story needs.
pub(super) fn story_setup() -> anyhow::Result<Vec<Value>> {
    Ok(vec![
        serde_json::to_value(ReadinessPolicy::crd())?,
        demo_crd("Shop", "shops"),
        demo_crd("Database", "databases"),
        shop_policy(),
        database_policy(),
    ])
}

/// Returns a CRD as operators ship it: it declares nothing about readiness.
pub(super) fn demo_crd(kind: &str, plural: &str) -> Value {
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

/// Returns the Shop policy. Its limits are shorter than the defaults, so that nothing takes ten minutes to be stuck.
pub(super) fn shop_policy() -> Value {
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

/// Returns the Database policy.
pub(super) fn database_policy() -> Value {
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

impl DemoObject<'_> {
    /// Returns the object's manifest.
    pub(super) fn to_manifest(self, spec: &Value, status: &Value) -> Value {
        json!({
            "apiVersion": self.api, "kind": self.kind,
            "metadata": { "name": self.name, "namespace": self.namespace }, "spec": spec, "status": status,
        })
    }
}

/// Returns a merge patch that adds an ownerReference.
pub(super) fn owner_patch(owner: DemoObject<'_>, uid: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{
        "apiVersion": owner.api, "kind": owner.kind, "name": owner.name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }] } })
}

/// Returns the status that the Deployment controller writes with `up` of three pods ready at this generation.
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

/// Returns the status that the kubelet writes for a pod whose one container is ready or waits for this reason.
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

/// Returns the status that the Job controller writes for a running or complete Job.
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
