//! What a parent says of the children that its deletion in the foreground waits for.

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
const DELETED: Time = Time(1_800_000_000_000);
/// Longer than two writes are apart that change nothing but words.
const SETTLED: Duration = Duration::from_secs(25);
const TOO_LONG: &str = "; longer than limits.terminating of the policy allows";

/// The Shop, which is deleted in the foreground since [`DELETED`] and has been told nothing.
fn shop() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Shop",
        "metadata": {
            "name": "books", "namespace": "shop", "uid": "books", "generation": 2, "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2027-01-15T08:00:00Z",
            "finalizers": ["foregroundDeletion"],
        },
        "status": { "conditions": [] },
    })
}

/// An object of the core group that the Shop owns.
#[derive(Clone, Copy)]
struct Child {
    kind: &'static str,
    name: &'static str,
    finalizers: &'static [&'static str],
    deleted: bool,
    blocks: bool,
}

impl Child {
    /// One that is being deleted, and blocks the deletion of its owner.
    fn leaving(kind: &'static str, name: &'static str, finalizers: &'static [&'static str]) -> Child {
        Child { kind, name, finalizers, deleted: true, blocks: true }
    }

    fn uid(self) -> String {
        format!("{}-{}", self.kind, self.name)
    }

    fn object(self, version: u64) -> ParentObject {
        let Child { kind, name, finalizers, deleted, blocks } = self;
        let mut value = json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {
                "name": name, "namespace": "shop", "uid": self.uid(), "finalizers": finalizers,
                "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Shop", "name": "books",
                    "uid": "books", "controller": true, "blockOwnerDeletion": blocks }],
            },
        });
        if deleted {
            value["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
        }
        read(&value)
    }
}

fn read(value: &Value) -> ParentObject {
    serde_json::from_str(&value.to_string()).unwrap()
}

/// A service that sees the Shop and what it owns, and writes on it.
struct ForegroundDeletion {
    core: Core,
    plan: WatchPlan,
    shop: Value,
    now: Time,
    version: u64,
}

impl ForegroundDeletion {
    fn begin(shop: Value, children: &[Child]) -> ForegroundDeletion {
        let mut registry = IdRegistry::default();
        let kinds = ["ConfigMap", "PersistentVolumeClaim", "Pod"];
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Shop" }, "settle": "0s",
            "children": kinds.map(|kind| json!({ "kind": { "kind": kind }, "expect": { "min": 0 } })),
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let acceptance = aggregator::Acceptance::Accepted;
        let policy =
            PolicyInUse { id: registry.new_policy_id(), name: "shops".to_owned(), compiled, acceptance };
        let plan = build_plan(&[policy], &Released::default(), &mut registry, &UnreadLibraries);
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        let objects: Vec<ParentObject> =
            std::iter::once(read(&shop)).chain(children.iter().map(|child| child.object(1))).collect();
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), DELETED);
        let version = shop["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        ForegroundDeletion { core, plan, shop, now: DELETED, version }
    }

    /// Lets time pass; returns what was written of the children meanwhile, behind what is said of the parent's own finalizer.
    fn run(&mut self, span: Duration) -> Vec<String> {
        let (end, mut written) = (self.now + span, Vec::new());
        while self.now < end {
            for write in self.core.run_turn(self.now) {
                let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
                json_patch::patch(&mut self.shop, &patch).unwrap();
                written.push(self.says_of_children());
                self.show_shop();
                self.core.settle_write(self.now, write.parent, write.ticket, DeliveryOutcome::Written);
            }
            while self.core.engine.take_due_resync(self.now).is_some() {}
            let next = self.core.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
        written
    }

    fn message(&self) -> &str {
        self.shop["status"]["conditions"][0]["message"].as_str().unwrap()
    }

    fn says_of_children(&self) -> String {
        let message = self.message();
        assert!(message.len() <= 1_024, "{message}");
        let (own, children) = message.split_once(", terminating since 2027-01-15T08:00:00Z").unwrap();
        assert!(own.starts_with("being deleted: finalizer"), "{message}");
        children.to_owned()
    }

    fn show_shop(&mut self) {
        self.version += 1;
        self.shop["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.show("Shop", &read(&self.shop));
    }

    fn show(&mut self, kind: &str, object: &ParentObject) {
        let kind = self.plan.kinds.values().find(|plan| plan.key.1 == kind).unwrap().id;
        self.core.reflector.apply_object(kind, &object.child, Some(&object.text));
        self.observe();
    }

    fn see(&mut self, child: Child) {
        self.version += 1;
        self.show(child.kind, &child.object(self.version));
    }

    fn see_gone(&mut self, child: Child) {
        self.version += 1;
        self.core.reflector.delete_object(&child.uid(), self.version);
        self.observe();
    }

    fn observe(&mut self) {
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(self.now, &moved);
    }
}

#[test]
fn a_parent_names_the_children_that_its_deletion_waits_for_and_follows_them() {
    let claim =
        Child::leaving("PersistentVolumeClaim", "data-0", &["kubernetes.io/pvc-protection", "a.io/x"]);
    let pod = Child::leaving("Pod", "db-0", &[]);
    let map = Child { deleted: false, ..Child::leaving("ConfigMap", "settings", &[]) };
    let free = Child { blocks: false, ..Child::leaving("ConfigMap", "cache", &["b.io/y"]) };
    let mut deletion = ForegroundDeletion::begin(shop(), &[pod, claim, map, free]);
    let all = "; waits for 2 children: PersistentVolumeClaim data-0 (finalizers kubernetes.io/pvc-protection and 1 \
               more), Pod db-0; 1 more child is not deleted yet";
    assert_eq!(deletion.run(SETTLED), [all], "what blocks nothing is not waited for");
    assert!(deletion.run(Duration::from_mins(1)).is_empty(), "told once");

    deletion.see(Child { finalizers: &["a.io/x"], ..claim });
    let released = "; waits for 2 children: PersistentVolumeClaim data-0 (finalizer a.io/x), Pod db-0; 1 more child is \
                    not deleted yet";
    assert_eq!(deletion.run(SETTLED), [released]);
    deletion.see_gone(pod);
    let one = "; waits for 1 child: PersistentVolumeClaim data-0 (finalizer a.io/x); 1 more child is not deleted yet";
    assert_eq!(deletion.run(SETTLED), [one]);
    deletion.see_gone(claim);
    assert_eq!(deletion.run(SETTLED), ["; 1 child is not deleted yet"]);
    deletion.see(Child { deleted: true, ..map });
    assert_eq!(deletion.run(SETTLED), ["; waits for 1 child: ConfigMap settings"]);
    deletion.see_gone(map);
    assert_eq!(deletion.run(SETTLED), [""]);
}

#[test]
fn the_next_process_says_the_same_of_the_children_and_writes_nothing_at_rest() {
    let children = [
        Child::leaving("PersistentVolumeClaim", "data-0", &["kubernetes.io/pvc-protection"]),
        Child { deleted: false, ..Child::leaving("Pod", "db-0", &[]) },
    ];
    let mut first = ForegroundDeletion::begin(shop(), &children);
    assert_eq!(first.run(SETTLED).len(), 1);
    let mut next = ForegroundDeletion::begin(first.shop.clone(), &children);
    assert!(next.run(SETTLED).is_empty());
    // What has gone in between is told.
    let mut later = ForegroundDeletion::begin(first.shop, &children[..1]);
    let left = "; waits for 1 child: PersistentVolumeClaim data-0 (finalizer kubernetes.io/pvc-protection)";
    assert_eq!(later.run(SETTLED), [left]);
}

#[test]
fn of_many_children_those_behind_finalizers_are_named_first_and_few_at_all() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let mut children = names.map(|name| Child::leaving("Pod", name, &[])).to_vec();
    children.push(Child::leaving("Pod", "z", &["a.io/x"]));
    let mut deletion = ForegroundDeletion::begin(shop(), &children);
    let says = "; waits for 8 children: Pod z (finalizer a.io/x), Pod a, Pod b and 5 more";
    assert_eq!(deletion.run(SETTLED), [says]);
    deletion.see_gone(children[6]);
    let says = "; waits for 7 children: Pod z (finalizer a.io/x), Pod a, Pod b and 4 more";
    assert_eq!(deletion.run(SETTLED), [says], "the number of those that are not named is as fresh");
}

