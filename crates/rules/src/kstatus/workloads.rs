//! Kinds that count replicas.

use serde_json::Value;

use super::conditions::read_conditions;
use super::status::{FAILED, IN_PROGRESS, KstatusError, KstatusMessage, KstatusResult, current_status};
use crate::json;

/// Returns `status.<key>`, 0 if absent.
fn status_count(object: &Value, key: &str) -> i64 {
    json::integer_or(object, &["status", key], 0)
}

/// Returns `spec.replicas`; 1 if absent, as the controllers default it.
fn wanted_replicas(object: &Value) -> i64 {
    json::integer_or(object, &["spec", "replicas"], 1)
}

/// Returns the status of the first of `checks` whose count is below the number beside it.
fn find_shortfall(checks: &[(&str, i64, i64)]) -> Option<KstatusMessage> {
    let (what, have, want) = checks.iter().find(|(_, have, want)| want > have)?;
    Some((IN_PROGRESS, format!("{what}: {have} of {want}")))
}

fn find_surplus(have: i64, want: i64) -> Option<KstatusMessage> {
    (have > want).then(|| (IN_PROGRESS, format!("{} to be terminated", have.wrapping_sub(want))))
}

pub(super) fn judge_stateful_set(object: &Value) -> KstatusMessage {
    if json::string_or(object, &["spec", "updateStrategy", "type"], "") == "OnDelete" {
        return current_status("updated on delete only");
    }
    let want = wanted_replicas(object);
    let replicas = status_count(object, "replicas");
    if let Some(early) = find_shortfall(&[
        ("replicas", replicas, want),
        ("ready", status_count(object, "readyReplicas"), want),
    ])
    .or_else(|| find_surplus(replicas, want))
    {
        return early;
    }
    // The API server sets the partition on every live object with the default strategy, so the following is rare.
    let partition = json::integer_or(object, &["spec", "updateStrategy", "rollingUpdate", "partition"], -1);
    if partition != -1 {
        let want = want.wrapping_sub(partition);
        return find_shortfall(&[("updated", status_count(object, "updatedReplicas"), want)])
            .unwrap_or_else(|| current_status("partition rolled out"));
    }
    if let Some(early) = find_shortfall(&[("current", status_count(object, "currentReplicas"), want)]) {
        return early;
    }
    let revision = |key| json::string_or(object, &["status", key], "");
    if revision("currentRevision") != revision("updateRevision") {
        return (IN_PROGRESS, "current and updated revision differ".to_owned());
    }
    current_status("all replicas are ready")
}

pub(super) fn judge_deployment(object: &Value) -> KstatusResult {
    // Without a deadline the controller never sets Progressing, so it cannot be checked.
    let deadline = json::integer_or(object, &["spec", "progressDeadlineSeconds"], i64::from(i32::MAX));
    let mut progressed = deadline == i64::from(i32::MAX);
    let mut available = false;
    for condition in read_conditions(object)? {
        match (condition.kind, condition.status, condition.reason) {
            ("Progressing", _, "ProgressDeadlineExceeded") => {
                return Ok((FAILED, "progress deadline exceeded".to_owned()));
            }
            ("Progressing", "True", "NewReplicaSetAvailable") => progressed = true,
            ("Available", "True", _) => available = true,
            _ => {}
        }
    }
    let want = wanted_replicas(object);
    let replicas = status_count(object, "replicas");
    let updated = status_count(object, "updatedReplicas");
    let early = find_shortfall(&[("replicas", replicas, want), ("updated", updated, want)])
        .or_else(|| find_surplus(replicas, want))
        .or_else(|| {
            find_shortfall(&[
                ("available", status_count(object, "availableReplicas"), updated),
                ("ready", status_count(object, "readyReplicas"), want),
            ])
        });
    Ok(match early {
        Some(early) => early,
        None if !progressed => (IN_PROGRESS, "the new ReplicaSet is not available".to_owned()),
        None if !available => (IN_PROGRESS, "not available".to_owned()),
        None => current_status("all replicas are available"),
    })
}

pub(super) fn judge_replica_set(object: &Value) -> KstatusResult {
    if super::conditions::has_condition(&read_conditions(object)?, "ReplicaFailure", "True") {
        return Ok((IN_PROGRESS, "ReplicaFailure is True".to_owned()));
    }
    let want = wanted_replicas(object);
    let early = find_shortfall(&[
        ("labelled", status_count(object, "fullyLabeledReplicas"), want),
        ("available", status_count(object, "availableReplicas"), want),
        ("ready", status_count(object, "readyReplicas"), want),
    ])
    .or_else(|| find_surplus(status_count(object, "replicas"), want));
    Ok(early.unwrap_or_else(|| current_status("all replicas are available")))
}

pub(super) fn judge_daemon_set(object: &Value) -> KstatusResult {
    // For other kinds an absent generation is tolerated; a DaemonSet's controller always writes it.
    for path in [["metadata", "generation"], ["status", "observedGeneration"]] {
        if json::integer_at(object, &path).map_err(KstatusError::from)?.is_none() {
            return Ok((IN_PROGRESS, format!("no {}", path.join("."))));
        }
    }
    let want = json::integer_or(object, &["status", "desiredNumberScheduled"], -1);
    if want == -1 {
        return Ok((IN_PROGRESS, "no status.desiredNumberScheduled".to_owned()));
    }
    let early = find_shortfall(&[
        ("current", status_count(object, "currentNumberScheduled"), want),
        ("updated", status_count(object, "updatedNumberScheduled"), want),
        ("available", status_count(object, "numberAvailable"), want),
        ("ready", status_count(object, "numberReady"), want),
    ]);
    Ok(early.unwrap_or_else(|| current_status("ready on all nodes")))
}
