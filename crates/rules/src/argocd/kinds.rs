//! Health of kinds that do not run Pods themselves.

use serde_json::Value;

use super::go_values::{list_at, text_at};
use super::health::{DEGRADED, HEALTHY, PROGRESSING, UNKNOWN, peer_verdict};
use crate::json::{self, ObjectGvk};
use crate::peer_verdict::PeerVerdict;

pub(super) fn judge_service(object: &Value) -> PeerVerdict {
    if text_at(object, &["spec", "type"]) == "LoadBalancer" {
        return judge_ingress(object);
    }
    peer_verdict(HEALTHY, "")
}

/// Healthy once a load balancer has assigned it an address.
pub(super) fn judge_ingress(object: &Value) -> PeerVerdict {
    let given = !list_at(object, &["status", "loadBalancer", "ingress"]).is_empty();
    peer_verdict(if given { HEALTHY } else { PROGRESSING }, "")
}

pub(super) fn judge_volume_claim(object: &Value) -> PeerVerdict {
    let status = match text_at(object, &["status", "phase"]) {
        "Lost" => DEGRADED,
        "Pending" => PROGRESSING,
        "Bound" => HEALTHY,
        _ => UNKNOWN,
    };
    peer_verdict(status, "")
}

pub(super) fn judge_api_service(object: &Value) -> PeerVerdict {
    let available =
        list_at(object, &["status", "conditions"]).iter().find(|c| text_at(c, &["type"]) == "Available");
    let Some(available) = available else { return peer_verdict(PROGRESSING, "Waiting to be processed") };
    let status = if text_at(available, &["status"]) == "True" { HEALTHY } else { PROGRESSING };
    peer_verdict(status, format!("{}: {}", text_at(available, &["reason"]), text_at(available, &["message"])))
}

pub(super) fn judge_workflow(object: &Value) -> PeerVerdict {
    let status = match text_at(object, &["status", "phase"]) {
        "" | "Pending" | "Running" => PROGRESSING,
        "Succeeded" => HEALTHY,
        "Failed" | "Error" => DEGRADED,
        _ => UNKNOWN,
    };
    peer_verdict(status, text_at(object, &["status", "message"]))
}

/// Reads the conditions, which version 1 of the API keeps as JSON in an annotation.
pub(super) fn judge_autoscaler(object: &Value) -> PeerVerdict {
    if ObjectGvk::of_object(object).version != "v1" {
        return judge_scaling_conditions(list_at(object, &["status", "conditions"]));
    }
    let annotation = ["metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions"];
    // Go reads a null there as an empty string, which is not JSON.
    let annotation = match json::field_at(object, &annotation) {
        Ok(Some(text)) => text.as_str().unwrap_or(""),
        _ => return judge_scaling_conditions(&[]),
    };
    match serde_json::from_str(annotation).map(normalize_conditions) {
        Ok(Some(conditions)) => judge_scaling_conditions(&conditions),
        _ => peer_verdict(UNKNOWN, "failed to convert the annotation with the conditions"),
    }
}

/// Returns the annotation's entries with lower-case keys, as Go matches keys in any case; `None` if a type is wrong.
fn normalize_conditions(annotation: Value) -> Option<Vec<Value>> {
    let entries = match annotation {
        Value::Null => return Some(Vec::new()),
        Value::Array(entries) => entries,
        _ => return None,
    };
    let lower = |entry| match entry {
        Value::Null => Some(Value::Object(serde_json::Map::new())),
        Value::Object(map) => {
            let known = map.into_iter().map(|(key, value)| (key.to_ascii_lowercase(), value));
            let known = known.filter(|(key, value)| {
                matches!(key.as_str(), "type" | "reason" | "message" | "status") && !value.is_null()
            });
            let map: serde_json::Map<_, _> = known.collect();
            map.values().all(Value::is_string).then_some(Value::Object(map))
        }
        _ => None,
    };
    entries.into_iter().map(lower).collect()
}

