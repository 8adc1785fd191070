//! What a parent that stays True says of its workloads that are scaled or disrupted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::DeliveryOutcome;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, WatchPlan, build_plan, compile};
use readiness::Time;
use rollcall_core::Core;
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

/// 2027-01-15T08:00:00Z
const BEGINNING: Time = Time(1_800_000_000_000);
/// Longer than two writes are apart that change nothing but words.
const SETTLED: Duration = Duration::from_secs(25);

fn database() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": { "name": "orders", "namespace": "shop", "uid": "orders", "generation": 1,
            "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "status": { "conditions": [] },
    })
}

/// A rolled-out workload that wants so many pods, has so many, and as many are ready.
fn workload(kind: &str, name: &str, [wanted, there, ready]: [u32; 3]) -> Value {
    let condition = |kind: &str, reason: &str| json!({ "type": kind, "status": "True", "reason": reason });
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "orders",
                "uid": "orders" }] },
        "spec": { "replicas": wanted },
        "status": { "observedGeneration": 1, "replicas": there, "updatedReplicas": there, "readyReplicas": ready,
            "availableReplicas": ready, "currentRevision": "a", "updateRevision": "a",
            "conditions": [condition("Progressing", "NewReplicaSetAvailable"),
                condition("Available", "MinimumReplicasAvailable")] },
    })
}

fn read(value: &Value, version: u64) -> ParentObject {
    let mut value = value.clone();
    value["metadata"]["resourceVersion"] = json!(version.to_string());
    serde_json::from_str(&value.to_string()).unwrap()
}

/// A service that sees the Database and its workloads, and writes on it.
struct ChurningDatabase {
    core: Core,
    plan: WatchPlan,
    database: Value,
    now: Time,
    version: u64,
}

impl ChurningDatabase {
    fn begin(database: Value, workloads: &[Value], now: Time) -> ChurningDatabase {
        let mut registry = IdRegistry::default();
        let child = |kind: &str| json!({ "kind": { "group": "apps", "kind": kind } });
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s",
            "children": [child("Deployment"), child("StatefulSet")],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let acceptance = aggregator::Acceptance::Accepted;
        let policy =
            PolicyInUse { id: registry.new_policy_id(), name: "databases".to_owned(), compiled, acceptance };
        let plan = build_plan(&[policy], &Released::default(), &mut registry, &UnreadLibraries);
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        let version: u64 = database["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        let objects: Vec<ParentObject> = std::iter::once(read(&database, version))
            .chain(workloads.iter().map(|workload| read(workload, version)))
            .collect();
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), now);
        ChurningDatabase { core, plan, database, now, version }
    }

    /// Lets time pass; returns the status and the message of each write meanwhile.
    fn run(&mut self, span: Duration) -> Vec<(String, String)> {
        let (end, mut written) = (self.now + span, Vec::new());
        while self.now < end {
            for write in self.core.run_turn(self.now) {
                let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
                json_patch::patch(&mut self.database, &patch).unwrap();
                let ready = &self.database["status"]["conditions"][0];
                let text = |field: &str| ready[field].as_str().unwrap().to_owned();
                written.push((text("status"), text("message")));
                self.see(&self.database.clone());
                self.database["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.core.settle_write(self.now, write.parent, write.ticket, DeliveryOutcome::Written);
            }
            while self.core.engine.take_due_resync(self.now).is_some() {}
            let next = self.core.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
        written
    }

    fn see(&mut self, object: &Value) {
        self.version += 1;
        let kind = self.plan.kinds.values().find(|plan| plan.key.1 == object["kind"].as_str().unwrap());
        let object = read(object, self.version);
        self.core.reflector.apply_object(kind.unwrap().id, &object.child, Some(&object.text));
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(self.now, &moved);
    }
}

fn says_true(message: &str) -> Vec<(String, String)> {
    vec![("True".to_owned(), message.to_owned())]
}

#[test]
fn a_parent_that_stays_true_says_whether_a_workload_scales_or_lacks_pods() {
    let whole = [workload("Deployment", "api", [5, 5, 5]), workload("StatefulSet", "db", [3, 3, 3])];
    let mut database = ChurningDatabase::begin(database(), &whole, BEGINNING);
    assert_eq!(database.run(SETTLED).last(), says_true("2 of 2 ready").last());

    database.see(&workload("Deployment", "api", [6, 5, 5]));
    let scaling = "1 of 2 ready; 1 scaling: Deployment api (5 of 6 replicas updated)";
    assert_eq!(database.run(SETTLED), says_true(scaling));
    assert!(database.run(Duration::from_mins(1)).is_empty(), "told once");
    database.see(&workload("Deployment", "api", [6, 6, 5]));
    let starting = "1 of 2 ready; 1 available with pods missing: Deployment api (5 of 6 replicas ready)";
    assert_eq!(database.run(SETTLED), says_true(starting));
    database.see(&workload("Deployment", "api", [6, 6, 6]));
    assert_eq!(database.run(SETTLED), says_true("2 of 2 ready"));

    database.see(&workload("StatefulSet", "db", [3, 3, 2]));
    let disrupted = "1 of 2 ready; 1 available with pods missing: StatefulSet db (2 of 3 replicas ready)";
    assert_eq!(database.run(SETTLED), says_true(disrupted));
    database.see(&workload("Deployment", "api", [5, 6, 6]));
    let both = "0 of 2 ready; 1 available with pods missing: StatefulSet db (2 of 3 replicas ready); 1 scaling: \
                Deployment api (1 of 6 replicas left over)";
    assert_eq!(database.run(SETTLED), says_true(both));
}

#[test]
fn the_next_process_says_the_same_of_a_disruption_and_writes_nothing() {
    let whole = [workload("Deployment", "api", [5, 5, 5]), workload("StatefulSet", "db", [3, 3, 3])];
    let mut first = ChurningDatabase::begin(database(), &whole, BEGINNING);
    first.run(SETTLED);
    let lacking = workload("StatefulSet", "db", [3, 3, 2]);
    first.see(&lacking);
    assert_eq!(first.run(SETTLED).len(), 1);
    let mut next = ChurningDatabase::begin(first.database, &[whole[0].clone(), lacking], first.now);
    assert!(next.run(Duration::from_mins(1)).is_empty());
}

#[test]
fn of_many_workloads_that_scale_three_are_named() {
    let names = ["a", "b", "c", "d", "e"];
    let mut workloads = names.map(|name| workload("Deployment", name, [3, 3, 3])).to_vec();
    workloads.push(workload("StatefulSet", "db", [3, 3, 3]));
    let mut database = ChurningDatabase::begin(database(), &workloads, BEGINNING);
    database.run(SETTLED);
    for name in names {
        database.see(&workload("Deployment", name, [4, 3, 3]));
    }
    let (status, message) = database.run(SETTLED).pop().unwrap();
    let says = "1 of 6 ready; 5 scaling: Deployment a (3 of 4 replicas updated), Deployment b (3 of 4 replicas \
                updated), Deployment c (3 of 4 replicas updated) and 2 more";
    assert_eq!((&*status, &*message), ("True", says));
}
