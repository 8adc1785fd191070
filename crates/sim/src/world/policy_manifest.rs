//! A policy as the API server shows it.

use policy::{FoundPolicy, read_policy};
use readiness::Time;
use serde_json::{Value, json};
use watcher::status::time::format_seconds;

use super::policy_server::StoredPolicy;
use crate::scenario::{KindDef, PolicyDef};

/// Returns the text of a spec, as far as other releases read it: children are for the release that has it.
pub(crate) fn spec_json(spec: &PolicyDef, kinds: &[KindDef]) -> Value {
    let parent = &kinds[spec.parent].api;
    let mut condition = json!({ "type": spec.condition });
    if let Some(fallback) = spec.fallback {
        condition["fallback"] = json!(fallback);
    }
    let mode = if spec.shadow { "shadow" } else { "write" };
    json!({ "parent": { "group": parent.group, "kind": parent.kind }, "condition": condition, "mode": mode })
}

/// Returns a policy as the service reads it.
pub(crate) fn found_policy(policy: &StoredPolicy, kinds: &[KindDef]) -> FoundPolicy {
    let spec = policy.spec.as_ref().map_or_else(
        || {
            let mut broken = spec_json(&policy.stub, kinds);
            broken["settle"] = json!("soon");
            broken
        },
        |spec| spec_json(spec, kinds),
    );
    let object = &policy.object;
    let manifest = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "spec": spec,
        "metadata": {
            "name": policy.stub.name(), "uid": policy.uid.to_string(), "generation": policy.generation,
            "resourceVersion": object.version.to_string(),
            "creationTimestamp": format_seconds(Time(object.created)),
            "labels": { "release": format!("{:?}", object.selected_by).to_lowercase() },
        },
        "status": object.status,
    });
    let object = serde_json::from_str(&manifest.to_string());
    read_policy(&object.expect("invariant: a policy of the simulation is an object"))
}