fn judge_scaling_conditions(conditions: &[Value]) -> PeerVerdict {
    let degraded = |c: &&Value| {
        matches!(
            (text_at(c, &["type"]), text_at(c, &["reason"])),
            ("AbleToScale", "FailedGetScale" | "FailedUpdateScale")
                | (
                    "ScalingActive",
                    "FailedGetResourceMetric"
                        | "FailedGetObjectMetric"
                        | "FailedGetPodsMetric"
                        | "FailedGetExternalMetric"
                        | "FailedComputeMetricsReplicas"
                        | "InvalidSelector"
                )
        )
    };
    let healthy = |c: &&Value| {
        matches!(text_at(c, &["type"]), "AbleToScale" | "ScalingLimited") && text_at(c, &["status"]) == "True"
    };
    if let Some(condition) = conditions.iter().find(degraded) {
        return peer_verdict(DEGRADED, text_at(condition, &["message"]));
    }
    match conditions.iter().find(healthy) {
        Some(condition) => peer_verdict(HEALTHY, text_at(condition, &["message"])),
        None => peer_verdict(PROGRESSING, "Waiting to Autoscale"),
    }
}

/// Returns the verdict for a missing field on which the script shipped with Argo CD would fail.
fn script_failure(what: &str) -> PeerVerdict {
    peer_verdict(UNKNOWN, format!("{what} is missing"))
}

pub(super) fn judge_cron_job(object: &Value) -> PeerVerdict {
    if json::field_at(object, &["spec", "suspend"]) == Ok(Some(&Value::Bool(true))) {
        return peer_verdict(HEALTHY, "CronJob is Suspended");
    }
    if !object.get("spec").is_some_and(Value::is_object) {
        return script_failure("spec");
    }
    if !object.get("status").is_some_and(Value::is_object) {
        return peer_verdict(PROGRESSING, "Waiting for CronJob");
    }
    let (scheduled, succeeded) = (
        text_at(object, &["status", "lastScheduleTime"]),
        text_at(object, &["status", "lastSuccessfulTime"]),
    );
    if scheduled.is_empty() {
        return peer_verdict(HEALTHY, "CronJob has not been scheduled yet");
    }
    if succeeded.is_empty() {
        return peer_verdict(HEALTHY, "The CronJob never completed successfully. It may not be healthy");
    }
    if !list_at(object, &["status", "active"]).is_empty() {
        return peer_verdict(HEALTHY, "The job is running. Its last execution may not have been successful");
    }
    // Both are written by the same controller in the same format, so the order of the text is the order in time.
    if succeeded < scheduled {
        return peer_verdict(DEGRADED, "CronJob has not completed its last execution successfully");
    }
    peer_verdict(HEALTHY, "CronJob has completed its last execution successfully")
}

pub(super) fn judge_disruption_budget(object: &Value) -> PeerVerdict {
    let mut said = peer_verdict(PROGRESSING, "Waiting for status");
    for condition in list_at(object, &["status", "conditions"]) {
        let Ok(Some(Value::String(reason))) = json::field_at(condition, &["reason"]) else {
            return script_failure("the reason of a condition");
        };
        let failed = text_at(condition, &["status"]) == "False" && reason != "InsufficientPods";
        said = peer_verdict(
            if failed { DEGRADED } else { HEALTHY },
            format!("PodDisruptionBudget has {reason}"),
        );
        if failed {
            break;
        }
    }
    said
}

pub(super) fn judge_definition(object: &Value) -> PeerVerdict {
    if !object.get("metadata").is_some_and(Value::is_object)
        || !object.get("status").is_some_and(Value::is_object)
    {
        return script_failure("metadata or status");
    }
    let conditions = list_at(object, &["status", "conditions"]);
    if conditions.is_empty() {
        return peer_verdict(PROGRESSING, "Status conditions not found");
    }
    let mut established = false;
    for condition in conditions {
        let message = text_at(condition, &["message"]);
        match (
            text_at(condition, &["type"]),
            text_at(condition, &["status"]),
            text_at(condition, &["reason"]),
        ) {
            ("Terminating", "True", _) => {
                return peer_verdict(PROGRESSING, format!("CRD is terminating: {message}"));
            }
            ("NamesAccepted", "False", _) => {
                return peer_verdict(DEGRADED, format!("CRD names have not been accepted: {message}"));
            }
            ("NonStructuralSchema", "True", _) => {
                return peer_verdict(DEGRADED, format!("Schema violations found: {message}"));
            }
            ("Established", "True", _) => established = true,
            ("Established", _, "InvalidCABundle") => {
                return peer_verdict(DEGRADED, format!("CRD is not established: {message}"));
            }
            ("Established", _, "Installing") => return peer_verdict(PROGRESSING, "CRD is being installed"),
            _ => {}
        }
    }
    if established {
        peer_verdict(HEALTHY, "CRD is healthy")
    } else {
        peer_verdict(PROGRESSING, "CRD is not established")
    }
}
