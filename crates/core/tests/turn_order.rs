//! The order of one turn, told in sentences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::{KindId, ObjectId};
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::Core;
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);

/// One parent above many pods, which its policy wants to be well for ten seconds.
struct TurnOrderCluster {
    core: Core,
    pods: KindId,
    now: Time,
}

fn pod(number: u32, version: u32, ready: &str) -> Value {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" });
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": format!("pod-{number}"), "namespace": "shop", "uid": format!("pod-{number}"), "generation": version,
        "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } })
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

impl TurnOrderCluster {
    /// Each of so many pods is ready since now.
    fn begin(pods: u32) -> TurnOrderCluster {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s", "hold": "10s",
            "children": [{ "kind": { "group": "", "kind": "Pod" } }], "mode": "shadow",
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut registry = IdRegistry::default();
        let acceptance = aggregator::Acceptance::Accepted;
        let policy =
            PolicyInUse { id: registry.new_policy_id(), name: "db".to_owned(), compiled, acceptance };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
        let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": {}, "metadata": {
            "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
        let all = std::iter::once(parent).chain((1..=pods).map(|number| pod(number, 1, "True")));
        let objects: Vec<ParentObject> = all.map(|object| read(&object)).collect();
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let pods = plan.kinds.values().find(|kind| kind.key.1 == "Pod").unwrap().id;
        let mut cluster = TurnOrderCluster { core, pods, now: NOW };
        cluster.core.run_turn(NOW);
        cluster
    }

    /// The watch brings a pod; the loop has not looked at it yet.
    fn bring(&self, number: u32, version: u32, ready: &str) {
        let object = read(&pod(number, version, ready));
        self.core.reflector.apply_object(self.pods, &object.child, Some(&object.text));
    }

    /// A turn runs so long after the start.
    fn turn_after(&mut self, span: Duration) {
        self.now = NOW + span;
        self.core.run_turn(self.now);
    }

    fn reason(&self) -> ParentReason {
        let parent: ObjectId = self.core.reflector.find_object("db").unwrap();
        let policy = self.core.engine.policies_of(parent).next().unwrap();
        self.core.engine.answer_of(parent, policy).unwrap().reason
    }
}

#[test]
fn a_turn_that_comes_late_does_not_take_for_quiet_what_the_watch_says_was_not() {
    let mut cluster = TurnOrderCluster::begin(2);
    cluster.turn_after(Duration::from_secs(9));
    assert_eq!(cluster.reason(), ParentReason::ChildrenSettling);
    cluster.bring(1, 2, "False");
    cluster.turn_after(Duration::from_secs(30));
    assert_eq!(cluster.reason(), ParentReason::ChildrenProgressing, "its time was up, and it is not ready");
}

#[test]
fn what_is_too_much_for_one_turn_makes_nothing_ready_before_it_was_seen() {
    let mut cluster = TurnOrderCluster::begin(400);
    for number in 1..=400 {
        cluster.bring(number, 2, if number == 400 { "False" } else { "True" });
    }
    let mut turns = 0;
    while cluster.core.reflector.dirty_len() > 0 {
        cluster.turn_after(Duration::from_secs(30));
        assert_ne!(cluster.reason(), ParentReason::AllChildrenReady, "after {turns} turns");
        turns += 1;
    }
    assert!(turns > 1, "one turn was enough for all of them");
}
