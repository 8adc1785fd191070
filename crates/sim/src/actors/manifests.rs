//! Manifests of the simulated objects, reduced to the fields that matter here.

use serde_json::{Value, json};

use crate::scenario::{Dice, KindDef, PARENT_LABEL};
use crate::world::{ROLLED_OUT, SLOT_LABEL, SimObjectRef, conditions_of, has_true_condition};

/// CustomResourceDefinition of a custom kind.
pub(super) fn crd_manifest(kind: &KindDef) -> Value {
    let api = &kind.api;
    let (list, keys) = if kind.atomic { ("atomic", Value::Null) } else { ("map", json!(["type"])) };
    let mut conditions = json!({
        "type": "array", "x-kubernetes-list-type": list,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["type"],
            "properties": {"type": {"type": "string"}}},
    });
    if !keys.is_null() {
        conditions["x-kubernetes-list-map-keys"] = keys;
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", api.plural, api.group)},
        "spec": {
            "group": api.group, "scope": if api.namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": api.plural, "kind": api.kind},
            "versions": [{"name": api.version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                            "properties": {"conditions": conditions}}}}}}],
        },
    })
}

/// A new object without status, of a size that is drawn.
pub(super) fn object_manifest(kind: &KindDef, place: &SimObjectRef, dice: &mut Dice) -> Value {
    let size = match kind.api.kind.as_str() {
        "Deployment" | "StatefulSet" => dice.between(1, 4),
        "Job" => i64::from(!dice.chance(10)),
        _ => dice.between(1, 100),
    };
    manifest_of_size(kind, place, size)
}

/// A new object without status, of this size. A Job of the size 0 is suspended.
pub(super) fn manifest_of_size(kind: &KindDef, place: &SimObjectRef, size: i64) -> Value {
    let api = &kind.api;
    let mut object = json!({
        "apiVersion": api.api_version(), "kind": api.kind, "metadata": {"name": place.name}, "spec": {},
    });
    if api.namespaced {
        object["metadata"]["namespace"] = json!(place.namespace);
    }
    let slot = place.name.get(place.name.len().saturating_sub(1)..);
    let pod = json!({"metadata": {"labels": {"app": "x", SLOT_LABEL: slot}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"}});
    object["spec"] = match api.kind.as_str() {
        "Deployment" | "StatefulSet" => json!({
            "replicas": size, "selector": {"matchLabels": {"app": "x"}}, "serviceName": "x",
            "template": pod,
        }),
        "Job" => {
            let mut pod = pod;
            pod["spec"]["restartPolicy"] = json!("Never");
            json!({"template": pod, "suspend": size == 0})
        }
        _ => json!({ "size": size }),
    };
    if api.kind == "Deployment"
        && let Some(spec) = object["spec"].as_object_mut()
    {
        spec.remove("serviceName");
    }
    object
}

/// Makes an object a child of `parent`: by ownerReference and by label, as operators do.
pub(super) fn add_owner(object: &mut Value, kind: &KindDef, parent: &Value) {
    let meta = &parent["metadata"];
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": kind.api.api_version(), "kind": kind.api.kind, "name": meta["name"], "uid": meta["uid"],
    }]);
    object["metadata"]["labels"] = json!({ PARENT_LABEL: meta["name"] });
}

/// A new spec for a leaf.
pub(super) fn respec_patch(kind: &str, dice: &mut Dice) -> Value {
    match kind {
        "Deployment" | "StatefulSet" => json!({"spec": {"replicas": dice.between(0, 5)}}),
        "Job" => json!({"spec": {"suspend": dice.chance(30)}}),
        _ => json!({"spec": {"size": dice.between(1, 1_000), "suspend": dice.chance(10)}}),
    }
}

/// Returns `true` if a patch with this status would change nothing.
pub(super) fn is_same_status(status: &Value, held: &Value) -> bool {
    let fields = status.as_object().into_iter().flatten();
    fields.into_iter().all(|(key, value)| held[key] == *value)
}

fn workload_status(object: &Value, ready: i64, observed: bool, failed: bool) -> Value {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = ready.clamp(0, wanted);
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
    let mut status = json!({
        "observedGeneration": if observed { generation } else { generation - 1 },
        "replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready,
    });
    if object["kind"] == "StatefulSet" {
        status["currentRevision"] = json!("r");
        status["updateRevision"] = json!("r");
    }
    let progressing =
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    status["conditions"] = match &object["kind"] {
        kind if kind != "Deployment" => Value::Null,
        _ if failed => progressing,
        _ if tells_rollouts(object) => rollout_conditions(object, ready, wanted),
        _ => Value::Null,
    };
    status
}

