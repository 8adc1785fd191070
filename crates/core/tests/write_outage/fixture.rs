//! The server that holds the parents.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Acceptance, DeliveryOutcome, KindId, PolicyId};
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, WatchPlan, build_plan, compile};
use readiness::Time;
use rollcall_core::{Core, ParentWrite};
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

/// The answer of a server that fails.
pub(crate) const REFUSED: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);
pub(crate) const NOW: Time = Time(1_800_000_000_000);
pub(crate) const PARENTS: usize = 2_000;
const WRITER_ROOM: usize = 32;
pub(crate) const LATENCY: Duration = Duration::from_millis(5);

/// Parents without children, and the server that holds them.
pub(crate) struct WriteOutage {
    pub(crate) core: Core,
    pub(crate) parents: BTreeMap<String, Value>,
    pub(crate) now: Time,
    /// How the server answers writes; `None` where it accepts them.
    pub(crate) failing: Option<DeliveryOutcome>,
    pub(crate) in_flight: VecDeque<(Time, ParentWrite)>,
    pub(crate) sent: Vec<Time>,
    pub(crate) written: BTreeSet<String>,
    /// Reasons of the conditions that were sent.
    pub(crate) reasons: Vec<String>,
    pub(crate) pods: KindId,
    pub(crate) databases: KindId,
    children: Vec<ParentObject>,
    registry: IdRegistry,
    policy: PolicyId,
    /// Parents whose writes alone fail.
    pub(crate) refused: fn(&str) -> bool,
    /// Every second write alone fails.
    pub(crate) fails_every_second: bool,
    pod_version: usize,
    answered: usize,
}

impl WriteOutage {
    pub(crate) fn begin() -> WriteOutage {
        WriteOutage::with_objects(Vec::new())
    }

    /// Parents that have been told that their one pod is ready.
    pub(crate) fn of_ready_parents() -> WriteOutage {
        let pod = |at| read(&pod_of(at, true, 1));
        let mut outage = WriteOutage::with_objects((0..PARENTS).map(pod).collect());
        outage.failing = None;
        outage.run_for(Duration::from_mins(5));
        let last = &outage.reasons[outage.reasons.len() - PARENTS..];
        assert!(last.iter().all(|reason| reason == "AllChildrenReady"), "{last:?}");
        outage.reasons.clear();
        outage
    }

