//! A few verdicts by the built binary, from end to end. The tables are in `crates/readiness/tests/cases`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Verdict and reason a minute after 00:00, the same after eleven, and the object.
const CASES: [(&str, &str, &str); 11] = [
    (
        "Progressing/ReplicasNotReady",
        "Progressing/ReplicasNotReady",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":2,"availableReplicas":2}}"#,
    ),
    (
        "Failed/ReplicaFailure",
        "Stuck/ReplicaFailure",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"exceeded quota","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
    ),
    (
        "Ready/PartitionReached",
        "Ready/PartitionReached",
        r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"generation":1},"spec":{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2}}},"status":{"observedGeneration":1,"replicas":3,"readyReplicas":3,"availableReplicas":3,"updatedReplicas":1,"currentRevision":"a","updateRevision":"b"}}"#,
    ),
    (
        "Failed/ContainerWaiting",
        "Stuck/ContainerWaiting",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Pending","containerStatuses":[{"name":"a","ready":false,"state":{"waiting":{"reason":"ErrImagePull"}}}]}}"#,
    ),
    (
        "Suspended/WaitingForFirstConsumer",
        "Suspended/WaitingForFirstConsumer",
        r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"storageClassName":"local"},"status":{"phase":"Pending"}}"#,
    ),
    (
        "Terminating/Finalizers",
        "Stuck/Finalizers",
        r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/hold"]},"status":{"conditions":[{"type":"Complete","status":"True"}]}}"#,
    ),
    (
        "Suspended/OwnerDecides",
        "Suspended/OwnerDecides",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"a","uid":"1","controller":true}]},"status":{"phase":"Failed"}}"#,
    ),
    (
        "Ready/Ready",
        "Ready/Ready",
        r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","endpoints":[{"conditions":{"ready":false}},{"conditions":{"ready":true}}]}"#,
    ),
    (
        "Failed/SaysError",
        "Failed/SaysError",
        r#"{"apiVersion":"cert-manager.io/v1","kind":"Issuer","status":{"conditions":[{"type":"Ready","status":"False","reason":"ErrInitIssuer"}]}}"#,
    ),
    (
        "Progressing/StaleGeneration",
        "Progressing/StaleGeneration",
        r#"{"apiVersion":"example.com/v1","kind":"Database","metadata":{"generation":2},"status":{"observedGeneration":3,"phase":"Running"}}"#,
    ),
    (
        "Unknown/NoSignal",
        "Unknown/NoSignal",
        r#"{"apiVersion":"example.com/v1","kind":"Database","status":{}}"#,
    ),
];

/// The verdicts of the built binary at a moment.
fn judge_all(at: &str) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rollcall"))
        .args(["eval", "-f", "-", "-o", "json", "--at", at])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let objects = CASES.map(|(.., object)| object).join(",");
    child.stdin.take().unwrap().write_all(format!("[{objects}]").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let word = |verdict: &Value, key: &str| verdict[key].as_str().unwrap().to_owned();
    said.iter().map(|verdict| format!("{}/{}", word(verdict, "verdict"), word(verdict, "reason"))).collect()
}

#[test]
fn the_binary_judges_objects_by_the_table_and_by_the_moment() {
    assert_eq!(judge_all("2026-01-01T00:01:00Z"), CASES.map(|(soon, ..)| soon));
    assert_eq!(judge_all("2026-01-01T00:11:00Z"), CASES.map(|(_, late, _)| late));
}