/// Makes the controller of a Deployment tell of its rollouts by conditions, as a real one does.
pub(super) fn let_tell_rollouts(object: &mut Value) {
    object["spec"]["revisionHistoryLimit"] = json!(10);
}

fn tells_rollouts(object: &Value) -> bool {
    !object["spec"]["revisionHistoryLimit"].is_null()
}

/// The conditions of a Deployment that may do without one pod. A rollout that has ended stays so: no template changes here.
fn rollout_conditions(object: &Value, ready: i64, wanted: i64) -> Value {
    let has_ended = conditions_of(&object["status"]).iter().any(|c| c["reason"] == ROLLED_OUT);
    let reason = if ready == wanted || has_ended { ROLLED_OUT } else { "ReplicaSetUpdated" };
    let available = if ready + 1 >= wanted { "True" } else { "False" };
    json!([
        {"type": "Progressing", "status": "True", "reason": reason},
        {"type": "Available", "status": available, "reason": "MinimumReplicasAvailable"},
    ])
}

/// Status of a workload of whose pods so many are away; none for what is no workload.
pub(super) fn drained_status(object: &Value, away: i64, observed: bool) -> Option<Value> {
    let wanted = object["spec"]["replicas"].as_i64()?;
    Some(workload_status(object, wanted - away, observed, false))
}

fn job_status(object: &Value, ends: Option<&str>) -> Option<Value> {
    let over = ["Complete", "Failed"].iter().any(|kind| has_true_condition(&object["status"], kind));
    if over || object["spec"]["suspend"] == true {
        return None;
    }
    let start = json!("2027-01-15T08:00:00Z");
    Some(match ends {
        None => json!({"startTime": start, "active": 1}),
        Some("Complete") => {
            json!({"startTime": start, "active": null, "succeeded": 1, "completionTime": start,
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": start},
                {"type": "Complete", "status": "True", "lastTransitionTime": start}]})
        }
        Some(_) => json!({"startTime": start, "active": null, "failed": 1, "conditions": [
                {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": start},
                {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": start}]}),
    })
}

fn widget_status(object: &Value, condition: Option<&str>) -> Value {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
    let conditions =
        condition.map_or(Value::Null, |kind| json!([{"type": kind, "status": "True", "reason": "Because"}]));
    json!({"observedGeneration": generation, "conditions": conditions})
}

/// Returns a random new status; none for an object that has finished.
pub(super) fn random_status(kind: &str, object: &Value, dice: &mut Dice) -> Option<Value> {
    let ready = dice.chance(55);
    match kind {
        "Deployment" | "StatefulSet" => {
            let count = if ready { 99 } else { dice.between(0, 4) };
            let (late, failed) = (dice.chance(10), !ready && dice.chance(20));
            Some(workload_status(object, count, !late, failed))
        }
        "Job" => {
            let failed = dice.chance(30);
            job_status(object, ready.then_some(if failed { "Failed" } else { "Complete" }))
        }
        _ => {
            let others = [Some("Reconciling"), Some("Stalled"), None];
            let condition = if ready { Some("Ready") } else { dice.pick(&others).copied().flatten() };
            Some(widget_status(object, condition))
        }
    }
}

/// Returns a ready status, if the object can become ready.
pub(super) fn ready_status(kind: &str, object: &Value) -> Option<Value> {
    match kind {
        "Deployment" | "StatefulSet" => Some(workload_status(object, 99, true, false)),
        "Job" => job_status(object, Some("Complete")),
        _ => Some(widget_status(object, Some("Ready"))),
    }
}

/// Returns the status of an object that is under way, if it can be.
pub(super) fn unready_status(kind: &str, object: &Value) -> Option<Value> {
    match kind {
        "Deployment" | "StatefulSet" => Some(workload_status(object, 0, true, false)),
        "Job" => job_status(object, None),
        _ => Some(widget_status(object, Some("Reconciling"))),
    }
}

/// Returns the status of an object that has failed, if it can fail; a StatefulSet loses its pods.
pub(super) fn failed_status(kind: &str, object: &Value) -> Option<Value> {
    match kind {
        "Deployment" | "StatefulSet" => Some(workload_status(object, 0, true, true)),
        "Job" => job_status(object, Some("Failed")),
        _ => Some(widget_status(object, Some("Stalled"))),
    }
}
