//! When what makes no progress is stuck.
//!
//! `WHEN apiVersion Kind | parts…`, where `WHEN` is the second after the creation from which the object is stuck for lack of
//! progress, or `never`. Every status was last changed a minute after the creation.

use std::time::Duration;

use readiness::{Level, StuckLimits, Time, assess};
use serde_json::{Value, json};

use crate::object::{CREATED, decode, kind_of, parse_line, table_lines};

const NO_PROGRESS: &str = r"
# Kinds without a deadline of their own: too few, too many, not observed, not begun.
660 apps/v1 StatefulSet | gen=1 | obs=1 | spec.replicas=3 | replicas=3 | readyReplicas=2 | updatedReplicas=3 | currentRevision=a | updateRevision=a
660 apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=3 | replicas=3 | readyReplicas=3 | updatedReplicas=1 | currentRevision=a | updateRevision=b
660 apps/v1 StatefulSet | gen=2 | obs=2 | spec.replicas=1 | replicas=3 | readyReplicas=3 | updatedReplicas=3 | currentRevision=a | updateRevision=a
660 apps/v1 StatefulSet | gen=2 | obs=1 | spec.replicas=1 | replicas=1 | readyReplicas=1 | currentRevision=a | updateRevision=a
660 apps/v1 StatefulSet | gen=1 | spec.replicas=1
660 apps/v1 DaemonSet | gen=1 | obs=1 | desiredNumberScheduled=4 | currentNumberScheduled=4 | updatedNumberScheduled=4 | numberReady=3
660 apps/v1 ReplicaSet | gen=1 | obs=1 | spec.replicas=2 | replicas=2 | fullyLabeledReplicas=2 | readyReplicas=1
660 v1 ReplicationController | gen=1 | obs=1 | spec.replicas=2 | replicas=2 | readyReplicas=1
# A Deployment measures its rollouts itself, and nothing after them.
never apps/v1 Deployment | gen=1 | obs=1 | spec.replicas=2 | replicas=2 | updatedReplicas=2 | readyReplicas=1 | +Progressing:ReplicaSetUpdated
660 apps/v1 Deployment | gen=1 | obs=1 | spec.replicas=2 | replicas=2 | updatedReplicas=2 | readyReplicas=1 | +Progressing:NewReplicaSetAvailable | -Available
660 apps/v1 Deployment | gen=1 | obs=1 | spec.replicas=2 | replicas=2 | updatedReplicas=2 | readyReplicas=1 | -Available
# A pod at work is a Job's progress; where the API server does not count those, nothing is known.
660 batch/v1 Job | startTime=2026-01-01T00:00:30Z | active=1 | ready=0 | spec.completions=1
660 batch/v1 Job | startTime=2026-01-01T00:00:30Z | ready=0 | spec.completions=1
never batch/v1 Job | startTime=2026-01-01T00:00:30Z | active=2 | ready=1 | spec.completions=5
never batch/v1 Job | startTime=2026-01-01T00:00:30Z | active=1 | spec.completions=1
# A custom resource that counts replicas; one that only says that it is at work may take its time.
660 postgresql.cnpg.io/v1 Cluster | gen=1 | obs=1 | spec.instances=3 | readyInstances=1
660 x.io/v1 Db | gen=1 | obs=1 | spec.replicas=3 | readyReplicas=1 | -Ready:Creating
never x.io/v1 Db | gen=1 | obs=1 | spec.replicas=3 | readyReplicas=3 | -Ready:Creating
never x.io/v1 Db | gen=1 | obs=1 | -Ready:Creating
# What is not at work: ready, failed, suspended, paused.
never apps/v1 StatefulSet | gen=1 | obs=1 | spec.replicas=1 | replicas=1 | readyReplicas=1 | updatedReplicas=1 | currentRevision=a | updateRevision=a
never apps/v1 ReplicaSet | gen=1 | obs=1 | spec.replicas=2 | +ReplicaFailure:Forbidden
never batch/v1 Job | +Failed:BackoffLimitExceeded | startTime=2026-01-01T00:00:30Z | ready=0
never batch/v1 Job | spec.suspend=true | startTime=2026-01-01T00:00:30Z | ready=0
";

fn moment_text(second: i64) -> String {
    Time(CREATED.0 + second * 1_000).to_string()
}

/// An entry of `managedFields`.
fn changed(manager: &str, part: &str, second: i64) -> Value {
    json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": moment_text(second),
        "fieldsType": "FieldsV1", "fieldsV1": {part: {"f:x": {}}}})
}

/// The moment from which the object is stuck for lack of progress, in seconds after its creation.
fn stuck_at(object: &Value, limits: &StuckLimits) -> Option<i64> {
    let child = decode(object);
    let assessment = assess(kind_of(&child), &child.facts, limits);
    let (at, verdict) = *assessment.then?;
    (verdict.level == Level::Stuck && verdict.reason.as_token() == "NoProgress")
        .then(|| (at.0 - CREATED.0) / 1_000)
}