    pub(crate) fn with_objects(children: Vec<ParentObject>) -> WriteOutage {
        let resync = Duration::from_secs(30);
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), resync, resync, Seed(0));
        core.set_max_in_flight_writes(WRITER_ROOM);
        let parents: BTreeMap<String, Value> = (0..PARENTS)
            .map(|at| {
                let name = format!("db-{at}");
                let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": { "conditions": [] }, "metadata": {
                    "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "generation": 1,
                    "creationTimestamp": "2026-01-01T00:00:00Z" } });
                (name, parent)
            })
            .collect();
        let mut registry = IdRegistry::default();
        let kind = |registry: &mut IdRegistry, group: &str, kind: &str| registry.kind(group, kind).unwrap();
        let (pods, databases) =
            (kind(&mut registry, "", "Pod"), kind(&mut registry, "example.com", "Database"));
        let policy = registry.new_policy_id();
        let mut outage = WriteOutage {
            core,
            parents,
            now: NOW,
            failing: Some(REFUSED),
            in_flight: VecDeque::new(),
            sent: Vec::new(),
            written: BTreeSet::new(),
            reasons: Vec::new(),
            pods,
            databases,
            children,
            registry,
            policy,
            refused: |_| true,
            fails_every_second: false,
            pod_version: 1,
            answered: 0,
        };
        outage.apply_policy();
        outage
    }

    /// The policy is created, or created again.
    pub(crate) fn apply_policy(&mut self) {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "group": "", "kind": "Pod" } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        self.policy = self.registry.new_policy_id();
        let name = "databases".to_owned();
        let policy = PolicyInUse { id: self.policy, name, compiled, acceptance: Acceptance::Accepted };
        let plan = build_plan(&[policy], &Released::new(), &mut self.registry, &UnreadLibraries);
        self.follow_plan(&plan);
    }

    /// The policy is deleted, and what it wrote is taken off its parents.
    pub(crate) fn delete_policy(&mut self) {
        let types = ["Ready", "Reconciling", "Stalled"].map(str::to_owned);
        let parents = ("example.com".to_owned(), "Database".to_owned());
        let released = Released::from([(parents, BTreeSet::from(types))]);
        let plan = build_plan(&[], &released, &mut self.registry, &UnreadLibraries);
        self.core.set_policy(self.now, self.policy, None);
        self.follow_plan(&plan);
    }

    /// All kinds of a plan are listed.
    fn follow_plan(&mut self, plan: &WatchPlan) {
        let objects: Vec<ParentObject> =
            self.parents.values().map(read).chain(self.children.iter().cloned()).collect();
        load_objects(&mut self.core, plan, &objects.iter().collect::<Vec<_>>(), self.now);
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            while let Some((_, write)) = self.in_flight.pop_front_if(|(at, _)| *at <= self.now) {
                self.answer(write);
            }
            for write in self.core.run_turn(self.now) {
                self.sent.push(self.now);
                self.reasons.extend(write.wanted.entries.first().map(|entry| entry.reason.clone()));
                self.in_flight.push_back((self.now + LATENCY, write));
            }
            assert!(self.in_flight.len() <= WRITER_ROOM, "patches are rendered for what there is room for");
            while self.core.engine.take_due_resync(self.now).is_some() {}
            let landing = self.in_flight.front().map(|(at, _)| *at);
            let next = [self.core.next_deadline(), landing].into_iter().flatten().min().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    pub(crate) fn answer(&mut self, write: ParentWrite) {
        self.answered += 1;
        let spares = self.fails_every_second && self.answered.is_multiple_of(2);
        let failing = self.failing.filter(|_| (self.refused)(&write.name) && !spares);
        self.answer_as(write, failing);
    }

    pub(crate) fn answer_as(&mut self, write: ParentWrite, failing: Option<DeliveryOutcome>) {
        let outcome = if let Some(failing) = failing {
            failing
        } else {
            let parent = self.parents.get_mut(&write.name).unwrap();
            let mut operations = write.patch.as_array().unwrap().clone();
            // To the API server, what is absent is null.
            operations.retain(|operation| {
                let absent = || parent.pointer(operation["path"].as_str().unwrap()).is_none();
                !(operation["op"] == "test" && operation["value"].is_null() && absent())
            });
            let patch: json_patch::Patch = serde_json::from_value(operations.into()).unwrap();
            json_patch::patch(parent, &patch).unwrap();
            let version: u64 = parent["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            parent["metadata"]["resourceVersion"] = json!((version + 1).to_string());
            let live = read(parent);
            self.core.reflector.apply_object(write.kind, &live.child, Some(&live.text));
            self.written.insert(write.name);
            DeliveryOutcome::Written
        };
        self.core.settle_write(self.now, write.parent, write.ticket, outcome);
    }

    /// The pods of these parents become ready, or cease to be.
    pub(crate) fn turn_pods(&mut self, parents: std::ops::Range<usize>, ready: bool) {
        for at in parents {
            self.pod_version += 1;
            let live = read(&pod_of(at, ready, self.pod_version));
            self.core.reflector.apply_object(self.pods, &live.child, Some(&live.text));
        }
    }

    /// Gives a parent a new generation, for which it has to be written anew.
    pub(crate) fn edit_spec(&mut self, name: &str) {
        let parent = self.parents.get_mut(name).unwrap();
        let bump = |field: &mut Value, next: fn(u64) -> Value| {
            let before = field.as_u64().or_else(|| field.as_str()?.parse().ok()).unwrap();
            *field = next(before + 1);
        };
        bump(&mut parent["metadata"]["generation"], |next| json!(next));
        bump(&mut parent["metadata"]["resourceVersion"], |next| json!(next.to_string()));
        let live = read(parent);
        self.core.reflector.apply_object(self.databases, &live.child, Some(&live.text));
    }

    /// Largest number of requests within a second that begins `after` this time or later.
    pub(crate) fn busiest_second(&self, after: Time) -> usize {
        let late: Vec<Time> = self.sent.iter().copied().filter(|at| *at >= after).collect();
        let mut end = 0;
        let within = late.iter().enumerate().map(|(first, at)| {
            end += late[end..].iter().take_while(|time| **time < *at + Duration::from_secs(1)).count();
            end - first
        });
        within.max().unwrap_or_default()
    }
}

/// The pod of the parent of this number.
fn pod_of(at: usize, ready: bool, version: usize) -> Value {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "controller": true,
        "name": format!("db-{at}"), "uid": format!("db-{at}") });
    let status = if ready { "True" } else { "False" };
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": format!("pod-{at}"), "namespace": "shop", "uid": format!("pod-{at}"),
        "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": status }] } })
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}
