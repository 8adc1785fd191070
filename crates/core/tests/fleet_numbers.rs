//! The numbers of all parents, which are kept and not counted.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::Core;
use serde_json::{Value, json};
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);

fn object(value: &Value) -> ParentObject {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn named(api: &str, kind: &str, name: &str, version: u64, rest: &Value) -> Value {
    let mut value = json!({ "apiVersion": api, "kind": kind, "metadata": {
        "name": name, "namespace": "shop", "uid": format!("{kind}-{name}"), "generation": 1,
        "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z" } });
    for (key, part) in rest.as_object().into_iter().flatten() {
        value[key] = part.clone();
    }
    value
}

fn database(name: &str, version: u64, rest: &Value) -> ParentObject {
    object(&named("example.com/v1", "Database", name, version, rest))
}

fn pod(of: &str, version: u64, phase: &str) -> ParentObject {
    let mut value = named("v1", "Pod", of, version, &json!({ "status": { "phase": phase } }));
    value["metadata"]["ownerReferences"] = json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": of,
        "uid": format!("Database-{of}") }]);
    object(&value)
}

/// Databases with one Pod each, under one policy in shadow mode.
struct Fleet {
    core: Core,
    now: Time,
    kinds: Vec<(aggregator::KindId, String)>,
}

impl Fleet {
    fn begin(objects: &[ParentObject]) -> Fleet {
        let mut registry = IdRegistry::default();
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s", "mode": "shadow",
            "children": [{ "kind": { "kind": "Pod" } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let policy = PolicyInUse {
            id: registry.new_policy_id(),
            name: "databases".to_owned(),
            compiled,
            acceptance: aggregator::Acceptance::Accepted,
        };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
        let mut core =
            Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let kinds = plan.kinds.iter().map(|(id, kind)| (*id, kind.key.1.clone())).collect();
        let mut fleet = Fleet { core, now: NOW, kinds };
        fleet.turn();
        fleet
    }

    /// Runs for five seconds, and brings the numbers up to date.
    fn turn(&mut self) {
        let end = self.now + Duration::from_secs(5);
        while self.now < end {
            self.core.run_turn(self.now);
            self.now = self.now + Duration::from_millis(250);
        }
        self.core.refresh_numbers(self.now);
        let Core { numbers, engine, reflector, .. } = &self.core;
        assert_eq!(numbers.find_difference(&numbers.recount(engine, reflector, self.now)), None);
    }

    fn apply(&mut self, object: &ParentObject) {
        let kind = self.kinds.iter().find(|(_, kind)| *kind == *object.child.meta.kind).unwrap().0;
        self.core.reflector.apply_object(kind, &object.child, Some(&object.text));
        self.turn();
    }

    /// Names of the parents that are not ready, with the reason and for how many seconds, worst first.
    fn unready(&self) -> Vec<(String, ParentReason, i64)> {
        let name = |id| self.core.reflector.read_row(id, |row| row.name.to_string()).unwrap();
        let told =
            |((id, _), reason, since): (_, _, Time)| (name(id), reason, (self.now.0 - since.0) / 1_000);
        self.core.numbers.unready().map(told).collect()
    }
}

#[test]
fn what_failed_a_moment_ago_comes_before_what_has_been_starting_for_long_and_of_these_the_oldest_first() {
    let mut fleet = Fleet::begin(&[database("old", 1, &Value::Null), pod("old", 1, "Pending")]);
    for (name, phase) in [("young", "Pending"), ("broken", "Failed"), ("youngest", "Pending")] {
        fleet.apply(&database(name, 1, &Value::Null));
        fleet.apply(&pod(name, 1, phase));
    }
    let order = |fleet: &Fleet| fleet.unready().into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    assert_eq!(order(&fleet), ["broken", "old", "young", "youngest"]);
    fleet.apply(&pod("youngest", 2, "Failed"));
    assert_eq!(order(&fleet), ["broken", "youngest", "old", "young"]);
    let (_, reason, seconds) = fleet.unready()[1].clone();
    assert_eq!((reason, seconds), (ParentReason::ChildrenFailed, 10), "it has not been ready since it began");
}

#[test]
fn what_others_write_is_counted_although_no_answer_moves() {
    let mut fleet = Fleet::begin(&[database("a", 1, &Value::Null), pod("a", 1, "Pending")]);
    let policy = fleet.core.engine.evaluation_states().next().unwrap().policy;
    let counts = |fleet: &Fleet| {
        let counts = fleet.core.numbers.counts_of(policy).cloned().unwrap_or_default();
        (counts.undefaulted, counts.disagreeing, counts.owned.values().sum::<u64>())
    };
    assert_eq!(counts(&fleet), (1, 0, 0), "its CRD has no default");
    fleet.apply(&database("a", 2, &json!({ "status": { "observedGeneration": 1 } })));
    assert_eq!(counts(&fleet), (0, 0, 0));
    let theirs = |status: &str| {
        let ready = json!({ "type": "Ready", "status": status, "reason": "Theirs", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        json!({ "status": { "observedGeneration": 1, "conditions": [ready] } })
    };
    fleet.apply(&database("a", 3, &theirs("True")));
    assert_eq!(counts(&fleet), (0, 1, 1));
    fleet.apply(&database("a", 4, &theirs("False")));
    assert_eq!(counts(&fleet), (0, 0, 1));
}
