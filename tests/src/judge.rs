//! An independent readiness check that shares nothing with Rollcall's rules: the plainest reading of each kind's API.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::objects::condition;

/// Returns `true` if a child, in the state of one moment, is certainly ready.
pub fn ready(object: &Value) -> Result<bool> {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return Ok(false);
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    let count = |of: &Value| of.as_i64().unwrap_or(0);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let told = status["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64();
    Ok(match object["kind"].as_str().unwrap_or_default() {
        "Deployment" => {
            let all = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
            told && all.iter().all(|field| count(&status[field]) == wanted)
        }
        "StatefulSet" => {
            let all = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
            told && all.iter().all(|field| count(&status[field]) == wanted)
        }
        "ReplicaSet" => told && count(&status["availableReplicas"]) == wanted,
        "DaemonSet" => {
            let nodes = count(&status["desiredNumberScheduled"]);
            told && ["updatedNumberScheduled", "numberAvailable"]
                .iter()
                .all(|field| count(&status[field]) == nodes)
        }
        "Job" => is_true(object, "Complete"),
        "Pod" => is_true(object, "Ready") || status["phase"] == "Succeeded",
        "PersistentVolumeClaim" => status["phase"] == "Bound",
        _ if object["apiVersion"].as_str().is_some_and(|version| version.contains(".example.com/")) => {
            is_true(object, "Ready") && speaks_of_now(object)
        }
        kind => bail!("no naive reading of {kind}"),
    })
}

fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|entry| entry["status"] == "True")
}

fn speaks_of_now(object: &Value) -> bool {
    let observed = condition(object, "Ready").and_then(|entry| entry["observedGeneration"].as_i64());
    observed.is_none_or(|observed| Some(observed) == object["metadata"]["generation"].as_i64())
}
