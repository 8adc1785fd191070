//! Whatever numbers stand in an object: it is judged, and nothing panics.

use proptest::prelude::*;
use readiness::{StuckLimits, assess, final_outcome, lacks_pods, unready_since};
use serde_json::{Value, json};

use crate::object::{decode, kind_of};

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (-2_i64..4).prop_map(Value::from),
        prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]).prop_map(Value::from),
    ]
}

const KINDS: [(&str, &str); 8] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("policy/v1", "PodDisruptionBudget"),
    ("x.io/v1", "Db"),
    ("v1", "Pod"),
];
const SPEC: [&str; 4] = ["replicas", "completions", "parallelism", "partition"];
const STATUS: [&str; 14] = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "fullyLabeledReplicas",
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "updatedNumberScheduled",
    "active",
    "succeeded",
    "currentHealthy",
    "desiredHealthy",
    "startTime",
];

proptest! {
    #[test]
    fn no_number_stops_the_judge(
        (api_version, kind) in prop::sample::select(KINDS.to_vec()),
        spec in prop::collection::vec(any_number(), SPEC.len()),
        status in prop::collection::vec(any_number(), STATUS.len()),
        on_delete in any::<bool>(),
        any in any::<bool>(),
    ) {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": {}, "status": {}});
        for (name, value) in STATUS.iter().zip(status) {
            object["status"][name] = value;
        }
        object["spec"]["updateStrategy"] = json!({"type": if on_delete { "OnDelete" } else { "RollingUpdate" }});
        for (name, value) in SPEC.iter().zip(spec) {
            object["spec"][name] = value.clone();
            object["spec"]["updateStrategy"]["rollingUpdate"] = json!({ "partition": value });
        }
        let child = decode(&object);
        let kind = kind_of(&child);
        let verdict = assess(kind, &child.facts, &StuckLimits::default()).verdict;
        prop_assert!(!verdict.reason.to_string().is_empty());
        let _ = (final_outcome(kind, &child.facts), unready_since(kind, &child.facts, &verdict));
        let _ = lacks_pods(kind, &child.facts, any);
    }
}
