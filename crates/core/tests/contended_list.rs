//! A parent whose list of conditions is no map, beside a client that writes the list all the time, told in sentences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::{Acceptance, DeliveryOutcome, KindId};
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::write_reply::WriteReply;
use rollcall_core::{Core, ParentWrite};
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

const START: Time = Time(1_800_000_000_000);
/// From the moment at which a write is decided to its answer.
const LATENCY: Duration = Duration::from_millis(5);

/// A parent above one pod, and a neighbour that changes its own entry between any two requests while it is busy.
struct ContendedParent {
    core: Core,
    now: Time,
    kinds: [KindId; 2],
    parent: Value,
    pod_version: u64,
    neighbour_is_busy: bool,
    forestalled: usize,
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

fn pod(ready: bool, version: u64) -> Value {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" });
    let status = if ready { "True" } else { "False" };
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": "pod", "namespace": "shop", "uid": "pod", "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": status }] } })
}

impl ContendedParent {
    /// The neighbour's entry stands there already; it is not busy yet, and the pod is ready.
    fn begin() -> ContendedParent {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s",
            "debounce": { "quiet": "5ms", "cap": "20ms" },
            "children": [{ "kind": { "group": "", "kind": "Pod" } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut registry = IdRegistry::default();
        let (id, name) = (registry.new_policy_id(), "db".to_owned());
        let policy = PolicyInUse { id, name, compiled, acceptance: Acceptance::Accepted };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
        let neighbour = json!({ "type": "Neighbour", "status": "True", "message": "round 0" });
        let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database",
            "status": { "conditions": [neighbour] }, "metadata": {
            "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
        let mut core =
            Core::new(Arc::new(Reflector::new(|| ())), Duration::from_secs(30), Duration::ZERO, Seed(0));
        let objects = [read(&parent), read(&pod(true, 1))];
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), START);
        let kinds = ["Database", "Pod"].map(|of| plan.kinds.values().find(|k| k.key.1 == of).unwrap().id);
        let (now, pod_version, forestalled) = (START, 1, 0);
        let neighbour_is_busy = false;
        ContendedParent { core, now, kinds, parent, pod_version, neighbour_is_busy, forestalled }
    }

    fn show_parent(&self) {
        let live = read(&self.parent);
        self.core.reflector.apply_object(self.kinds[0], &live.child, Some(&live.text));
    }

    fn bump_version(&mut self) -> u64 {
        let version = &mut self.parent["metadata"]["resourceVersion"];
        let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
        *version = json!(next.to_string());
        next
    }

    fn neighbour_writes(&mut self) {
        let round = self.bump_version();
        let entries = self.parent["status"]["conditions"].as_array_mut().unwrap();
        let own = entries.iter_mut().find(|entry| entry["type"] == "Neighbour").unwrap();
        own["message"] = json!(format!("round {round}"));
    }

    fn answer(&mut self, write: &ParentWrite) -> DeliveryOutcome {
        if self.neighbour_is_busy {
            self.neighbour_writes();
        }
        let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
        let reply = if json_patch::patch(&mut self.parent, &patch).is_ok() {
            self.bump_version();
            WriteReply::Accepted
        } else {
            self.forestalled += 1;
            WriteReply::Conflict
        };
        self.show_parent();
        reply.write_outcome(write, Duration::ZERO)
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            for write in self.core.run_turn(self.now) {
                self.now = self.now + LATENCY;
                let outcome = self.answer(&write);
                self.core.settle_write(self.now, write.parent, write.ticket, outcome);
            }
            while self.core.engine.take_due_resync(self.now).is_some() {}
            let next = self.core.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    fn turn_pod(&mut self, ready: bool) {
        self.pod_version += 1;
        let live = read(&pod(ready, self.pod_version));
        self.core.reflector.apply_object(self.kinds[1], &live.child, Some(&live.text));
    }

    /// Types and statuses of the entries that are Rollcall's.
    fn told(&self) -> Vec<(&str, &str)> {
        let entries = self.parent["status"]["conditions"].as_array().unwrap().iter();
        let said = entries.map(|entry| (entry["type"].as_str().unwrap(), entry["status"].as_str().unwrap()));
        let mut ours: Vec<_> = said.filter(|(kind, _)| *kind != "Neighbour").collect();
        ours.sort_unstable();
        ours
    }
}

#[test]
fn every_turn_is_told_within_a_moment_however_busy_the_neighbour_is() {
    let mut db = ContendedParent::begin();
    db.run_for(Duration::from_mins(1));
    assert_eq!(db.told(), [("Ready", "True")]);
    db.neighbour_is_busy = true;
    for turn in 0..40 {
        let ready = turn % 2 == 1;
        db.turn_pod(ready);
        // The second of two turns waits for the window of writes to a parent.
        db.run_for(Duration::from_secs(1));
        let expected = if ready { "True" } else { "False" };
        assert_eq!(db.told(), [("Ready", expected)], "turn {turn}");
        db.run_for(Duration::from_secs(20));
    }
    let minutes = (db.now - START).as_secs() / 60;
    assert!(
        db.forestalled as u64 <= 2 * (minutes + 1),
        "{} writes forestalled in {minutes} min",
        db.forestalled
    );
}

#[test]
fn what_stands_beside_is_added_when_the_neighbour_rests() {
    let mut db = ContendedParent::begin();
    db.run_for(Duration::from_mins(1));
    db.neighbour_is_busy = true;
    db.turn_pod(false);
    db.run_for(Duration::from_mins(5));
    assert_eq!(db.told(), [("Ready", "False")]);
    assert!((2..=8).contains(&db.forestalled), "{} writes forestalled in five minutes", db.forestalled);
    db.neighbour_is_busy = false;
    db.run_for(Duration::from_mins(2));
    assert_eq!(db.told(), [("Ready", "False"), ("Reconciling", "True")]);
    let before = db.forestalled;
    db.turn_pod(true);
    db.run_for(Duration::from_secs(1));
    assert_eq!((db.told(), db.forestalled), (vec![("Ready", "True")], before));
}
