//! Transitions, as sentences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use rollcall_core::{Core, MAX_ROOT_CAUSES, RootCause, Transition};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);

fn object(value: &Value) -> ParentObject {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn policy(registry: &mut IdRegistry, name: &str, parent: &str, child: &str, group: &str) -> PolicyInUse {
    in_mode("shadow", registry, name, (parent, child, group))
}

fn in_mode(
    mode: &str,
    registry: &mut IdRegistry,
    name: &str,
    (parent, child, group): (&str, &str, &str),
) -> PolicyInUse {
    let spec = json!({
        "parent": { "group": "example.com", "kind": parent }, "settle": "0s", "mode": mode,
        "children": [{ "kind": { "group": group, "kind": child } }],
    });
    let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
    PolicyInUse {
        id: registry.new_policy_id(),
        name: name.to_owned(),
        compiled,
        acceptance: aggregator::Acceptance::Accepted,
    }
}

fn child(api: &str, kind: &str, name: &str, owner: &str, rest: &Value) -> ParentObject {
    let mut value = json!({ "apiVersion": api, "kind": kind, "metadata": {
        "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z" } });
    if !owner.is_empty() {
        let kind = if owner == "books" { "Shop" } else { "Database" };
        value["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "example.com/v1", "kind": kind, "name": owner, "uid": owner }]);
    }
    for (key, part) in rest.as_object().into_iter().flatten() {
        value[key] = part.clone();
    }
    object(&value)
}

/// Shop books → Database db → Pods, all observed at once.
fn world(pods: &[ParentObject]) -> Core {
    let mut registry = IdRegistry::default();
    let policies = [
        policy(&mut registry, "shops", "Shop", "Database", "example.com"),
        policy(&mut registry, "databases", "Database", "Pod", ""),
    ];
    let plan = build_plan(&policies, &Released::new(), &mut registry, &UnreadLibraries);
    let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
    let parents = [
        child("example.com/v1", "Shop", "books", "", &Value::Null),
        child("example.com/v1", "Database", "db", "books", &Value::Null),
    ];
    let all: Vec<_> = parents.iter().chain(pods).cloned().collect();
    load_objects(&mut core, &plan, &all.iter().collect::<Vec<_>>(), NOW);
    core
}

fn turn(core: &mut Core, mut now: Time) -> Vec<Transition> {
    let mut told = Vec::new();
    let end = now + Duration::from_secs(5);
    while now <= end {
        core.run_turn(now);
        told.extend(core.take_transitions());
        let Some(next) = core.engine.next_deadline() else { break };
        now = next.max(now + Duration::from_millis(1));
    }
    told
}

fn failed(name: &str) -> ParentObject {
    child("v1", "Pod", name, "db", &json!({ "status": { "phase": "Failed", "reason": "Evicted" } }))
}

#[test]
fn a_transition_names_the_objects_at_the_bottom_of_it() {
    let mut core = world(&[failed("db-0")]);
    let told = turn(&mut core, NOW);
    let shop = told.iter().rfind(|t| t.parent.kind == "Shop").unwrap();
    assert_eq!((shop.policy.as_str(), shop.uid.as_str(), shop.generation), ("shops", "books", Some(1)));
    assert_eq!(shop.to, ParentReason::ChildrenFailed);
    assert!(shop.shadow && shop.message.contains("Pod db-0"), "{}", shop.message);
    let [culprit] = &shop.causes[..] else { panic!("{:?}", shop.causes) };
    let RootCause { object: place, verdict, reason, detail } = culprit;
    let (kind, name, namespace) = (place.kind.as_str(), place.name.as_str(), place.namespace.as_str());
    assert_eq!((kind, name, namespace), ("Pod", "db-0", "shop"));
    assert_eq!((*verdict, reason.as_str()), ("Failed", "PodFailed"));
    assert!(detail.contains("Evicted"), "{detail}");
}

#[test]
fn of_many_culprits_a_few_are_named() {
    let pods: Vec<_> = (0..100).map(|at| failed(&format!("db-{at}"))).collect();
    let mut core = world(&pods);
    let told = turn(&mut core, NOW);
    assert!(told.iter().any(|t| t.causes.len() == MAX_ROOT_CAUSES));
    assert!(told.iter().all(|t| t.causes.len() <= MAX_ROOT_CAUSES), "{told:?}");
}

/// Worst cause of a parent as in metrics: kind, name, verdict, reason.
fn worst(core: &Core, uid: &str) -> (String, String, &'static str, &'static str) {
    let parent = core.reflector.find_object(uid).unwrap();
    let policy = core.engine.policies_of(parent).next().unwrap();
    let said = core.engine.answer_of(parent, policy).unwrap().reason;
    let rollcall_core::TopCause { kind, child, level, reason } = core.top_cause(parent, policy, said, NOW);
    (kind, child, level.as_str(), reason.as_str())
}

#[test]
fn the_worst_of_what_holds_a_parent_back_is_one_object_in_closed_words() {
    let running = |name| child("v1", "Pod", name, "db", &json!({ "status": { "phase": "Pending" } }));
    let mut core = world(&[running("db-0"), failed("db-1"), running("db-2")]);
    turn(&mut core, NOW);
    let culprit = ("Pod".to_owned(), "db-1".to_owned(), "Failed", "PodFailed");
    assert_eq!(worst(&core, "db"), culprit);
    assert_eq!(worst(&core, "books"), culprit, "the object at the bottom of it");
    let count = |uid| {
        let parent = core.reflector.find_object(uid).unwrap();
        let family = core.children_tally(parent, core.engine.policies_of(parent).next().unwrap());
        [Level::Failed, Level::Stuck, Level::Ready].map(|level| family.count_at(level))
    };
    assert_eq!((count("db"), count("books")), ([1, 2, 0], [1, 0, 0]));
}

#[test]
fn what_does_not_exist_is_the_worst_without_a_name() {
    let mut core = world(&[]);
    turn(&mut core, NOW);
    assert_eq!(worst(&core, "db"), ("Pod".to_owned(), String::new(), "Missing", "Missing"));
    let parent = core.reflector.find_object("db").unwrap();
    let policy = core.engine.policies_of(parent).next().unwrap();
    let silent = core.top_cause(parent, policy, ParentReason::OperatorSilent, NOW);
    let own = (silent.kind.as_str(), silent.child.as_str(), silent.level, silent.reason.as_str());
    assert_eq!(own, ("", "", Level::Unknown, "OperatorSilent"), "that is not about children");
}

#[test]
fn what_is_missing_is_a_culprit_without_a_name() {
    let mut core = world(&[]);
    let told = turn(&mut core, NOW);
    let database = told.iter().rfind(|t| t.parent.kind == "Database").unwrap();
    assert_eq!(database.to, ParentReason::ChildrenMissing);
    let [culprit] = &database.causes[..] else { panic!("{:?}", database.causes) };
    assert_eq!((culprit.object.kind.as_str(), culprit.object.name.as_str()), ("Pod", ""));
    assert_eq!(culprit.verdict, "Missing");
}

#[test]
fn who_takes_nothing_keeps_no_more_than_one_turn() {
    let (mut core, mut taken) = (world(&[failed("db-0")]), world(&[failed("db-0")]));
    core.run_turn(NOW);
    taken.run_turn(NOW);
    assert!(!taken.take_transitions().is_empty());
    core.run_turn(NOW);
    assert!(core.take_transitions().is_empty());
}

/// One parent that is written to, and its Pod; every write is accepted at once.
struct WrittenParent {
    core: Core,
    kinds: Vec<(aggregator::KindId, String)>,
    parent: Value,
    version: u64,
    now: Time,
    turns: usize,
}

impl WrittenParent {
    fn begin() -> WrittenParent {
        let mut registry = IdRegistry::default();
        let policies = [in_mode("write", &mut registry, "databases", ("Database", "Pod", ""))];
        let plan = build_plan(&policies, &Released::new(), &mut registry, &UnreadLibraries);
        let none = json!({ "conditions": [] });
        let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": none, "metadata": {
            "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
        let mut core =
            Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
        load_objects(&mut core, &plan, &[&object(&parent), &failed("db-0")], NOW);
        let kinds = plan.kinds.iter().map(|(id, kind)| (*id, kind.key.1.clone())).collect();
        WrittenParent { core, kinds, parent, version: 1, now: NOW, turns: 0 }
    }

    /// Changes the object, and runs everything that follows within two seconds.
    fn moves(&mut self, mut value: Value) {
        let end = self.now + Duration::from_secs(2);
        self.apply(&mut value);
        while self.now < end {
            for write in self.core.run_turn(self.now) {
                let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
                let mut parent = self.parent.clone();
                json_patch::patch(&mut parent, &patch).unwrap();
                self.apply(&mut parent);
                self.parent = parent;
                self.core.settle_write(
                    self.now,
                    write.parent,
                    write.ticket,
                    aggregator::DeliveryOutcome::Written,
                );
            }
            self.turns += self.core.take_transitions().len();
            let next = self.core.engine.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    fn apply(&mut self, value: &mut Value) {
        self.version += 1;
        value["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let read = object(value);
        let kind = read.child.meta.kind.clone();
        let (of, _) = self.kinds.iter().find(|(_, name)| **name == *kind).unwrap();
        self.core.reflector.apply_object(*of, &read.child, Some(&read.text));
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(self.now, &moved);
    }

    fn pod(&mut self, well: bool) {
        let status = if well {
            let ready = json!([{ "type": "Ready", "status": "True" }]);
            json!({ "phase": "Running", "conditions": ready })
        } else {
            json!({ "phase": "Failed", "reason": "Evicted" })
        };
        let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" });
        self.moves(json!({ "apiVersion": "v1", "kind": "Pod", "status": status, "metadata": {
            "name": "db-0", "namespace": "shop", "uid": "db-0", "ownerReferences": [owner],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        } }));
    }
}

#[test]
fn ten_thousand_transitions_leave_the_object_as_large_as_it_was() {
    let mut world = WrittenParent::begin();
    for well in [true, false, true] {
        world.pod(well);
    }
    let (before, counted) = (world.parent.to_string(), world.turns);
    assert!(before.contains("AllChildrenReady"), "{before}");
    for _ in 0..5_000 {
        world.pod(false);
        world.pod(true);
    }
    let after = world.parent.to_string();
    let turns = world.turns - counted;
    println!("{} bytes before, {} bytes after {turns} transitions", before.len(), after.len());
    assert!(turns >= 10_000, "{turns}");
    // Except for the digits of its resourceVersion.
    assert!(after.len() <= before.len() + 4, "{before}\n{after}");
    let conditions = world.parent["status"]["conditions"].as_array().map_or(0, Vec::len);
    assert!((1..=3).contains(&conditions), "{after}");
}

/// Until a new policy has evaluated a parent, the existing entries stay completely unchanged: the digest is the same,
/// so that nothing is sent, and nothing counts as pruned by the server.
#[test]
fn what_stands_while_nothing_is_decided_is_what_the_parent_says() {
    let mut registry = IdRegistry::default();
    let policies = [in_mode("write", &mut registry, "shops", ("Shop", "Pod", ""))];
    let plan = build_plan(&policies, &Released::new(), &mut registry, &UnreadLibraries);
    let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
    let entry = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "OperatorSilent", "message": "the operator has not handled its spec", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let owned = |part: &str| json!({ "f:status": { part: {} } });
    let fields =
        json!([{ "manager": "rollcall", "operation": "Update", "fieldsV1": owned("f:observedGeneration") }]);
    for (held, observed) in [(Value::Null, Value::Null), (fields, json!(1))] {
        let mut shop = json!({ "apiVersion": "example.com/v1", "kind": "Shop", "metadata": { "name": "books",
            "namespace": "shop", "uid": "books", "resourceVersion": "1", "generation": 1, "managedFields": held },
            "status": { "conditions": [entry("Ready", "Unknown"), entry("Stalled", "True")] } });
        shop["status"]["observedGeneration"] = observed.clone();
        core.set_policy(NOW, policies[0].id, plan.policies.get(&policies[0].id).cloned());
        let shop = object(&shop);
        for (id, kind) in plan.kinds.iter().filter(|(_, kind)| kind.key.1 == "Shop") {
            core.reflector.set_interest(kind.interest.clone());
            core.reflector.apply_object(*id, &shop.child, Some(&shop.text));
        }
        let id = core.reflector.find_object("books").unwrap();
        core.observe_objects(NOW, &[id]);
        let says = core.reflector.read_row(id, |row| row.parent.as_ref().map(|parent| parent.view.digest));
        let wanted = core.render_conditions(id, NOW).unwrap();
        assert_eq!(wanted.entries.len(), 2);
        let digest = watcher::status::conditions_digest(&wanted.entries, wanted.observed_generation);
        assert_eq!(Some(digest), says.flatten(), "observedGeneration {observed}");
    }
}
