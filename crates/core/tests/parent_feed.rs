//! A reader of all parents is told everything once, and what changed from then on.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::KindId;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::{Core, ParentChanges};
use serde_json::{Value, json};
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);

fn object(kind: &str, name: &str, owner: Option<&str>, version: u64, status: &Value) -> ParentObject {
    let api = if kind == "Pod" { "v1" } else { "example.com/v1" };
    let owners = owner.map(|owner| {
        let (kind, name) = owner.split_once('/').unwrap();
        json!([{ "apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": name }])
    });
    let value = json!({ "apiVersion": api, "kind": kind, "status": status, "metadata": {
        "name": name, "namespace": "shop", "uid": name, "generation": 1, "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners } });
    serde_json::from_str(&value.to_string()).unwrap()
}

fn pod(name: &str, owner: &str, version: u64, phase: &str) -> ParentObject {
    object("Pod", name, Some(owner), version, &json!({ "phase": phase }))
}

/// Shop books → Database db → Pod, and Shop toys → Database tb → Pod.
struct Shops {
    core: Core,
    pods: KindId,
    now: Time,
}

impl Shops {
    fn open() -> Shops {
        let mut registry = IdRegistry::default();
        let mut policy = |name: &str, parent: &str, (group, child): (&str, &str)| {
            let spec = json!({
                "parent": { "group": "example.com", "kind": parent }, "settle": "0s", "mode": "shadow",
                "children": [{ "kind": { "group": group, "kind": child } }],
            });
            let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
            let (id, name) = (registry.new_policy_id(), name.to_owned());
            PolicyInUse { id, name, compiled, acceptance: aggregator::Acceptance::Accepted }
        };
        let policies = [
            policy("shops", "Shop", ("example.com", "Database")),
            policy("databases", "Database", ("", "Pod")),
        ];
        let plan = build_plan(&policies, &Released::new(), &mut registry, &UnreadLibraries);
        let mut core =
            Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
        let objects = [
            object("Shop", "books", None, 1, &Value::Null),
            object("Shop", "toys", None, 1, &Value::Null),
            object("Database", "db", Some("Shop/books"), 1, &Value::Null),
            object("Database", "tb", Some("Shop/toys"), 1, &Value::Null),
            pod("db-0", "Database/db", 1, "Pending"),
            pod("tb-0", "Database/tb", 1, "Pending"),
        ];
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let pods = *plan.kinds.iter().find(|(_, kind)| kind.key.1 == "Pod").unwrap().0;
        let mut shops = Shops { core, pods, now: NOW };
        shops.turn();
        shops
    }

    fn turn(&mut self) {
        for _ in 0..20 {
            self.core.run_turn(self.now);
            self.now = self.now + Duration::from_millis(250);
        }
    }

    fn apply(&mut self, pod: &ParentObject) {
        self.core.reflector.apply_object(self.pods, &pod.child, Some(&pod.text));
        self.turn();
    }

    fn ask(&mut self, after: Option<u64>) -> ParentChanges {
        self.core.take_parent_changes(after, self.now)
    }

    /// Names of the parents of which something changed.
    fn names(&self, changes: &ParentChanges) -> Vec<String> {
        let name = |id| self.core.reflector.read_row(id, |row| row.name.to_string()).unwrap();
        let mut names: Vec<_> = changes.changed.iter().map(|id| name(*id)).collect();
        names.sort();
        names
    }
}

#[test]
fn everything_is_told_once_and_then_what_changed_with_all_above_it() {
    let mut shops = Shops::open();
    let whole = shops.ask(None);
    assert_eq!((whole.is_whole, whole.answers.len()), (true, 4));
    let nothing = shops.ask(Some(whole.number));
    assert_eq!((nothing.is_whole, nothing.answers.len()), (false, 0));
    shops.apply(&pod("db-0", "Database/db", 2, "Failed"));
    let changes = shops.ask(Some(nothing.number));
    assert_eq!((changes.is_whole, shops.names(&changes)), (false, vec!["books".to_owned(), "db".to_owned()]));
    assert_eq!(changes.answers.len(), 2);
    assert!(changes.answers.iter().all(|answer| answer.not_ready_since.is_some()));
}

#[test]
fn an_answer_that_got_lost_is_told_again_with_what_came_since() {
    let mut shops = Shops::open();
    let whole = shops.ask(None);
    shops.apply(&pod("db-0", "Database/db", 2, "Failed"));
    let lost = shops.ask(Some(whole.number));
    shops.apply(&pod("tb-0", "Database/tb", 2, "Failed"));
    let again = shops.ask(Some(whole.number));
    assert!(lost.changed.is_subset(&again.changed));
    assert_eq!(shops.names(&again), ["books", "db", "tb", "toys"]);
    let seen = shops.ask(Some(again.number));
    assert_eq!(shops.names(&seen), [""; 0]);
}

#[test]
fn who_begins_anew_and_who_missed_a_name_is_told_everything() {
    let mut shops = Shops::open();
    let whole = shops.ask(None);
    shops.core.set_kind_name(shops.pods, "Pod", "");
    let same = shops.ask(Some(whole.number));
    assert!(!same.is_whole, "it has that name");
    shops.core.set_kind_name(shops.pods, "Pod", "example.com");
    let named = shops.ask(Some(same.number));
    assert!(named.is_whole, "it got another name");
    shops.core.end_parent_feed();
    assert!(shops.ask(Some(named.number)).is_whole, "nothing was recorded in between");
    assert!(shops.ask(None).is_whole);
}
