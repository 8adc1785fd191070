//! kstatus, as Flux, Helm and `kubectl`-like tools compute it, and the one rule that Flux replaces.
//!
//! Exact in its status, quirks included: it fails open (no signal is `Current`), it treats an observed generation ahead
//! of the current one as stale, and it answers with an error, here `Unknown`, if a field has another type than it
//! expects.

mod conditions;
mod health_check;
mod kinds;
mod status;
mod workloads;

use readiness::Time;
use serde_json::Value;

use crate::json::{self, ObjectGvk};
use crate::peer_verdict::PeerVerdict;
use conditions::read_conditions;
pub use health_check::judge_by_flux_expressions;
use status::{
    FAILED, IN_PROGRESS, KstatusError, KstatusMessage, KstatusResult, TERMINATING, UNKNOWN, current_status,
};

/// Returns the verdict of kstatus.
pub(crate) fn judge_by_kstatus(object: &Value, now: Time) -> PeerVerdict {
    to_verdict(compute_status(object, now))
}

/// Returns the verdict of Flux: kstatus, except for Jobs, whose own rule ignores everything else, even a deletion.
pub(crate) fn judge_by_flux(object: &Value, now: Time) -> PeerVerdict {
    let gvk = ObjectGvk::of_object(object);
    to_verdict(if (gvk.group, gvk.kind) == ("batch", "Job") {
        kinds::judge_flux_job(object)
    } else {
        compute_status(object, now)
    })
}

fn to_verdict(computed: KstatusResult) -> PeerVerdict {
    match computed {
        Ok((status, message)) => PeerVerdict { status: Some(status), message },
        Err(error) => PeerVerdict { status: Some(UNKNOWN), message: error.to_string() },
    }
}

fn compute_status(object: &Value, now: Time) -> KstatusResult {
    if let Some(early) = check_generic(object)? {
        return Ok(early);
    }
    let gvk = ObjectGvk::of_object(object);
    match (gvk.group, gvk.kind) {
        ("", "Service") => Ok(kinds::judge_service(object)),
        ("", "Pod") => kinds::judge_pod(object, now),
        ("", "PersistentVolumeClaim") => Ok(kinds::judge_volume_claim(object)),
        ("", "Secret" | "ConfigMap") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => {
            Ok(current_status("nothing to wait for in this kind"))
        }
        ("apps", "StatefulSet") => Ok(workloads::judge_stateful_set(object)),
        ("apps" | "extensions", "DaemonSet") => workloads::judge_daemon_set(object),
        ("apps" | "extensions", "Deployment") => workloads::judge_deployment(object),
        ("apps" | "extensions", "ReplicaSet") => workloads::judge_replica_set(object),
        ("batch", "Job") => kinds::judge_job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => kinds::judge_definition(object),
        _ => judge_by_ready(object),
    }
}

/// Checks that apply to every kind first: deletion, generation, then the first of Reconciling and Stalled in list
/// order.
fn check_generic(object: &Value) -> Result<Option<KstatusMessage>, KstatusError> {
    if json::string_at(object, &["metadata", "deletionTimestamp"])?.is_some_and(|at| !at.is_empty()) {
        return Ok(Some((TERMINATING, "the object is being deleted".to_owned())));
    }
    if let Some(generation) = json::integer_at(object, &["metadata", "generation"])?
        && let Some(observed) = json::integer_at(object, &["status", "observedGeneration"])?
        && observed != generation
    {
        return Ok(Some((
            IN_PROGRESS,
            format!("observed generation is {observed}, the object is at {generation}"),
        )));
    }
    for condition in read_conditions(object)? {
        match (condition.kind, condition.status) {
            ("Reconciling", "True") => return Ok(Some((IN_PROGRESS, condition.message.to_owned()))),
            ("Stalled", "True") => return Ok(Some((FAILED, condition.message.to_owned()))),
            _ => {}
        }
    }
    Ok(None)
}

/// A kind without a rule of its own: its Ready condition decides, and without one it is current.
fn judge_by_ready(object: &Value) -> KstatusResult {
    for condition in read_conditions(object)?.iter().filter(|c| c.kind == "Ready") {
        match condition.status {
            "True" => return Ok(current_status("Ready is True")),
            "False" | "Unknown" => return Ok((IN_PROGRESS, condition.message.to_owned())),
            _ => {}
        }
    }
    Ok(current_status("no condition says otherwise"))
}
