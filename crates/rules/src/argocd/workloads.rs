//! Workload controllers, Jobs and Pods, once they are known to convert to their Go type.

use serde_json::Value;

use super::{DEGRADED, HEALTHY, PROGRESSING, SUSPENDED, UNKNOWN, health, int, list, long, quoted, text};
use crate::PeerVerdict;
use crate::json;

fn seen(object: &Value, key: &str) -> i32 {
    int(object, &["status", key]).unwrap_or(0)
}

/// Whether the controller has seen the present generation; without an observed generation it has not.
fn observed(object: &Value) -> bool {
    generation(object) <= observed_generation(object)
}

fn generation(object: &Value) -> i64 {
    long(object, &["metadata", "generation"]).unwrap_or(0)
}

fn observed_generation(object: &Value) -> i64 {
    long(object, &["status", "observedGeneration"]).unwrap_or(0)
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == kind)
}

pub(super) fn deployment(object: &Value) -> PeerVerdict {
    if json::field(object, &["spec", "paused"]) == Ok(Some(&Value::Bool(true))) {
        return health(SUSPENDED, "Deployment is paused");
    }
    let waiting = |what: String| health(PROGRESSING, format!("Waiting for rollout to finish: {what}"));
    if !observed(object) {
        return waiting("observed deployment generation less than desired generation".to_owned());
    }
    let reason = condition(object, "Progressing").map_or("", |c| text(c, &["reason"]));
    if reason == "ProgressDeadlineExceeded" {
        let name = quoted(text(object, &["metadata", "name"]));
        return health(DEGRADED, format!("Deployment {name} exceeded its progress deadline"));
    }
    let (replicas, updated) = (seen(object, "replicas"), seen(object, "updatedReplicas"));
    let available = seen(object, "availableReplicas");
    match int(object, &["spec", "replicas"]) {
        Some(wanted) if updated < wanted => {
            waiting(format!("{updated} out of {wanted} new replicas have been updated..."))
        }
        _ if replicas > updated => {
            waiting(format!("{} old replicas are pending termination...", replicas.wrapping_sub(updated)))
        }
        _ if available < updated => {
            waiting(format!("{available} of {updated} updated replicas are available..."))
        }
        _ => health(HEALTHY, ""),
    }
}

