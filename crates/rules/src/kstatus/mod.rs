//! kstatus, as Flux, Helm and `kubectl`-like tools compute it, and the one rule that Flux replaces.
//!
//! Exact in its status, quirks included: it fails open (no signal is `Current`), it takes an observed generation
//! that runs ahead for a stale one, and it answers with an error, here `Unknown`, where a field has another type
//! than it expects.

mod kinds;
mod workloads;

use readiness::Time;
use serde_json::Value;

use crate::json::{self, WrongType};
use crate::{Gvk, PeerVerdict};

/// A status in kstatus's words, with a message.
type Said = (&'static str, String);

/// What kstatus says, or what it could not read.
type Computed = Result<Said, Unreadable>;

const CURRENT: &str = "Current";
const IN_PROGRESS: &str = "InProgress";
const FAILED: &str = "Failed";
const TERMINATING: &str = "Terminating";
const UNKNOWN: &str = "Unknown";

/// Why kstatus gives no status: its callers show such an object as `Unknown`.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("failed to read the object: {0}")]
    Type(#[from] WrongType),
    #[error("unknown phase {0}")]
    Phase(String),
}

/// One entry of `status.conditions`; what is absent or null is empty.
#[derive(Clone, Copy, Debug)]
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// The verdict of kstatus itself.
pub(crate) fn kstatus(object: &Value, now: Time) -> PeerVerdict {
    said(compute(object, now))
}

/// The verdict of Flux: kstatus, but for Jobs its own rule, which asks nothing else, not even about a deletion.
pub(crate) fn flux(object: &Value, now: Time) -> PeerVerdict {
    let gvk = Gvk::of(object);
    said(if (gvk.group, gvk.kind) == ("batch", "Job") {
        kinds::flux_job(object)
    } else {
        compute(object, now)
    })
}

fn said(computed: Computed) -> PeerVerdict {
    match computed {
        Ok((status, message)) => PeerVerdict { status: Some(status), message },
        Err(error) => PeerVerdict { status: Some(UNKNOWN), message: error.to_string() },
    }
}

fn compute(object: &Value, now: Time) -> Computed {
    if let Some(early) = generic(object)? {
        return Ok(early);
    }
    let gvk = Gvk::of(object);
    match (gvk.group, gvk.kind) {
        ("", "Service") => Ok(kinds::service(object)),
        ("", "Pod") => kinds::pod(object, now),
        ("", "PersistentVolumeClaim") => Ok(kinds::claim(object)),
        ("", "Secret" | "ConfigMap") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => {
            Ok(current("nothing to wait for in this kind"))
        }
        ("apps", "StatefulSet") => Ok(workloads::stateful_set(object)),
        ("apps" | "extensions", "DaemonSet") => workloads::daemon_set(object),
        ("apps" | "extensions", "Deployment") => workloads::deployment(object),
        ("apps" | "extensions", "ReplicaSet") => workloads::replica_set(object),
        ("batch", "Job") => kinds::job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => kinds::definition(object),
        _ => by_ready(object),
    }
}

/// What is asked of every kind first: deletion, generation, then the first of Reconciling and Stalled in list order.
fn generic(object: &Value) -> Result<Option<Said>, Unreadable> {
    if json::string(object, &["metadata", "deletionTimestamp"])?.is_some_and(|at| !at.is_empty()) {
        return Ok(Some((TERMINATING, "the object is being deleted".to_owned())));
    }
    if let Some(generation) = json::integer(object, &["metadata", "generation"])?
        && let Some(observed) = json::integer(object, &["status", "observedGeneration"])?
        && observed != generation
    {
        return Ok(Some((
            IN_PROGRESS,
            format!("observed generation is {observed}, the object is at {generation}"),
        )));
    }
    for condition in conditions(object)? {
        match (condition.kind, condition.status) {
            ("Reconciling", "True") => return Ok(Some((IN_PROGRESS, condition.message.to_owned()))),
            ("Stalled", "True") => return Ok(Some((FAILED, condition.message.to_owned()))),
            _ => {}
        }
    }
    Ok(None)
}

/// A kind without a rule: its Ready condition, and without one it counts as there.
fn by_ready(object: &Value) -> Computed {
    for condition in conditions(object)?.iter().filter(|c| c.kind == "Ready") {
        match condition.status {
            "True" => return Ok(current("Ready is True")),
            "False" | "Unknown" => return Ok((IN_PROGRESS, condition.message.to_owned())),
            _ => {}
        }
    }
    Ok(current("no condition says otherwise"))
}

fn current(message: &str) -> Said {
    (CURRENT, message.to_owned())
}

/// The conditions, read as typed Go structs are: one entry of another type and none can be read.
fn conditions(object: &Value) -> Result<Vec<Condition<'_>>, WrongType> {
    let status = match object.get("status") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(status @ Value::Object(_)) => status,
        Some(_) => return Err(WrongType::at(&["status"], "a map")),
    };
    let entries = match status.get("conditions") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(WrongType::at(&["status", "conditions"], "a list")),
    };
    entries.iter().map(condition).collect()
}

fn condition(entry: &Value) -> Result<Condition<'_>, WrongType> {
    if !entry.is_object() && !entry.is_null() {
        return Err(WrongType::at(&["status", "conditions", "[]"], "a map"));
    }
    let text = |key: &'static str| match entry.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(WrongType::at(&["status", "conditions", "[]", key], "a string")),
    };
    Ok(Condition {
        kind: text("type")?,
        status: text("status")?,
        reason: text("reason")?,
        message: text("message")?,
    })
}

fn any(conditions: &[Condition<'_>], kind: &str, status: &str) -> bool {
    conditions.iter().any(|c| c.kind == kind && c.status == status)
}
