//! The subresource `scale` of workloads, as far as autoscalers and `kubectl scale` need it: a read, and a merge patch.

use serde_json::{Map, Value, json};

use super::message::StoreRequest;
use super::meta::meta_mut;
use super::patch::{self, PatchType};
use super::refusal::StoreRefusal;
use super::route::RequestTarget;

/// Returns the workload as a merge patch of its `Scale` leaves it: nothing but the number of replicas moves.
pub(super) fn patch_replicas(
    how: PatchType,
    target: &RequestTarget,
    request: &StoreRequest,
    old: &Value,
) -> Result<Value, StoreRefusal> {
    if how != PatchType::Merge {
        return Err(StoreRefusal::not_implemented(&target.describe_request()));
    }
    let patch = patch::decode_patch(request)?;
    let mut new = old.clone();
    if let Some(replicas) = patch.pointer("/spec/replicas") {
        new["spec"]["replicas"] = replicas.clone();
    }
    if let Some(version) = patch.pointer("/metadata/resourceVersion") {
        meta_mut(&mut new).insert("resourceVersion".into(), version.clone());
    }
    Ok(new)
}

/// Shows a workload as its `Scale`.
pub(super) fn to_scale(object: &Value) -> Value {
    let mut shown = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        shown.insert(field.into(), object["metadata"][field].clone());
    }
    let mut spec = Map::new();
    if let Some(replicas) = object["spec"]["replicas"].as_i64().filter(|replicas| *replicas != 0) {
        spec.insert("replicas".into(), json!(replicas));
    }
    let mut status = json!({ "replicas": object["status"]["replicas"].as_i64().unwrap_or(0) });
    let labels = object["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let selector: Vec<_> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if !selector.is_empty() {
        status["selector"] = json!(selector.join(","));
    }
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status })
}
