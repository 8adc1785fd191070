//! Transitions, told in sentences.

use super::*;
use crate::offline::begin;
use crate::policies::{InUse, Libraries, Registry, compile, plan};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use watcher::Parent;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);

fn object(value: &Value) -> Parent {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn policy(registry: &mut Registry, name: &str, parent: &str, child: &str, group: &str) -> InUse {
    in_mode("shadow", registry, name, (parent, child, group))
}

fn in_mode(
    mode: &str,
    registry: &mut Registry,
    name: &str,
    (parent, child, group): (&str, &str, &str),
) -> InUse {
    let spec = json!({
        "parent": { "group": "example.com", "kind": parent }, "settle": "0s", "mode": mode,
        "children": [{ "kind": { "group": group, "kind": child } }],
    });
    let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
    InUse { id: registry.policy(), name: name.to_owned(), compiled }
}

fn child(api: &str, kind: &str, name: &str, owner: &str, rest: &Value) -> Parent {
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

/// Shop books → Database db → Pods, all that is known of them at once.
fn world(pods: &[Parent]) -> Core {
    let mut registry = Registry::default();
    let policies = [
        policy(&mut registry, "shops", "Shop", "Database", "example.com"),
        policy(&mut registry, "databases", "Database", "Pod", ""),
    ];
    let plan = plan(&policies, &[], &mut registry, &Libraries::default());
    let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
    let parents = [
        child("example.com/v1", "Shop", "books", "", &Value::Null),
        child("example.com/v1", "Database", "db", "books", &Value::Null),
    ];
    let all: Vec<_> = parents.iter().chain(pods).cloned().collect();
    begin(&mut core, &plan, &all.iter().collect::<Vec<_>>(), NOW);
    core
}

fn turn(core: &mut Core, mut now: Time) -> Vec<Transition> {
    let mut told = Vec::new();
    let end = now + Duration::from_secs(5);
    while now <= end {
        core.turn(now);
        told.extend(core.take_transitions());
        let Some(next) = core.engine.next_deadline() else { break };
        now = next.max(now + Duration::from_millis(1));
    }
    told
}

fn failed(name: &str) -> Parent {
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
    let Culprit { place, verdict, reason, detail } = culprit;
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
    assert!(told.iter().any(|t| t.causes.len() == CULPRITS));
    assert!(told.iter().all(|t| t.causes.len() <= CULPRITS), "{told:?}");
}

/// What holds a parent back most, as metrics have it: kind, name, verdict, reason.
fn worst(core: &Core, uid: &str) -> (String, String, &'static str, &'static str) {
    let parent = core.reflector.find(uid).unwrap();
    let policy = core.engine.policies_of(parent).next().unwrap();
    let said = core.engine.answer(parent, policy).unwrap().reason;
    let crate::core::Worst { kind, child, level, reason } = core.worst(parent, policy, said, NOW);
    (kind, child, level.word(), reason)
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
        let parent = core.reflector.find(uid).unwrap();
        let family = core.family(parent, core.engine.policies_of(parent).next().unwrap());
        [Level::Failed, Level::Stuck, Level::Ready].map(|level| family.at(level))
    };
    assert_eq!((count("db"), count("books")), ([1, 2, 0], [1, 0, 0]));
}

#[test]
fn what_does_not_exist_is_the_worst_without_a_name() {
    let mut core = world(&[]);
    turn(&mut core, NOW);
    assert_eq!(worst(&core, "db"), ("Pod".to_owned(), String::new(), "Missing", "Missing"));
    let parent = core.reflector.find("db").unwrap();
    let policy = core.engine.policies_of(parent).next().unwrap();
    let silent = core.worst(parent, policy, ParentReason::OperatorSilent, NOW);
    let own = (silent.kind.as_str(), silent.child.as_str(), silent.level, silent.reason);
    assert_eq!(own, ("", "", Level::Unknown, "OperatorSilent"), "that is not about children");
}

#[test]
fn what_is_missing_is_a_culprit_without_a_name() {
    let mut core = world(&[]);
    let told = turn(&mut core, NOW);
    let database = told.iter().rfind(|t| t.parent.kind == "Database").unwrap();
    assert_eq!(database.to, ParentReason::ChildrenMissing);
    let [culprit] = &database.causes[..] else { panic!("{:?}", database.causes) };
    assert_eq!((culprit.place.kind.as_str(), culprit.place.name.as_str()), ("Pod", ""));
    assert_eq!(culprit.verdict, "Missing");
}

#[test]
fn who_takes_nothing_keeps_no_more_than_one_turn() {
    let mut core = world(&[failed("db-0")]);
    core.turn(NOW);
    assert!(!core.turned.is_empty());
    core.turn(NOW);
    assert!(core.turned.is_empty());
}

/// One parent that is written to, and its Pod; every write arrives at once.
struct Written {
    core: Core,
    interests: Vec<watcher::plan::Interest>,
    parent: Value,
    version: u64,
    now: Time,
    turns: usize,
}

impl Written {
    fn begin() -> Written {
        let mut registry = Registry::default();
        let policies = [in_mode("write", &mut registry, "databases", ("Database", "Pod", ""))];
        let plan = plan(&policies, &[], &mut registry, &Libraries::default());
        let none = json!({ "conditions": [] });
        let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": none, "metadata": {
            "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
        let mut core =
            Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
        begin(&mut core, &plan, &[&object(&parent), &failed("db-0")], NOW);
        let interests = plan.kinds.values().map(|kind| kind.interest.clone()).collect();
        Written { core, interests, parent, version: 1, now: NOW, turns: 0 }
    }

    /// The object moved, and everything that follows from it within two seconds.
    fn moves(&mut self, mut value: Value) {
        let end = self.now + Duration::from_secs(2);
        self.apply(&mut value);
        while self.now < end {
            for write in self.core.turn(self.now) {
                let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
                let mut parent = self.parent.clone();
                json_patch::patch(&mut parent, &patch).unwrap();
                self.apply(&mut parent);
                self.parent = parent;
                self.core.settle(self.now, write.parent, aggregator::Outcome::Written);
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
        let of = self.interests.iter().find(|i| i.parent.is_empty() == (&*kind == "Pod")).unwrap();
        self.core.reflector.apply(of, &read.child, Some(&read.text));
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.take_in(self.now, &moved);
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
    let mut world = Written::begin();
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
    // But for the digits of its resourceVersion.
    assert!(after.len() <= before.len() + 4, "{before}\n{after}");
    let conditions = world.parent["status"]["conditions"].as_array().map_or(0, Vec::len);
    assert!((1..=3).contains(&conditions), "{after}");
}

/// Until a policy that has just come has judged a parent, what stands there for it stays, every part of it: it is the same
/// digest, so that nothing is sent, and nothing is taken for refused by the server.
#[test]
fn what_stands_while_nothing_is_decided_is_what_the_parent_says() {
    let mut registry = Registry::default();
    let policies = [in_mode("write", &mut registry, "shops", ("Shop", "Pod", ""))];
    let plan = plan(&policies, &[], &mut registry, &Libraries::default());
    let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
    let entry = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "OperatorSilent", "message": "", "observedGeneration": 1,
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
        for kind in plan.kinds.values().filter(|kind| kind.key.1 == "Shop") {
            core.reflector.apply(&kind.interest, &shop.child, Some(&shop.text));
        }
        let id = core.reflector.find("books").unwrap();
        core.take_in(NOW, &[id]);
        let says = core.reflector.read(id, |row| row.parent.as_ref().map(|parent| parent.view.digest));
        let wanted = core.render(id, NOW).unwrap();
        assert_eq!(wanted.entries.len(), 2);
        let digest = watcher::status::digest(&wanted.entries, wanted.observed_generation);
        assert_eq!(Some(digest), says.flatten(), "observedGeneration {observed}");
    }
}
