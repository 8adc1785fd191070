//! What is said of a parent below a parent, told in sentences.

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

const NOW: Time = Time(1_800_000_000_000);

/// Shop books → Database db → Pods.
struct QuotedShop {
    core: Core,
    /// The kind of the Pods.
    pods: aggregator::KindId,
    now: Time,
    version: u64,
}

fn object(kind: &str, name: &str, owner: Option<(&str, &str)>, version: u64, status: &Value) -> ParentObject {
    let api = if ["Pod", "PersistentVolumeClaim"].contains(&kind) { "v1" } else { "example.com/v1" };
    let owners = owner.map(
        |(kind, name)| json!([{ "apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": name }]),
    );
    let value = json!({ "apiVersion": api, "kind": kind, "status": status, "metadata": {
        "name": name, "namespace": "shop", "uid": name, "resourceVersion": version.to_string(), "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners } });
    serde_json::from_str(&value.to_string()).unwrap()
}

fn failed(reason: &str) -> Value {
    json!({ "phase": "Failed", "reason": reason })
}

impl QuotedShop {
    /// A world in which a database says `db`, with so many Pods that failed for `reason`, of which all must be ready or
    /// (`quorum`) so many.
    fn begin(db: &Value, pods: usize, reason: &str, quorum: Option<&str>) -> QuotedShop {
        let mut registry = IdRegistry::default();
        let mut policy = |name: &str, parent: &str, child: &str, group: &str, quorum: Option<&str>| {
            let mut spec = json!({
                "parent": { "group": "example.com", "kind": parent }, "settle": "0s", "mode": "shadow",
                "children": [{ "kind": { "group": group, "kind": child } }],
            });
            if let Some(quorum) = quorum {
                spec["children"][0]["quorum"] = json!(quorum);
            }
            let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
            PolicyInUse {
                id: registry.new_policy_id(),
                name: name.to_owned(),
                compiled,
                acceptance: aggregator::Acceptance::Accepted,
            }
        };
        let policies = [
            policy("shops", "Shop", "Database", "example.com", None),
            policy("databases", "Database", "Pod", "", quorum),
        ];
        let plan = build_plan(&policies, &Released::default(), &mut registry, &UnreadLibraries);
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        let mut all = vec![
            object("Shop", "books", None, 1, &Value::Null),
            object("Database", "db", Some(("Shop", "books")), 1, db),
        ];
        all.extend(
            (0..pods)
                .map(|at| object("Pod", &format!("db-{at}"), Some(("Database", "db")), 1, &failed(reason))),
        );
        load_objects(&mut core, &plan, &all.iter().collect::<Vec<_>>(), NOW);
        let pods = plan.kinds.values().find(|kind| kind.interest.parent.is_empty()).unwrap().id;
        let mut shop = QuotedShop { core, pods, now: NOW, version: 1 };
        shop.run();
        shop
    }

    /// Five seconds pass.
    fn run(&mut self) {
        let end = self.now + Duration::from_secs(5);
        while self.now < end {
            self.core.run_turn(self.now);
            let next = self.core.engine.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    /// The first Pod says something else.
    fn pod_says(&mut self, status: &Value) {
        self.observe_pod(status);
        self.run();
    }

    /// The same, and no time passes.
    fn observe_pod(&mut self, status: &Value) {
        self.version += 1;
        let pod = object("Pod", "db-0", Some(("Database", "db")), self.version, status);
        self.core.reflector.apply_object(self.pods, &pod.child, Some(&pod.text));
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(self.now, &moved);
    }

    fn says(&self, uid: &str) -> String {
        let id = self.core.reflector.find_object(uid).unwrap();
        let policy = self.core.engine.policies_of(id).next().unwrap();
        self.core.parent_detail(id, policy, self.now).message
    }
}

#[test]
fn a_parent_that_was_not_handled_is_quoted_so_whatever_is_below_it() {
    let shop = QuotedShop::begin(&json!({ "observedGeneration": 1 }), 1, "Evicted", None);
    assert!(shop.says("db").starts_with("waiting for the operator"), "{}", shop.says("db"));
    assert_eq!(shop.says("books"), "1 of 1 not ready: Database db progressing (ChildrenPending)");
}

#[test]
fn a_parent_whose_missing_child_has_just_come_says_so_until_it_is_evaluated_again() {
    let mut shop = QuotedShop::begin(&Value::Null, 0, "", None);
    assert_eq!(shop.says("db"), "Pod missing (0 of at least 1 found)");
    let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    shop.observe_pod(&ready);
    let changed = "0 of 0 not ready: its children have changed, and are evaluated again";
    assert_eq!(shop.says("db"), changed, "and never nothing");
    shop.run();
    assert_eq!(shop.says("db"), "1 of 1 ready");
}

#[test]
fn what_is_quoted_of_a_parent_is_what_it_says() {
    let mut shop = QuotedShop::begin(&Value::Null, 1, "Evicted", None);
    for reason in ["Evicted", "OutOfcpu", "NodeLost"] {
        shop.pod_says(&failed(reason));
        let says = shop.says("db");
        let (_, causes) = says.split_once(": ").unwrap();
        assert!(causes.contains(reason), "{says}");
        assert_eq!(shop.says("books"), format!("1 of 1 not ready: Database db failed ({causes})"));
    }
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    shop.pod_says(&json!({ "phase": "Running", "conditions": ready }));
    assert_eq!((shop.says("db").as_str(), shop.says("books").as_str()), ("1 of 1 ready", "1 of 1 ready"));
}

#[test]
fn a_quote_is_no_longer_than_what_it_is_part_of() {
    let shop = QuotedShop::begin(&Value::Null, 3, &"Evicted".repeat(100), None);
    let (says, quotes) = (shop.says("db"), shop.says("books"));
    let (_, quote) = quotes.split_once("failed (").unwrap();
    let quote = quote.trim_end_matches("…)");
    assert!(quote.len() > 400 && says.contains(quote), "{quotes}\n{says}");
}

#[test]
fn a_quorum_that_is_not_there_is_named() {
    let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let mut shop = QuotedShop::begin(&Value::Null, 1, "Evicted", Some("3"));
    shop.pod_says(&ready);
    assert_eq!(shop.says("db"), "Pod missing (1 of at least 3 found)");
}

/// What a shop says of a database with a failed Pod and a lost volume, which are of two policies.
fn quoted_of_two_policies(ids_in_order_of_names: bool) -> String {
    let mut registry = IdRegistry::default();
    let mut named = vec![
        ("databases", json!({ "kind": "Database", "child": "Pod", "group": "", "type": "Ready" })),
        (
            "volumes",
            json!({ "kind": "Database", "child": "PersistentVolumeClaim", "group": "", "type": "StorageReady" }),
        ),
        ("shops", json!({ "kind": "Shop", "child": "Database", "group": "example.com", "type": "Ready" })),
    ];
    if !ids_in_order_of_names {
        named.reverse();
    }
    let policies = named.into_iter().map(|(name, of)| {
        let spec = json!({
            "parent": { "group": "example.com", "kind": of["kind"] }, "settle": "0s", "mode": "shadow",
            "condition": { "type": of["type"] },
            "children": [{ "kind": { "group": of["group"], "kind": of["child"] } }],
        });
        PolicyInUse {
            id: registry.new_policy_id(),
            name: name.to_owned(),
            compiled: compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap(),
            acceptance: aggregator::Acceptance::Accepted,
        }
    });
    let policies: Vec<_> = policies.collect();
    let plan = build_plan(&policies, &Released::default(), &mut registry, &UnreadLibraries);
    let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
    let all = [
        object("Shop", "books", None, 1, &Value::Null),
        object("Database", "db", Some(("Shop", "books")), 1, &Value::Null),
        object("Pod", "db-0", Some(("Database", "db")), 1, &failed("Evicted")),
        object("PersistentVolumeClaim", "data", Some(("Database", "db")), 1, &json!({ "phase": "Lost" })),
    ];
    load_objects(&mut core, &plan, &all.iter().collect::<Vec<_>>(), NOW);
    let pods = aggregator::KindId(0);
    let mut shop = QuotedShop { core, pods, now: NOW, version: 1 };
    shop.run();
    shop.says("books")
}

/// An edit gives a policy a new id, and a restart gives all of them new ones: neither may change a word.
#[test]
fn which_of_two_policies_is_quoted_does_not_depend_on_their_ids() {
    let said = quoted_of_two_policies(true);
    assert!(said.contains("Pod db-0 failed"), "{said}");
    assert_eq!(said, quoted_of_two_policies(false));
}
