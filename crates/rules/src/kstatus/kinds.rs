//! Kinds with a rule of their own that does not count replicas.

use std::time::Duration;

use readiness::Time;
use serde_json::Value;

use super::conditions::{has_condition, read_conditions};
use super::status::{
    CURRENT, FAILED, IN_PROGRESS, KstatusError, KstatusMessage, KstatusResult, current_status,
};
use crate::json::{self, WrongType};

/// Time a Pod may be unschedulable before it counts as failed.
const SCHEDULE_WINDOW: Duration = Duration::from_secs(15);

fn in_progress(message: &str) -> KstatusMessage {
    (IN_PROGRESS, message.to_owned())
}

pub(super) fn judge_service(object: &Value) -> KstatusMessage {
    let balanced = json::string_or(object, &["spec", "type"], "ClusterIP") == "LoadBalancer";
    if balanced && json::string_or(object, &["spec", "clusterIP"], "").is_empty() {
        return (IN_PROGRESS, "a LoadBalancer without spec.clusterIP".to_owned());
    }
    (CURRENT, "nothing to wait for".to_owned())
}

pub(super) fn judge_volume_claim(object: &Value) -> KstatusMessage {
    match json::string_or(object, &["status", "phase"], "unknown") {
        "Bound" => (CURRENT, "bound".to_owned()),
        phase => (IN_PROGRESS, format!("phase is {phase}")),
    }
}

pub(super) fn judge_pod(object: &Value, now: Time) -> KstatusResult {
    let conditions = read_conditions(object)?;
    let unscheduled =
        |c: &&super::conditions::KstatusCondition| c.kind == "PodScheduled" && c.status == "False";
    Ok(match json::string_or(object, &["status", "phase"], "") {
        "Succeeded" => current_status("completed"),
        "Failed" => current_status("completed, but failed"),
        "Running" if has_condition(&conditions, "Ready", "True") => current_status("Ready is True"),
        "Running" => match crash_looping_containers(object)?.as_slice() {
            [] => in_progress("running, not ready"),
            names => (FAILED, format!("in a crash loop: {}", names.join(","))),
        },
        "Pending" => match conditions.iter().find(unscheduled) {
            Some(c) if c.reason != "Unschedulable" => in_progress("pending"),
            Some(_) if is_schedule_overdue(object, now) => (FAILED, "unschedulable".to_owned()),
            Some(_) => in_progress("not scheduled yet"),
            None => in_progress("pending"),
        },
        "" => in_progress("no phase yet"),
        phase => return Err(KstatusError::Phase(phase.to_owned())),
    })
}

/// Returns `true` if the Pod is older than the scheduling window; one without a creation time is.
fn is_schedule_overdue(object: &Value, now: Time) -> bool {
    Time::from_rfc3339(json::string_or(object, &["metadata", "creationTimestamp"], ""))
        .is_none_or(|created| created + SCHEDULE_WINDOW <= now)
}

/// Returns the crash-looping main containers. An error where kstatus would panic on a type.
fn crash_looping_containers(object: &Value) -> Result<Vec<&str>, WrongType> {
    const CONTAINER_STATUSES_PATH: [&str; 2] = ["status", "containerStatuses"];
    let statuses = match json::field_at(object, &CONTAINER_STATUSES_PATH)? {
        None => return Ok(Vec::new()),
        Some(Value::Array(statuses)) => statuses,
        Some(_) => return Err(WrongType::at_path(&CONTAINER_STATUSES_PATH, "a list")),
    };
    let mut names = Vec::new();
    for status in statuses {
        if let Some((name, reason)) = waiting_reason(status)?
            && reason == "CrashLoopBackOff"
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns a container's name and waiting reason. Each step must have its type as soon as its key is present.
fn waiting_reason(status: &Value) -> Result<Option<(&str, &str)>, WrongType> {
    let step = |value: &'_ Value| {
        value.is_object().then_some(()).ok_or(WrongType::at_path(&["containerStatuses"], "a map"))
    };
    let text = |value: &'static str| WrongType::at_path(&["containerStatuses", value], "a string");
    step(status)?;
    let Some(name) = status.get("name") else { return Ok(None) };
    let name = name.as_str().ok_or_else(|| text("name"))?;
    let Some(state) = status.get("state") else { return Ok(None) };
    step(state)?;
    let Some(waiting) = state.get("waiting") else { return Ok(None) };
    step(waiting)?;
    let Some(reason) = waiting.get("reason") else { return Ok(None) };
    Ok(Some((name, reason.as_str().ok_or_else(|| text("reason"))?)))
}

pub(super) fn judge_definition(object: &Value) -> KstatusResult {
    for condition in read_conditions(object)? {
        match (condition.kind, condition.status) {
            ("NamesAccepted", "False") => return Ok((FAILED, condition.message.to_owned())),
            ("Established", "False") if condition.reason != "Installing" => {
                return Ok((FAILED, condition.message.to_owned()));
            }
            ("Established", "True") => return Ok(current_status("Established is True")),
            _ => {}
        }
    }
    Ok(in_progress("being installed"))
}

/// Returns the status of the first Complete or Failed condition in the list; kstatus also lets a suspended Job pass
/// there.
fn finished_status(object: &Value, suspended_passes: bool) -> Result<Option<KstatusMessage>, WrongType> {
    let suspended =
        suspended_passes && json::field_at(object, &["spec", "suspend"]) == Ok(Some(&Value::Bool(true)));
    for condition in read_conditions(object)? {
        match (condition.kind, condition.status) {
            ("Complete", "True") => return Ok(Some((CURRENT, "Complete is True".to_owned()))),
            ("Failed", "True") => return Ok(Some((FAILED, "Failed is True".to_owned()))),
            ("Suspended", "True") if suspended => return Ok(Some((CURRENT, "suspended".to_owned()))),
            _ => {}
        }
    }
    Ok(None)
}

fn has_started(object: &Value) -> bool {
    !json::string_or(object, &["status", "startTime"], "").is_empty()
}

/// A running Job is current: its completion is not awaited.
pub(super) fn judge_job(object: &Value) -> KstatusResult {
    Ok(match finished_status(object, true)? {
        Some(end) => end,
        None if has_started(object) => current_status("running"),
        None => in_progress("not started"),
    })
}

/// Flux waits for a Job's completion, and lets a suspended one pass before anything else.
pub(super) fn judge_flux_job(object: &Value) -> KstatusResult {
    if json::field_at(object, &["spec", "suspend"]) == Ok(Some(&Value::Bool(true))) {
        return Ok(current_status("suspended"));
    }
    Ok(match finished_status(object, false)? {
        Some(end) => end,
        None if has_started(object) => in_progress("running"),
        None => in_progress("not started"),
    })
}
