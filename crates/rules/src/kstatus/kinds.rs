//! Kinds with a rule of their own that is not about replicas.

use std::time::Duration;

use readiness::Time;
use serde_json::Value;

use super::{CURRENT, Computed, FAILED, IN_PROGRESS, Said, Unreadable, any, conditions, current};
use crate::json::{self, WrongType};
use crate::rfc3339;

/// How long a Pod may be unschedulable before that counts as failed.
const SCHEDULE_WINDOW: Duration = Duration::from_secs(15);

fn in_progress(message: &str) -> Said {
    (IN_PROGRESS, message.to_owned())
}

pub(super) fn service(object: &Value) -> Said {
    let balanced = json::string_or(object, &["spec", "type"], "ClusterIP") == "LoadBalancer";
    if balanced && json::string_or(object, &["spec", "clusterIP"], "").is_empty() {
        return (IN_PROGRESS, "a LoadBalancer without spec.clusterIP".to_owned());
    }
    (CURRENT, "nothing to wait for".to_owned())
}

pub(super) fn claim(object: &Value) -> Said {
    match json::string_or(object, &["status", "phase"], "unknown") {
        "Bound" => (CURRENT, "bound".to_owned()),
        phase => (IN_PROGRESS, format!("phase is {phase}")),
    }
}

pub(super) fn pod(object: &Value, now: Time) -> Computed {
    let conditions = conditions(object)?;
    let unscheduled = |c: &&super::Condition| c.kind == "PodScheduled" && c.status == "False";
    Ok(match json::string_or(object, &["status", "phase"], "") {
        "Succeeded" => current("completed"),
        "Failed" => current("completed, but failed"),
        "Running" if any(&conditions, "Ready", "True") => current("Ready is True"),
        "Running" => match crash_looping(object)?.as_slice() {
            [] => in_progress("running, not ready"),
            names => (FAILED, format!("in a crash loop: {}", names.join(","))),
        },
        "Pending" => match conditions.iter().find(unscheduled) {
            Some(c) if c.reason != "Unschedulable" => in_progress("pending"),
            Some(_) if old_enough(object, now) => (FAILED, "unschedulable".to_owned()),
            Some(_) => in_progress("not scheduled yet"),
            None => in_progress("pending"),
        },
        "" => in_progress("no phase yet"),
        phase => return Err(Unreadable::Phase(phase.to_owned())),
    })
}

/// An object that does not say when it was created is old.
fn old_enough(object: &Value, now: Time) -> bool {
    rfc3339::parse(json::string_or(object, &["metadata", "creationTimestamp"], ""))
        .is_none_or(|created| created + SCHEDULE_WINDOW <= now)
}

/// Main containers only. Where kstatus would panic on a type, this is an error.
fn crash_looping(object: &Value) -> Result<Vec<&str>, WrongType> {
    const PATH: [&str; 2] = ["status", "containerStatuses"];
    let statuses = match json::field(object, &PATH)? {
        None => return Ok(Vec::new()),
        Some(Value::Array(statuses)) => statuses,
        Some(_) => return Err(WrongType::at(&PATH, "a list")),
    };
    let mut names = Vec::new();
    for status in statuses {
        if let Some((name, reason)) = waiting(status)?
            && reason == "CrashLoopBackOff"
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Name of a container and why it waits. Each step must have its type as soon as its key is there.
fn waiting(status: &Value) -> Result<Option<(&str, &str)>, WrongType> {
    let step = |value: &'_ Value| {
        value.is_object().then_some(()).ok_or(WrongType::at(&["containerStatuses"], "a map"))
    };
    let text = |value: &'static str| WrongType::at(&["containerStatuses", value], "a string");
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

pub(super) fn definition(object: &Value) -> Computed {
    for condition in conditions(object)? {
        match (condition.kind, condition.status) {
            ("NamesAccepted", "False") => return Ok((FAILED, condition.message.to_owned())),
            ("Established", "False") if condition.reason != "Installing" => {
                return Ok((FAILED, condition.message.to_owned()));
            }
            ("Established", "True") => return Ok(current("Established is True")),
            _ => {}
        }
    }
    Ok(in_progress("being installed"))
}

/// Complete or Failed, whichever comes first in the list; kstatus also lets a suspended Job pass there.
fn finished(object: &Value, suspended_passes: bool) -> Result<Option<Said>, WrongType> {
    let suspended =
        suspended_passes && json::field(object, &["spec", "suspend"]) == Ok(Some(&Value::Bool(true)));
    for condition in conditions(object)? {
        match (condition.kind, condition.status) {
            ("Complete", "True") => return Ok(Some((CURRENT, "Complete is True".to_owned()))),
            ("Failed", "True") => return Ok(Some((FAILED, "Failed is True".to_owned()))),
            ("Suspended", "True") if suspended => return Ok(Some((CURRENT, "suspended".to_owned()))),
            _ => {}
        }
    }
    Ok(None)
}

fn started(object: &Value) -> bool {
    !json::string_or(object, &["status", "startTime"], "").is_empty()
}

/// A Job that runs counts as there: its effect is not awaited.
pub(super) fn job(object: &Value) -> Computed {
    Ok(match finished(object, true)? {
        Some(end) => end,
        None if started(object) => current("running"),
        None => in_progress("not started"),
    })
}

/// Flux waits for a Job's end, and lets a suspended one pass before anything else.
pub(super) fn flux_job(object: &Value) -> Computed {
    if json::field(object, &["spec", "suspend"]) == Ok(Some(&Value::Bool(true))) {
        return Ok(current("suspended"));
    }
    Ok(match finished(object, false)? {
        Some(end) => end,
        None if started(object) => in_progress("running"),
        None => in_progress("not started"),
    })
}
