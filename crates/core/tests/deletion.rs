//! What is said of a parent that is being deleted, told in sentences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::Core;
use watcher::status::{ConditionEntry, time};

/// 2027-01-15T08:00:00Z
const DELETED: Time = Time(1_800_000_000_000);
const MANAGED: &str = "shop-operator";

/// A Shop with these finalizers, of which `MANAGED` set all, in deletion since [`DELETED`]; says these conditions.
fn shop(finalizers: &[&str], version: u64, conditions: &[Value]) -> ParentObject {
    let set: serde_json::Map<String, Value> =
        finalizers.iter().map(|name| (format!("v:\"{name}\""), json!({}))).collect();
    let value = json!({
        "apiVersion": "example.com/v1", "kind": "Shop", "status": { "conditions": conditions },
        "metadata": {
            "name": "books", "namespace": "shop", "uid": "books", "generation": 2,
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": finalizers,
            "managedFields": [{ "manager": MANAGED, "operation": "Update",
                "fieldsV1": { "f:metadata": { "f:finalizers": set } } }],
        },
    });
    serde_json::from_str(&value.to_string()).unwrap()
}

/// A service that sees one Shop, whose deletion may take 10 minutes.
struct DeletionService {
    core: Core,
    kind: aggregator::KindId,
    now: Time,
    version: u64,
}

impl DeletionService {
    fn begin(object: &ParentObject) -> DeletionService {
        let mut registry = IdRegistry::default();
        let spec = json!({ "parent": { "group": "example.com", "kind": "Shop" }, "settle": "0s" });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let acceptance = aggregator::Acceptance::Accepted;
        let policy =
            PolicyInUse { id: registry.new_policy_id(), name: "shops".to_owned(), compiled, acceptance };
        let plan = build_plan(&[policy], &Released::default(), &mut registry, &UnreadLibraries);
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        load_objects(&mut core, &plan, &[object], DELETED);
        let kind = plan.kinds.values().find(|kind| !kind.interest.parent.is_empty()).unwrap().id;
        DeletionService { core, kind, now: DELETED, version: 1 }
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.core.run_turn(self.now);
            let next = self.core.engine.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    fn see(&mut self, finalizers: &[&str], conditions: &[Value]) {
        self.version += 1;
        let object = shop(finalizers, self.version, conditions);
        self.core.reflector.apply_object(self.kind, &object.child, Some(&object.text));
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(self.now, &moved);
    }

    /// The entries that it would write now.
    fn wanted(&self) -> Vec<ConditionEntry> {
        let id = self.core.reflector.find_object("books").unwrap();
        self.core.render_conditions(id, self.now).unwrap().entries
    }

    fn says(&self) -> Vec<(String, String, String)> {
        self.wanted().into_iter().map(|entry| (entry.r#type, entry.reason, entry.message)).collect()
    }

    /// Is the parent to be written, by what it says as last seen?
    fn is_offered(&mut self) -> bool {
        let id = self.core.reflector.find_object("books").unwrap();
        self.core.engine.confirm_draft(id, self.now)
    }
}

fn as_seen(entries: &[ConditionEntry]) -> Vec<Value> {
    entries.iter().map(|entry| serde_json::to_value(entry).unwrap()).collect()
}

fn entry(kind: &str, reason: &str, message: &str) -> (String, String, String) {
    (kind.to_owned(), reason.to_owned(), message.to_owned())
}

#[test]
fn a_parent_in_deletion_says_what_holds_it_and_who_set_that_and_since_when() {
    let mut service = DeletionService::begin(&shop(&["a.io/x", "kopf.dev/marker"], 1, &[]));
    service.run(Duration::from_secs(2));
    let held = "being deleted: finalizers a.io/x (set by shop-operator), kopf.dev/marker (likely a Kopf \
                operator), terminating since 2027-01-15T08:00:00Z";
    assert_eq!(service.says(), [entry("Ready", "Terminating", held)]);
    // What was said once is left alone, until something else holds it.
    let said = as_seen(&service.wanted());
    service.see(&["a.io/x", "kopf.dev/marker"], &said);
    service.run(Duration::from_secs(2));
    assert!(!service.is_offered());
    service.see(&["a.io/x"], &said);
    service.run(Duration::from_secs(2));
    assert!(service.is_offered());
    let rest =
        "being deleted: finalizer a.io/x (set by shop-operator), terminating since 2027-01-15T08:00:00Z";
    assert_eq!(service.says(), [entry("Ready", "Terminating", rest)]);
}

#[test]
fn a_parent_in_deletion_beyond_its_limit_is_stuck_and_stalled() {
    let mut service = DeletionService::begin(&shop(&["a.io/x"], 1, &[]));
    service.run(Duration::from_mins(9));
    let said = as_seen(&service.wanted());
    assert_eq!(said[0]["reason"], "Terminating");
    service.see(&["a.io/x"], &said);
    service.run(Duration::from_secs(90));
    assert!(service.is_offered(), "nothing but time has passed");
    let held = "being deleted: finalizer a.io/x (set by shop-operator), terminating since \
                2027-01-15T08:00:00Z; longer than limits.terminating of the policy allows";
    let stuck = [entry("Ready", "DeletionStuck", held), entry("Stalled", "DeletionStuck", held)];
    assert_eq!(service.says(), stuck);
    let said = as_seen(&service.wanted());
    service.see(&["a.io/x"], &said);
    service.run(Duration::from_mins(60));
    assert!(!service.is_offered(), "told once");
    assert_eq!(time::format_seconds(DELETED), "2027-01-15T08:00:00Z");
}

#[test]
fn without_a_finalizer_there_is_nobody_to_name() {
    let mut service = DeletionService::begin(&shop(&[], 1, &[]));
    service.run(Duration::from_secs(2));
    assert_eq!(service.says(), [entry("Ready", "Terminating", "being deleted")]);
}