#[test]
fn what_its_controller_is_at_work_on_is_stuck_once_nothing_has_moved_for_the_limit() {
    let mut wrong = Vec::new();
    for line in table_lines(NO_PROGRESS) {
        let (expected, mut object) = parse_line(line);
        object["metadata"]["managedFields"] =
            json!([changed("kubectl", "f:spec", 0), changed("kcm", "f:status", 60)]);
        let told = stuck_at(&object, &StuckLimits::default()).map_or("never".to_owned(), |at| at.to_string());
        if told != expected {
            wrong.push(format!("- {line}\n+ {}", line.replacen(expected, &told, 1)));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn only_a_change_of_spec_or_status_by_somebody_else_is_progress() {
    let (_, mut set) =
        parse_line("- apps/v1 StatefulSet | gen=1 | obs=1 | spec.replicas=3 | replicas=3 | readyReplicas=2");
    let limits = StuckLimits { progress: Duration::from_secs(30), ..StuckLimits::default() };
    for (fields, expected) in [
        (json!(null), None),
        (json!([]), None),
        (json!([changed("kubectl", "f:spec", 0)]), Some(30)),
        (json!([changed("kcm", "f:status", 60), changed("hpa", "f:spec", 90)]), Some(120)),
        (json!([changed("kcm", "f:status", 60), changed("kubectl", "f:metadata", 90)]), Some(90)),
        (json!([changed("kcm", "f:status", 60), changed("rollcall", "f:status", 90)]), Some(90)),
        (
            json!([changed("kcm", "f:status", 60), {"manager": "odd", "fieldsV1": {"f:status": 7}, "time": 9}]),
            Some(90),
        ),
    ] {
        set["metadata"]["managedFields"] = fields.clone();
        assert_eq!(stuck_at(&set, &limits), expected, "{fields}");
    }
}

#[test]
fn what_makes_no_progress_says_what_it_lacks() {
    let (_, mut set) =
        parse_line("- apps/v1 StatefulSet | gen=1 | obs=1 | spec.replicas=3 | replicas=3 | readyReplicas=2");
    set["metadata"]["managedFields"] = json!([changed("kcm", "f:status", 60)]);
    let child = decode(&set);
    let assessment = assess(kind_of(&child), &child.facts, &StuckLimits::default());
    assert_eq!(assessment.verdict.reason.to_string(), "2 of 3 replicas ready");
    assert_eq!(assessment.then.unwrap().1.reason.to_string(), "2 of 3 replicas ready, without progress");
}

/// What waits for something outside, and how it is once that is asked for: long after it was created.
const WAITS: &str = r#"
Stuck/NotStarted batch/v1 Job | spec.suspend=false
Stuck/NotStarted batch/v1 Job | spec.suspend=false | spec.completions=1
Stuck/PendingLoadBalancer v1 Service | spec.type=LoadBalancer | loadBalancer={}
Stuck/PendingLoadBalancer networking.k8s.io/v1 Ingress | loadBalancer={}
Stuck/VolumePending v1 PersistentVolumeClaim | phase=Pending | spec.storageClassName=a | metadata.annotations={"volume.kubernetes.io/selected-node":"n"}
"#;

#[test]
fn what_was_asked_for_long_after_its_creation_is_stuck_only_when_it_was_waited_for() {
    let limits = StuckLimits { pending: Duration::from_mins(10), ..StuckLimits::default() };
    let by_scheduler = json!({"manager": "scheduler", "operation": "Update", "time": moment_text(3_600),
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:volume.kubernetes.io/selected-node": {}}}}});
    for line in table_lines(WAITS) {
        let (expected, mut object) = parse_line(line);
        let is_claim = object["kind"] == "PersistentVolumeClaim";
        let asked = if is_claim { by_scheduler.clone() } else { changed("queue", "f:spec", 3_600) };
        let others = json!([changed("kubectl", "f:spec", 0), changed("kubectl", "f:metadata", 7_200)]);
        for (entries, stuck_at) in [(json!([asked, others[0], others[1]]), 4_200), (others.clone(), 600)] {
            object["metadata"]["managedFields"] = entries;
            let child = decode(&object);
            let assessment = assess(kind_of(&child), &child.facts, &limits);
            assert_eq!(assessment.verdict.level, Level::Progressing, "{line}");
            let (at, verdict) = *assessment.then.expect("it is stuck some day");
            let told = format!("{:?}/{}", verdict.level, verdict.reason.as_token());
            assert_eq!((told.as_str(), (at.0 - CREATED.0) / 1_000), (expected, stuck_at), "{line}");
        }
    }
}
