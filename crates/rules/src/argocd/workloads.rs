//! Health of workload controllers, Jobs and Pods that convert to their Go type.

use serde_json::Value;

use super::go_values::{int32_at, int64_at, list_at, quote_go, text_at};
use super::health::{DEGRADED, HEALTHY, PROGRESSING, SUSPENDED, UNKNOWN, peer_verdict};
use crate::json;
use crate::peer_verdict::PeerVerdict;

fn status_count(object: &Value, key: &str) -> i32 {
    int32_at(object, &["status", key]).unwrap_or(0)
}

/// Returns `true` if the controller has observed the current generation; without an observed generation it has not.
fn is_observed(object: &Value) -> bool {
    metadata_generation(object) <= observed_generation(object)
}

fn metadata_generation(object: &Value) -> i64 {
    int64_at(object, &["metadata", "generation"]).unwrap_or(0)
}

fn observed_generation(object: &Value) -> i64 {
    int64_at(object, &["status", "observedGeneration"]).unwrap_or(0)
}

fn find_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list_at(object, &["status", "conditions"]).iter().find(|c| text_at(c, &["type"]) == kind)
}

pub(super) fn judge_deployment(object: &Value) -> PeerVerdict {
    if json::field_at(object, &["spec", "paused"]) == Ok(Some(&Value::Bool(true))) {
        return peer_verdict(SUSPENDED, "Deployment is paused");
    }
    let waiting = |what: String| peer_verdict(PROGRESSING, format!("Waiting for rollout to finish: {what}"));
    if !is_observed(object) {
        return waiting("observed deployment generation less than desired generation".to_owned());
    }
    let reason = find_condition(object, "Progressing").map_or("", |c| text_at(c, &["reason"]));
    if reason == "ProgressDeadlineExceeded" {
        let name = quote_go(text_at(object, &["metadata", "name"]));
        return peer_verdict(DEGRADED, format!("Deployment {name} exceeded its progress deadline"));
    }
    let (replicas, updated) = (status_count(object, "replicas"), status_count(object, "updatedReplicas"));
    let available = status_count(object, "availableReplicas");
    match int32_at(object, &["spec", "replicas"]) {
        Some(wanted) if updated < wanted => {
            waiting(format!("{updated} out of {wanted} new replicas have been updated..."))
        }
        _ if replicas > updated => {
            waiting(format!("{} old replicas are pending termination...", replicas.wrapping_sub(updated)))
        }
        _ if available < updated => {
            waiting(format!("{available} of {updated} updated replicas are available..."))
        }
        _ => peer_verdict(HEALTHY, ""),
    }
}

