//! Seeded mutations of the sample objects, most of them small, some of them extreme.

use serde_json::{Map, Value, json};

/// splitmix64: the same seed gives the same objects everywhere.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> SeededRandom {
        SeededRandom(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).expect("below a usize")
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Returns `count` objects, each a sample with up to six mutations.
pub(crate) fn mutants(seed: u64, count: usize, samples: &[Value]) -> Vec<Value> {
    let mut dice = SeededRandom::new(seed);
    (0..count)
        .map(|_| {
            let mut object = dice.pick(samples).clone();
            for _ in 0..dice.below(7) {
                mutate(&mut dice, &mut object);
            }
            object
        })
        .collect()
}

fn mutate(dice: &mut SeededRandom, object: &mut Value) {
    match dice.below(10) {
        0 => metadata(dice, object),
        1..=3 => {
            let condition = condition(dice);
            if let Some(list) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
                let at = dice.below(list.len() + 1);
                list.insert(at, condition);
            } else if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.insert("conditions".into(), json!([condition]));
            }
        }
        _ => {
            let depth = 2 + dice.below(5);
            descend(dice, object, depth);
        }
    }
}

fn metadata(dice: &mut SeededRandom, object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let (key, value) = match dice.below(6) {
        0 => (
            "deletionTimestamp",
            dice.pick(&[json!("2024-01-01T00:00:00Z"), json!(""), json!("soon"), json!(null)]).clone(),
        ),
        1 => ("generation", dice.pick(&[json!(1), json!(2), json!(3), json!("3"), json!(2.0)]).clone()),
        2 => (
            "creationTimestamp",
            dice.pick(&[json!("2099-01-01T00:00:00Z"), json!("2001-01-01T00:00:00Z")]).clone(),
        ),
        3 => (
            "finalizers",
            dice.pick(&[json!(["argocd.argoproj.io/hook-finalizer"]), json!(["a/b"]), json!([1])]).clone(),
        ),
        4 => ("annotations", dice.pick(&[json!({"a": "b"}), json!({"a": 1}), json!({"a": null})]).clone()),
        _ => ("name", dice.pick(&[json!("quo\"te\n"), json!(7), json!("ünï")]).clone()),
    };
    metadata.insert(key.into(), value);
}

const CONDITION_TYPES: [&str; 21] = [
    "Ready",
    "Available",
    "Progressing",
    "ReplicaFailure",
    "Reconciling",
    "Stalled",
    "Complete",
    "Failed",
    "Suspended",
    "PodScheduled",
    "Established",
    "NamesAccepted",
    "Terminating",
    "NonStructuralSchema",
    "AbleToScale",
    "ScalingActive",
    "ScalingLimited",
    "DisruptionAllowed",
    "SuccessCriteriaMet",
    "FailureTarget",
    "Initialized",
];

const REASONS: [&str; 15] = [
    "ProgressDeadlineExceeded",
    "NewReplicaSetAvailable",
    "Unschedulable",
    "Installing",
    "FailedGetScale",
    "FailedGetResourceMetric",
    "FailedGetObjectMetric",
    "FailedGetPodsMetric",
    "FailedGetExternalMetric",
    "FailedComputeMetricsReplicas",
    "InvalidSelector",
    "InsufficientPods",
    "InvalidCABundle",
    "SyncFailed",
    "",
];

fn condition(dice: &mut SeededRandom) -> Value {
    let mut condition = json!({
        "type": dice.pick(&CONDITION_TYPES), "status": dice.pick(&["True", "False", "Unknown", "true"]),
        "reason": dice.pick(&REASONS), "message": dice.pick(&["first line\n second ", "", "why not"]),
    });
    if dice.below(20) == 0 {
        let key = *dice.pick(&["type", "status", "reason", "message"]);
        condition[key] = scalar(dice);
    }
    condition
}

/// Descends to a random position and mutates the value there: another value, another number, removed, or duplicated.
fn descend(dice: &mut SeededRandom, value: &mut Value, depth: usize) {
    match value {
        Value::Object(map) if depth > 0 && !map.is_empty() => {
            let at = dice.below(map.len());
            let key = map.keys().nth(at).expect("in range").clone();
            if dice.below(8) == 0 && !["kind", "apiVersion"].contains(&key.as_str()) {
                map.remove(&key);
            } else if !["kind", "apiVersion"].contains(&key.as_str()) || dice.below(20) == 0 {
                descend(dice, &mut map[&key], depth - 1);
            }
        }
        Value::Array(list) if depth > 0 && !list.is_empty() => {
            let at = dice.below(list.len());
            match dice.below(8) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                _ => descend(dice, &mut list[at], depth - 1),
            }
        }
        Value::Number(_) if dice.below(3) > 0 => *value = json!(dice.below(5)),
        Value::Bool(flag) if dice.below(3) > 0 => *value = json!(!*flag),
        Value::String(_) if dice.below(3) > 0 => {
            *value = json!(dice.pick(&[
                "Always",
                "OnFailure",
                "Never",
                "OnDelete",
                "RollingUpdate",
                "LoadBalancer",
                "ClusterIP",
                "Pending",
                "Running",
                "Succeeded",
                "Failed",
                "Bound",
                "Lost",
                "Unknown",
                "True",
                "False",
                "CrashLoopBackOff",
                "ErrImagePull",
                "ContainerCreating",
                "CreateContainerConfigError",
                "OOMKilled",
                "a-1",
                "2025-05-05T05:05:05Z",
                "",
                "Error"
            ]));
        }
        _ => *value = scalar(dice),
    }
}

fn scalar(dice: &mut SeededRandom) -> Value {
    match dice.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!("3"),
        3 => json!(3),
        4 => json!(2.5),
        5 => json!(4.0),
        6 => json!(4_294_967_298_i64),
        7 => json!(u64::MAX),
        8 => json!(-1),
        9 => json!([]),
        10 => Value::Object(Map::new()),
        11 => json!(["x"]),
        12 => json!({"x": 1}),
        _ => json!("text"),
    }
}
