//! A workload that was ready, and is scaled: what it had then goes on to be counted on.

use readiness::{RuleKind, Steadiness};
use serde_json::{Value, json};
use watcher::plan::Interest;
use watcher::reflector::Reflector;

use crate::objects::{apply, owned, pod, uid};

/// A StatefulSet in this version: replicas wanted, there, and available; its controller has seen the first `observed`
/// generations.
fn set(version: u32, (generation, observed): (u32, u32), wanted: u32, there: u32, available: u32) -> Value {
    let mut set = pod(1, version, "True");
    set["metadata"]["generation"] = json!(generation);
    set["spec"] = json!({ "replicas": wanted });
    set["status"] = json!({ "observedGeneration": observed, "replicas": there, "updatedReplicas": there,
        "readyReplicas": available, "availableReplicas": available, "currentRevision": "a", "updateRevision": "a" });
    set
}

fn steadiness(reflector: &Reflector, interest: &Interest, object: &Value) -> Steadiness {
    apply(reflector, interest, object);
    let id = reflector.find_object(&uid(1)).unwrap();
    reflector.read_row(id, |row| row.assessment.verdict.steadiness).unwrap()
}

#[test]
fn what_it_had_when_it_was_ready_counts_until_it_is_lost_or_it_is_ready_again() {
    use Steadiness::{Available, Unobserved, Unsteady};
    let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
    let reflector = Reflector::new(|| ());
    for (what, object, expected) in [
        ("it was never ready", set(1, (1, 1), 6, 3, 3), Unsteady),
        ("it is ready", set(2, (1, 1), 3, 3, 3), Unsteady),
        ("it is scaled", set(3, (2, 1), 6, 3, 3), Unobserved),
        ("pods come", set(4, (2, 2), 6, 4, 3), Available),
        ("and become ready", set(5, (2, 2), 6, 6, 5), Available),
        ("as many as before are left", set(6, (2, 2), 6, 6, 3), Available),
        ("one less, as its budget allows", set(7, (2, 2), 6, 6, 2), Available),
        ("too many are lost", set(8, (2, 2), 6, 6, 1), Unsteady),
        ("and what it had counts no more", set(9, (2, 2), 6, 6, 3), Unsteady),
        ("it is ready with more", set(10, (2, 2), 6, 6, 6), Unsteady),
        ("which is what counts now", set(11, (2, 2), 6, 6, 4), Unsteady),
    ] {
        assert_eq!(steadiness(&reflector, &sets, &object), expected, "{what}");
    }
    // Another process has not seen it ready.
    let restarted = Reflector::new(|| ());
    assert_eq!(steadiness(&restarted, &sets, &set(5, (2, 2), 6, 4, 3)), Unsteady);
}