pub(super) fn judge_stateful_set(object: &Value) -> PeerVerdict {
    if observed_generation(object) == 0 || !is_observed(object) {
        return peer_verdict(PROGRESSING, "Waiting for statefulset spec update to be observed...");
    }
    let wanted = int32_at(object, &["spec", "replicas"]);
    let (ready, updated) = (status_count(object, "readyReplicas"), status_count(object, "updatedReplicas"));
    if let Some(wanted) = wanted
        && ready < wanted
    {
        return peer_verdict(
            PROGRESSING,
            format!("Waiting for {} pods to be ready...", wanted.wrapping_sub(ready)),
        );
    }
    let strategy = text_at(object, &["spec", "updateStrategy", "type"]);
    let rolling = json::field_at(object, &["spec", "updateStrategy", "rollingUpdate"]);
    if strategy == "RollingUpdate" && matches!(rolling, Ok(Some(Value::Object(_)))) {
        let partition = int32_at(object, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
        if let (Some(wanted), Some(partition)) = (wanted, partition)
            && updated < wanted.wrapping_sub(partition)
        {
            let wanted = wanted.wrapping_sub(partition);
            return peer_verdict(
                PROGRESSING,
                format!(
                    "Waiting for partitioned roll out to finish: {updated} out of {wanted} new pods have been updated..."
                ),
            );
        }
        return peer_verdict(
            HEALTHY,
            format!("partitioned roll out complete: {updated} new pods have been updated..."),
        );
    }
    if strategy == "OnDelete" {
        return peer_verdict(HEALTHY, format!("statefulset has {ready} ready pods"));
    }
    let (current, target) =
        (text_at(object, &["status", "currentRevision"]), text_at(object, &["status", "updateRevision"]));
    if current != target {
        return peer_verdict(
            PROGRESSING,
            format!(
                "waiting for statefulset rolling update to complete {updated} pods at revision {target}..."
            ),
        );
    }
    let replicas = status_count(object, "currentReplicas");
    peer_verdict(
        HEALTHY,
        format!("statefulset rolling update complete {replicas} pods at revision {current}..."),
    )
}

pub(super) fn judge_replica_set(object: &Value) -> PeerVerdict {
    let waiting = |what: String| peer_verdict(PROGRESSING, format!("Waiting for rollout to finish: {what}"));
    if !is_observed(object) {
        return waiting("observed replica set generation less than desired generation".to_owned());
    }
    let failure = find_condition(object, "ReplicaFailure");
    if let Some(failure) = failure.filter(|c| text_at(c, &["status"]) == "True") {
        return peer_verdict(DEGRADED, text_at(failure, &["message"]));
    }
    let available = status_count(object, "availableReplicas");
    match int32_at(object, &["spec", "replicas"]) {
        Some(wanted) if available < wanted => {
            waiting(format!("{available} out of {wanted} new replicas are available..."))
        }
        _ => peer_verdict(HEALTHY, ""),
    }
}

pub(super) fn judge_daemon_set(object: &Value) -> PeerVerdict {
    if !is_observed(object) {
        return peer_verdict(
            PROGRESSING,
            "Waiting for rollout to finish: observed daemon set generation less than desired generation",
        );
    }
    let (wanted, updated) =
        (status_count(object, "desiredNumberScheduled"), status_count(object, "updatedNumberScheduled"));
    if text_at(object, &["spec", "updateStrategy", "type"]) == "OnDelete" {
        return peer_verdict(
            HEALTHY,
            format!("daemon set {updated} out of {wanted} new pods have been updated"),
        );
    }
    let name = quote_go(text_at(object, &["metadata", "name"]));
    let waiting = |what: String| {
        peer_verdict(PROGRESSING, format!("Waiting for daemon set {name} rollout to finish: {what}"))
    };
    let available = status_count(object, "numberAvailable");
    if updated < wanted {
        return waiting(format!("{updated} out of {wanted} new pods have been updated..."));
    }
    if available < wanted {
        return waiting(format!("{available} of {wanted} updated pods are available..."));
    }
    peer_verdict(HEALTHY, "")
}

/// Conditions count by their presence, whatever their status, so a resumed Job is healthy while it runs.
pub(super) fn judge_job(object: &Value) -> PeerVerdict {
    let (mut complete, mut suspended) = (false, false);
    let (mut failure, mut message) = (None, "");
    for condition in list_at(object, &["status", "conditions"]) {
        match text_at(condition, &["type"]) {
            "Failed" => failure = Some(text_at(condition, &["message"])),
            "Complete" => (complete, message) = (true, text_at(condition, &["message"])),
            "Suspended" => {
                (complete, message) = (true, text_at(condition, &["message"]));
                suspended |= text_at(condition, &["status"]) == "True";
            }
            _ => {}
        }
    }
    match failure {
        Some(failure) => peer_verdict(DEGRADED, failure),
        None if !complete => peer_verdict(PROGRESSING, message),
        None if suspended => peer_verdict(SUSPENDED, ""),
        None => peer_verdict(HEALTHY, message),
    }
}

pub(super) fn judge_pod(object: &Value) -> PeerVerdict {
    let policy = restart_policy(object);
    let containers = list_at(object, &["status", "containerStatuses"]);
    if policy == "Always" {
        let stuck: Vec<_> = containers
            .iter()
            .filter(|c| is_error_reason(text_at(c, &["state", "waiting", "reason"])))
            .collect();
        if !stuck.is_empty() {
            let messages: Vec<_> =
                stuck.iter().map(|c| text_at(c, &["state", "waiting", "message"])).collect();
            return peer_verdict(DEGRADED, messages.join(", "));
        }
    }
    let message = text_at(object, &["status", "message"]);
    match (text_at(object, &["status", "phase"]), policy) {
        ("Pending", _) | ("Running", "OnFailure" | "Never") => peer_verdict(PROGRESSING, message),
        ("Succeeded", _) => peer_verdict(HEALTHY, message),
        ("Failed", _) if !message.is_empty() => peer_verdict(DEGRADED, message),
        ("Failed", _) => {
            let mut all = list_at(object, &["status", "initContainerStatuses"]).iter().chain(containers);
            peer_verdict(DEGRADED, all.find_map(container_failure).unwrap_or_default())
        }
        ("Running", "Always") => {
            let ready = find_condition(object, "Ready").is_some_and(|c| text_at(c, &["status"]) == "True");
            let restarted = |c: &Value| {
                matches!(json::field_at(c, &["lastState", "terminated"]), Ok(Some(Value::Object(_))))
            };
            match (ready, containers.iter().any(restarted)) {
                (true, _) => peer_verdict(HEALTHY, message),
                (false, true) => peer_verdict(DEGRADED, message),
                (false, false) => peer_verdict(PROGRESSING, message),
            }
        }
        _ => peer_verdict(UNKNOWN, message),
    }
}

/// Returns the Pod's restart policy, or the one derived from an annotation for a Pod that runs permanently without
/// saying so.
fn restart_policy(object: &Value) -> &str {
    let policy = text_at(object, &["spec", "restartPolicy"]);
    let annotation = |key: &str| json::string_or(object, &["metadata", "annotations", key], "");
    let ignored = annotation("argocd.argoproj.io/ignore-restart-policy") == "true";
    let hook = !annotation("argocd.argoproj.io/hook").is_empty() || !annotation("helm.sh/hook").is_empty();
    if ignored && !hook && matches!(policy, "OnFailure" | "Never") { "Always" } else { policy }
}

fn is_error_reason(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

/// Returns the reason why a container terminated, unless it succeeded.
fn container_failure(container: &Value) -> Option<String> {
    let Ok(Some(Value::Object(_))) = json::field_at(container, &["state", "terminated"]) else { return None };
    let message = text_at(container, &["state", "terminated", "message"]);
    let code = int32_at(container, &["state", "terminated", "exitCode"]).unwrap_or(0);
    if !message.is_empty() {
        return Some(message.to_owned());
    }
    if text_at(container, &["state", "terminated", "reason"]) == "OOMKilled" {
        return Some("OOMKilled".to_owned());
    }
    (code != 0).then(|| {
        format!("container {} failed with exit code {code}", quote_go(text_at(container, &["name"])))
    })
}
