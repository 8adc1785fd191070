//! Kinds that count replicas.

use serde_json::Value;

use super::{Computed, FAILED, IN_PROGRESS, Said, Unreadable, conditions, current};
use crate::json;

/// `status.<key>`, 0 where it is absent.
fn seen(object: &Value, key: &str) -> i64 {
    json::integer_or(object, &["status", key], 0)
}

/// `spec.replicas`; the controllers take 1 where it is absent.
fn wanted(object: &Value) -> i64 {
    json::integer_or(object, &["spec", "replicas"], 1)
}

/// The first count of `checks` that is short of the number beside it.
fn short(checks: &[(&str, i64, i64)]) -> Option<Said> {
    let (what, have, want) = checks.iter().find(|(_, have, want)| want > have)?;
    Some((IN_PROGRESS, format!("{what}: {have} of {want}")))
}

fn surplus(have: i64, want: i64) -> Option<Said> {
    (have > want).then(|| (IN_PROGRESS, format!("{} to be terminated", have.wrapping_sub(want))))
}

pub(super) fn stateful_set(object: &Value) -> Said {
    if json::string_or(object, &["spec", "updateStrategy", "type"], "") == "OnDelete" {
        return current("updated on delete only");
    }
    let want = wanted(object);
    let replicas = seen(object, "replicas");
    if let Some(early) =
        short(&[("replicas", replicas, want), ("ready", seen(object, "readyReplicas"), want)])
            .or_else(|| surplus(replicas, want))
    {
        return early;
    }
    // The API server sets the partition on every live object with the default strategy, so what follows is rare.
    let partition = json::integer_or(object, &["spec", "updateStrategy", "rollingUpdate", "partition"], -1);
    if partition != -1 {
        let want = want.wrapping_sub(partition);
        return short(&[("updated", seen(object, "updatedReplicas"), want)])
            .unwrap_or_else(|| current("partition rolled out"));
    }
    if let Some(early) = short(&[("current", seen(object, "currentReplicas"), want)]) {
        return early;
    }
    let revision = |key| json::string_or(object, &["status", key], "");
    if revision("currentRevision") != revision("updateRevision") {
        return (IN_PROGRESS, "current and updated revision differ".to_owned());
    }
    current("all replicas are ready")
}

pub(super) fn deployment(object: &Value) -> Computed {
    // Without a deadline the controller never sets Progressing, so nothing can be asked of it.
    let deadline = json::integer_or(object, &["spec", "progressDeadlineSeconds"], i64::from(i32::MAX));
    let mut progressed = deadline == i64::from(i32::MAX);
    let mut available = false;
    for condition in conditions(object)? {
        match (condition.kind, condition.status, condition.reason) {
            ("Progressing", _, "ProgressDeadlineExceeded") => {
                return Ok((FAILED, "progress deadline exceeded".to_owned()));
            }
            ("Progressing", "True", "NewReplicaSetAvailable") => progressed = true,
            ("Available", "True", _) => available = true,
            _ => {}
        }
    }
    let want = wanted(object);
    let replicas = seen(object, "replicas");
    let updated = seen(object, "updatedReplicas");
    let early = short(&[("replicas", replicas, want), ("updated", updated, want)])
        .or_else(|| surplus(replicas, want))
        .or_else(|| {
            short(&[
                ("available", seen(object, "availableReplicas"), updated),
                ("ready", seen(object, "readyReplicas"), want),
            ])
        });
    Ok(match early {
        Some(early) => early,
        None if !progressed => (IN_PROGRESS, "the new ReplicaSet is not available".to_owned()),
        None if !available => (IN_PROGRESS, "not available".to_owned()),
        None => current("all replicas are available"),
    })
}

pub(super) fn replica_set(object: &Value) -> Computed {
    if super::any(&conditions(object)?, "ReplicaFailure", "True") {
        return Ok((IN_PROGRESS, "ReplicaFailure is True".to_owned()));
    }
    let want = wanted(object);
    let early = short(&[
        ("labelled", seen(object, "fullyLabeledReplicas"), want),
        ("available", seen(object, "availableReplicas"), want),
        ("ready", seen(object, "readyReplicas"), want),
    ])
    .or_else(|| surplus(seen(object, "replicas"), want));
    Ok(early.unwrap_or_else(|| current("all replicas are available")))
}

pub(super) fn daemon_set(object: &Value) -> Computed {
    // Elsewhere an absent generation is forgiven; a DaemonSet's controller always writes it.
    for path in [["metadata", "generation"], ["status", "observedGeneration"]] {
        if json::integer(object, &path).map_err(Unreadable::from)?.is_none() {
            return Ok((IN_PROGRESS, format!("no {}", path.join("."))));
        }
    }
    let want = json::integer_or(object, &["status", "desiredNumberScheduled"], -1);
    if want == -1 {
        return Ok((IN_PROGRESS, "no status.desiredNumberScheduled".to_owned()));
    }
    let early = short(&[
        ("current", seen(object, "currentNumberScheduled"), want),
        ("updated", seen(object, "updatedNumberScheduled"), want),
        ("available", seen(object, "numberAvailable"), want),
        ("ready", seen(object, "numberReady"), want),
    ]);
    Ok(early.unwrap_or_else(|| current("ready on all nodes")))
}