pub(super) fn stateful_set(object: &Value) -> PeerVerdict {
    if observed_generation(object) == 0 || !observed(object) {
        return health(PROGRESSING, "Waiting for statefulset spec update to be observed...");
    }
    let wanted = int(object, &["spec", "replicas"]);
    let (ready, updated) = (seen(object, "readyReplicas"), seen(object, "updatedReplicas"));
    if let Some(wanted) = wanted
        && ready < wanted
    {
        return health(
            PROGRESSING,
            format!("Waiting for {} pods to be ready...", wanted.wrapping_sub(ready)),
        );
    }
    let strategy = text(object, &["spec", "updateStrategy", "type"]);
    let rolling = json::field(object, &["spec", "updateStrategy", "rollingUpdate"]);
    if strategy == "RollingUpdate" && matches!(rolling, Ok(Some(Value::Object(_)))) {
        let partition = int(object, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
        if let (Some(wanted), Some(partition)) = (wanted, partition)
            && updated < wanted.wrapping_sub(partition)
        {
            let wanted = wanted.wrapping_sub(partition);
            return health(
                PROGRESSING,
                format!(
                    "Waiting for partitioned roll out to finish: {updated} out of {wanted} new pods have been updated..."
                ),
            );
        }
        return health(
            HEALTHY,
            format!("partitioned roll out complete: {updated} new pods have been updated..."),
        );
    }
    if strategy == "OnDelete" {
        return health(HEALTHY, format!("statefulset has {ready} ready pods"));
    }
    let (current, target) =
        (text(object, &["status", "currentRevision"]), text(object, &["status", "updateRevision"]));
    if current != target {
        return health(
            PROGRESSING,
            format!(
                "waiting for statefulset rolling update to complete {updated} pods at revision {target}..."
            ),
        );
    }
    let replicas = seen(object, "currentReplicas");
    health(HEALTHY, format!("statefulset rolling update complete {replicas} pods at revision {current}..."))
}

pub(super) fn replica_set(object: &Value) -> PeerVerdict {
    let waiting = |what: String| health(PROGRESSING, format!("Waiting for rollout to finish: {what}"));
    if !observed(object) {
        return waiting("observed replica set generation less than desired generation".to_owned());
    }
    let failure = condition(object, "ReplicaFailure");
    if let Some(failure) = failure.filter(|c| text(c, &["status"]) == "True") {
        return health(DEGRADED, text(failure, &["message"]));
    }
    let available = seen(object, "availableReplicas");
    match int(object, &["spec", "replicas"]) {
        Some(wanted) if available < wanted => {
            waiting(format!("{available} out of {wanted} new replicas are available..."))
        }
        _ => health(HEALTHY, ""),
    }
}

pub(super) fn daemon_set(object: &Value) -> PeerVerdict {
    if !observed(object) {
        return health(
            PROGRESSING,
            "Waiting for rollout to finish: observed daemon set generation less than desired generation",
        );
    }
    let (wanted, updated) = (seen(object, "desiredNumberScheduled"), seen(object, "updatedNumberScheduled"));
    if text(object, &["spec", "updateStrategy", "type"]) == "OnDelete" {
        return health(HEALTHY, format!("daemon set {updated} out of {wanted} new pods have been updated"));
    }
    let name = quoted(text(object, &["metadata", "name"]));
    let waiting = |what: String| {
        health(PROGRESSING, format!("Waiting for daemon set {name} rollout to finish: {what}"))
    };
    let available = seen(object, "numberAvailable");
    if updated < wanted {
        return waiting(format!("{updated} out of {wanted} new pods have been updated..."));
    }
    if available < wanted {
        return waiting(format!("{available} of {wanted} updated pods are available..."));
    }
    health(HEALTHY, "")
}

/// Conditions count by being there, whatever their status, so a Job that was resumed is healthy while it runs.
pub(super) fn job(object: &Value) -> PeerVerdict {
    let (mut complete, mut suspended) = (false, false);
    let (mut failure, mut message) = (None, "");
    for condition in list(object, &["status", "conditions"]) {
        match text(condition, &["type"]) {
            "Failed" => failure = Some(text(condition, &["message"])),
            "Complete" => (complete, message) = (true, text(condition, &["message"])),
            "Suspended" => {
                (complete, message) = (true, text(condition, &["message"]));
                suspended |= text(condition, &["status"]) == "True";
            }
            _ => {}
        }
    }
    match failure {
        Some(failure) => health(DEGRADED, failure),
        None if !complete => health(PROGRESSING, message),
        None if suspended => health(SUSPENDED, ""),
        None => health(HEALTHY, message),
    }
}

pub(super) fn pod(object: &Value) -> PeerVerdict {
    let policy = restart_policy(object);
    let containers = list(object, &["status", "containerStatuses"]);
    if policy == "Always" {
        let stuck: Vec<_> =
            containers.iter().filter(|c| in_trouble(text(c, &["state", "waiting", "reason"]))).collect();
        if !stuck.is_empty() {
            let messages: Vec<_> = stuck.iter().map(|c| text(c, &["state", "waiting", "message"])).collect();
            return health(DEGRADED, messages.join(", "));
        }
    }
    let message = text(object, &["status", "message"]);
    match (text(object, &["status", "phase"]), policy) {
        ("Pending", _) | ("Running", "OnFailure" | "Never") => health(PROGRESSING, message),
        ("Succeeded", _) => health(HEALTHY, message),
        ("Failed", _) if !message.is_empty() => health(DEGRADED, message),
        ("Failed", _) => {
            let mut all = list(object, &["status", "initContainerStatuses"]).iter().chain(containers);
            health(DEGRADED, all.find_map(failure).unwrap_or_default())
        }
        ("Running", "Always") => {
            let ready = condition(object, "Ready").is_some_and(|c| text(c, &["status"]) == "True");
            let restarted = |c: &Value| {
                matches!(json::field(c, &["lastState", "terminated"]), Ok(Some(Value::Object(_))))
            };
            match (ready, containers.iter().any(restarted)) {
                (true, _) => health(HEALTHY, message),
                (false, true) => health(DEGRADED, message),
                (false, false) => health(PROGRESSING, message),
            }
        }
        _ => health(UNKNOWN, message),
    }
}

/// The Pod's policy, or what an annotation makes of it for a Pod that runs for good without saying so.
fn restart_policy(object: &Value) -> &str {
    let policy = text(object, &["spec", "restartPolicy"]);
    let annotation = |key: &str| json::string_or(object, &["metadata", "annotations", key], "");
    let ignored = annotation("argocd.argoproj.io/ignore-restart-policy") == "true";
    let hook = !annotation("argocd.argoproj.io/hook").is_empty() || !annotation("helm.sh/hook").is_empty();
    if ignored && !hook && matches!(policy, "OnFailure" | "Never") { "Always" } else { policy }
}

fn in_trouble(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

/// Why a container ended, if that is worth a word.
fn failure(container: &Value) -> Option<String> {
    let Ok(Some(Value::Object(_))) = json::field(container, &["state", "terminated"]) else { return None };
    let message = text(container, &["state", "terminated", "message"]);
    let code = int(container, &["state", "terminated", "exitCode"]).unwrap_or(0);
    if !message.is_empty() {
        return Some(message.to_owned());
    }
    if text(container, &["state", "terminated", "reason"]) == "OOMKilled" {
        return Some("OOMKilled".to_owned());
    }
    (code != 0)
        .then(|| format!("container {} failed with exit code {code}", quoted(text(container, &["name"]))))
}
