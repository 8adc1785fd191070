//! What is said beside the True of a parent whose Kopf operator leaves the same mark after a failure.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::Acceptance;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::Core;
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);
const HIDDEN: &str = "1 of 1 ready; whether its Kopf operator succeeded cannot be seen";
const AWAITED: &str = "waiting for the operator to handle generation 2";

/// A Database of this generation, with the mark of its spec and what is kept beside it.
fn database(generation: u32, outcome: Option<&Value>) -> Value {
    let mark = "{\"spec\":{\"size\":1}}\n";
    let mut annotations = json!({ "kopf.zalando.org/last-handled-configuration": mark });
    if let Some(outcome) = outcome {
        annotations["kopf.zalando.org/last-outcome"] = json!(outcome.to_string());
    }
    json!({ "apiVersion": "example.com/v1", "kind": "Database", "spec": { "size": 1 }, "status": {}, "metadata": {
        "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": generation,
        "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations } })
}

/// What the parent is told once its only child has been ready for long, under a policy with these fields.
fn told(fields: &Value, parent: &Value) -> String {
    let mut spec = json!({
        "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s",
        "children": [{ "kind": { "group": "", "kind": "Pod" } }],
    });
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
    let mut registry = IdRegistry::default();
    let acceptance = Acceptance::Accepted;
    let policy = PolicyInUse { id: registry.new_policy_id(), name: "db".to_owned(), compiled, acceptance };
    let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "pod", "namespace": "shop", "uid": "pod", "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    let objects =
        [parent, &pod].map(|object| serde_json::from_str::<ParentObject>(&object.to_string()).unwrap());
    let resync = Duration::from_secs(30);
    let mut core = Core::new(Arc::new(Reflector::new(|| ())), resync, resync, Seed(0));
    load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
    let mut now = NOW;
    for _ in 0..20 {
        core.run_turn(now);
        now = now + Duration::from_secs(1);
    }
    let parent = core.reflector.find_object("db").unwrap();
    core.render_conditions(parent, now).unwrap().entries.remove(0).message
}

#[test]
fn a_true_that_rests_on_a_mark_that_a_failure_leaves_too_says_so() {
    let kept = json!({ "generation": 2, "failed": {} });
    for (what, fields, parent, message) in [
        ("a changed spec", json!({}), database(2, None), HIDDEN),
        ("a first spec", json!({}), database(1, None), HIDDEN),
        ("the operator keeps its outcomes", json!({}), database(2, Some(&kept)), "1 of 1 ready"),
        (
            "the policy asks for a proof, which is not given yet",
            json!({ "proof": "true" }),
            database(2, None),
            AWAITED,
        ),
        ("a child has to move", json!({ "evidence": "kopf" }), database(2, None), "1 of 1 ready"),
        ("marks are no evidence", json!({ "evidence": "own" }), database(2, None), "1 of 1 ready"),
    ] {
        assert_eq!(told(&fields, &parent), message, "{what}");
    }
}
