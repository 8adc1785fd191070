//! The self-check: what the engine missed is found, reported once, and put right.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::KindId;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::{Core, RecountDrift, RecountSchedule};
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);

/// One parent with three pods, all of which the engine has observed.
struct RecountCluster {
    core: Core,
    recounts: RecountSchedule,
    now: Time,
    pods: KindId,
}

fn pod(number: u32, version: u32, ready: &str) -> Value {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "controller": true, "name": "db", "uid": "db" });
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": format!("pod-{number}"), "namespace": "shop", "uid": format!("pod-{number}"),
        "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } })
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

impl RecountCluster {
    fn observed() -> RecountCluster {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "group": "", "kind": "Pod" } }],
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
        let pods = (1..=3).map(|number| pod(number, 1, "True"));
        let objects: Vec<ParentObject> =
            [parent].into_iter().chain(pods).map(|object| read(&object)).collect();
        let resync = Duration::from_secs(30);
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), resync, resync, Seed(0));
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let pods = plan.kinds.values().find(|kind| kind.key.1 == "Pod").unwrap().id;
        RecountCluster { core, recounts: RecountSchedule::new(Seed(1)), now: NOW, pods }
    }

    /// A pod changes, and the loop does not hear of it.
    fn lose_change(&self, object: &Value) {
        let live = read(object);
        self.core.reflector.apply_object(self.pods, &live.child, Some(&live.text));
        assert_eq!(self.core.reflector.take_dirty(usize::MAX).len(), 1);
    }

    /// Runs what is due; what was found.
    fn run_for(&mut self, span: Duration) -> Vec<RecountDrift> {
        let (end, mut found) = (self.now + span, Vec::new());
        while let Some(at) = self.recounts.next_deadline().filter(|at| *at <= end) {
            self.now = at;
            found.extend(self.recounts.run_due(&mut self.core, &[self.pods], at));
        }
        self.now = end;
        found
    }
}

#[test]
fn after_a_list_what_was_missed_is_found_told_once_and_put_right() {
    let mut cluster = RecountCluster::observed();
    cluster.recounts.on_listed(cluster.pods, cluster.now);
    assert_eq!(cluster.run_for(Duration::from_mins(1)), []);
    for number in 1..=3 {
        cluster.lose_change(&pod(number, 2, "False"));
    }
    cluster.recounts.on_listed(cluster.pods, cluster.now);
    let found = cluster.run_for(Duration::from_mins(1));
    let [RecountDrift { objects: 3, edges: 0, counts: 0, example, .. }] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(example.starts_with("shop/pod-"), "{example}");
    cluster.recounts.on_listed(cluster.pods, cluster.now);
    assert_eq!(cluster.run_for(Duration::from_mins(1)), [], "it is put right");
}

#[test]
fn now_and_then_it_is_looked_at_without_a_cause() {
    let mut cluster = RecountCluster::observed();
    cluster.recounts.on_listed(cluster.pods, cluster.now);
    cluster.run_for(Duration::from_mins(1));
    cluster.lose_change(&pod(2, 2, "False"));
    let found = cluster.run_for(Duration::from_mins(11));
    assert_eq!(found.iter().map(RecountDrift::total).collect::<Vec<_>>(), [1]);
}

#[test]
fn what_has_changed_meanwhile_is_no_drift() {
    let mut cluster = RecountCluster::observed();
    cluster.lose_change(&pod(1, 2, "False"));
    cluster.recounts.on_listed(cluster.pods, cluster.now);
    assert_eq!(cluster.run_for(Duration::from_secs(5)), [], "it is looked at again a second later");
    cluster.lose_change(&pod(1, 3, "True"));
    assert_eq!(cluster.run_for(Duration::from_secs(5)), []);
}

#[test]
fn numbers_over_parents_that_are_wrong_are_found_now_and_then_told_and_put_right() {
    let mut cluster = RecountCluster::observed();
    cluster.lose_change(&pod(2, 2, "False"));
    cluster.recounts.on_listed(cluster.pods, cluster.now);
    cluster.run_for(Duration::from_mins(1));
    for _ in 0..20 {
        cluster.core.run_turn(cluster.now);
        cluster.now = cluster.now + Duration::from_secs(1);
    }
    cluster.core.refresh_numbers(cluster.now);
    let right = cluster.core.numbers.clone();
    assert!(right.unready().next().is_some(), "it has a parent that is not ready");
    assert_eq!(cluster.run_for(Duration::from_hours(4)), []);
    cluster.core.numbers = rollcall_core::FleetNumbers::default();
    let found = cluster.run_for(Duration::from_hours(4));
    let [RecountDrift { objects: 0, edges: 0, counts: 0, numbers: 1, example, .. }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(example, "shop/db");
    let reasons = |numbers: &rollcall_core::FleetNumbers| {
        numbers.unready().map(|(key, reason, _)| (key, reason)).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&cluster.core.numbers), reasons(&right));
    assert_eq!(cluster.run_for(Duration::from_hours(4)), [], "it is put right");
}