#[test]
fn children_of_the_longest_names_leave_the_message_within_its_bound() {
    const LONG: &str = "an-object-whose-name-is-as-long-as-the-api-server-allows-for-most-kinds-and-then-some-more-of-it-\
                        an-object-whose-name-is-as-long-as-the-api-server-allows-for-most-kinds-and-then-some-more-of-it-\
                        an-object-whose-name-is-as-long-as-the-api-server-allow";
    const FINALIZER: &str = "a-rather-long-domain.of-a-company.example.com/and-what-it-holds-the-object-for-in-many-words-and-more";
    let long = |kind| Child::leaving(kind, LONG, &[FINALIZER]);
    let children = [long("ConfigMap"), long("PersistentVolumeClaim"), long("Pod")];
    let mut deletion = ForegroundDeletion::begin(shop(), &children);
    let said = deletion.run(SETTLED);
    assert!(said[0].starts_with("; waits for 3 children: ConfigMap an-object"), "{said:?}");
}

#[test]
fn a_parent_whose_deletion_leaves_its_children_to_themselves_names_none() {
    let mut parent = shop();
    parent["metadata"]["finalizers"] = json!(["a.io/x"]);
    let mut deletion = ForegroundDeletion::begin(parent, &[Child::leaving("Pod", "a", &["a.io/x"])]);
    assert_eq!(deletion.run(SETTLED), [""]);
    assert_eq!(deletion.message(), "being deleted: finalizer a.io/x, terminating since 2027-01-15T08:00:00Z");
}

#[test]
fn a_deletion_in_the_foreground_beyond_its_limit_still_follows_its_children() {
    let pod = Child::leaving("Pod", "db-0", &["a.io/x"]);
    let waits = "; waits for 1 child: Pod db-0 (finalizer a.io/x)";
    let mut deletion = ForegroundDeletion::begin(shop(), &[pod]);
    assert_eq!(deletion.run(Duration::from_mins(11)), [waits.to_owned(), format!("{TOO_LONG}{waits}")]);
    deletion.see_gone(pod);
    assert_eq!(deletion.run(SETTLED), [TOO_LONG]);
}

#[test]
fn a_parent_that_is_released_by_the_garbage_collector_says_what_else_holds_it() {
    let mut parent = shop();
    parent["metadata"]["finalizers"] = json!(["foregroundDeletion", "a.io/x"]);
    let mut deletion = ForegroundDeletion::begin(parent, &[Child::leaving("Pod", "a", &["a.io/x"])]);
    assert_eq!(deletion.run(SETTLED), ["; waits for 1 child: Pod a (finalizer a.io/x)"]);
    deletion.shop["metadata"]["finalizers"] = json!(["a.io/x"]);
    deletion.show_shop();
    assert_eq!(deletion.run(SETTLED), [""]);
    assert_eq!(deletion.message(), "being deleted: finalizer a.io/x, terminating since 2027-01-15T08:00:00Z");
}
