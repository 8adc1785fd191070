//! Kinds that do not run Pods themselves.

use serde_json::Value;

use super::{DEGRADED, HEALTHY, PROGRESSING, UNKNOWN, health, list, text};
use crate::PeerVerdict;
use crate::json::{self, Gvk};

pub(super) fn service(object: &Value) -> PeerVerdict {
    if text(object, &["spec", "type"]) == "LoadBalancer" {
        return ingress(object);
    }
    health(HEALTHY, "")
}

/// Healthy once a load balancer has an address for it.
pub(super) fn ingress(object: &Value) -> PeerVerdict {
    let given = !list(object, &["status", "loadBalancer", "ingress"]).is_empty();
    health(if given { HEALTHY } else { PROGRESSING }, "")
}

pub(super) fn claim(object: &Value) -> PeerVerdict {
    let status = match text(object, &["status", "phase"]) {
        "Lost" => DEGRADED,
        "Pending" => PROGRESSING,
        "Bound" => HEALTHY,
        _ => UNKNOWN,
    };
    health(status, "")
}

pub(super) fn api_service(object: &Value) -> PeerVerdict {
    let available =
        list(object, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == "Available");
    let Some(available) = available else { return health(PROGRESSING, "Waiting to be processed") };
    let status = if text(available, &["status"]) == "True" { HEALTHY } else { PROGRESSING };
    health(status, format!("{}: {}", text(available, &["reason"]), text(available, &["message"])))
}

pub(super) fn workflow(object: &Value) -> PeerVerdict {
    let status = match text(object, &["status", "phase"]) {
        "" | "Pending" | "Running" => PROGRESSING,
        "Succeeded" => HEALTHY,
        "Failed" | "Error" => DEGRADED,
        _ => UNKNOWN,
    };
    health(status, text(object, &["status", "message"]))
}

/// In version 1 of the API the conditions are JSON in an annotation.
pub(super) fn autoscaler(object: &Value) -> PeerVerdict {
    if Gvk::of(object).version != "v1" {
        return autoscaling(list(object, &["status", "conditions"]));
    }
    let annotation = ["metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions"];
    // A null there is an empty string to Go, and that is no JSON.
    let annotation = match json::field(object, &annotation) {
        Ok(Some(text)) => text.as_str().unwrap_or(""),
        _ => return autoscaling(&[]),
    };
    match serde_json::from_str(annotation).map(conditions) {
        Ok(Some(conditions)) => autoscaling(&conditions),
        _ => health(UNKNOWN, "failed to convert the annotation with the conditions"),
    }
}

/// The annotation's entries with their keys in lower case, as Go matches keys in any case; `None` where a type is wrong.
fn conditions(annotation: Value) -> Option<Vec<Value>> {
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

fn autoscaling(conditions: &[Value]) -> PeerVerdict {
    let degraded = |c: &&Value| {
        matches!(
            (text(c, &["type"]), text(c, &["reason"])),
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
        matches!(text(c, &["type"]), "AbleToScale" | "ScalingLimited") && text(c, &["status"]) == "True"
    };
    if let Some(condition) = conditions.iter().find(degraded) {
        return health(DEGRADED, text(condition, &["message"]));
    }
    match conditions.iter().find(healthy) {
        Some(condition) => health(HEALTHY, text(condition, &["message"])),
        None => health(PROGRESSING, "Waiting to Autoscale"),
    }
}

/// Where the script that ships with Argo CD would fail on a missing field.
fn script_fails(what: &str) -> PeerVerdict {
    health(UNKNOWN, format!("{what} is missing"))
}

pub(super) fn cron_job(object: &Value) -> PeerVerdict {
    if json::field(object, &["spec", "suspend"]) == Ok(Some(&Value::Bool(true))) {
        return health(HEALTHY, "CronJob is Suspended");
    }
    if !object.get("spec").is_some_and(Value::is_object) {
        return script_fails("spec");
    }
    if !object.get("status").is_some_and(Value::is_object) {
        return health(PROGRESSING, "Waiting for CronJob");
    }
    let (scheduled, succeeded) =
        (text(object, &["status", "lastScheduleTime"]), text(object, &["status", "lastSuccessfulTime"]));
    if scheduled.is_empty() {
        return health(HEALTHY, "CronJob has not been scheduled yet");
    }
    if succeeded.is_empty() {
        return health(HEALTHY, "The CronJob never completed successfully. It may not be healthy");
    }
    if !list(object, &["status", "active"]).is_empty() {
        return health(HEALTHY, "The job is running. Its last execution may not have been successful");
    }
    // Both are written by the same controller in the same format, so the order of the text is the order in time.
    if succeeded < scheduled {
        return health(DEGRADED, "CronJob has not completed its last execution successfully");
    }
    health(HEALTHY, "CronJob has completed its last execution successfully")
}

pub(super) fn disruption_budget(object: &Value) -> PeerVerdict {
    let mut said = health(PROGRESSING, "Waiting for status");
    for condition in list(object, &["status", "conditions"]) {
        let Ok(Some(Value::String(reason))) = json::field(condition, &["reason"]) else {
            return script_fails("the reason of a condition");
        };
        let failed = text(condition, &["status"]) == "False" && reason != "InsufficientPods";
        said = health(if failed { DEGRADED } else { HEALTHY }, format!("PodDisruptionBudget has {reason}"));
        if failed {
            break;
        }
    }
    said
}

pub(super) fn definition(object: &Value) -> PeerVerdict {
    if !object.get("metadata").is_some_and(Value::is_object)
        || !object.get("status").is_some_and(Value::is_object)
    {
        return script_fails("metadata or status");
    }
    let conditions = list(object, &["status", "conditions"]);
    if conditions.is_empty() {
        return health(PROGRESSING, "Status conditions not found");
    }
    let mut established = false;
    for condition in conditions {
        let message = text(condition, &["message"]);
        match (text(condition, &["type"]), text(condition, &["status"]), text(condition, &["reason"])) {
            ("Terminating", "True", _) => {
                return health(PROGRESSING, format!("CRD is terminating: {message}"));
            }
            ("NamesAccepted", "False", _) => {
                return health(DEGRADED, format!("CRD names have not been accepted: {message}"));
            }
            ("NonStructuralSchema", "True", _) => {
                return health(DEGRADED, format!("Schema violations found: {message}"));
            }
            ("Established", "True", _) => established = true,
            ("Established", _, "InvalidCABundle") => {
                return health(DEGRADED, format!("CRD is not established: {message}"));
            }
            ("Established", _, "Installing") => return health(PROGRESSING, "CRD is being installed"),
            _ => {}
        }
    }
    if established {
        health(HEALTHY, "CRD is healthy")
    } else {
        health(PROGRESSING, "CRD is not established")
    }
}
