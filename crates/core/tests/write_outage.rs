//! Many parents, and a server that refuses every write for a while; in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aggregator::{DeliveryOutcome, KindId, KindState};
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::{Core, ParentWrite};
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

/// The answer of a server that fails.
const REFUSED: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);
const NOW: Time = Time(1_800_000_000_000);
const PARENTS: usize = 2_000;
const WRITER_ROOM: usize = 32;
const LATENCY: Duration = Duration::from_millis(5);

/// Parents without children, and the server that holds them.
struct WriteOutage {
    core: Core,
    parents: BTreeMap<String, Value>,
    now: Time,
    /// How the server answers writes; `None` where it accepts them.
    failing: Option<DeliveryOutcome>,
    in_flight: VecDeque<(Time, ParentWrite)>,
    sent: Vec<Time>,
    written: BTreeSet<String>,
    /// Reasons of the conditions that were sent.
    reasons: Vec<String>,
    pods: KindId,
    databases: KindId,
    /// Parents whose writes alone fail.
    refused: fn(&str) -> bool,
}

impl WriteOutage {
    fn begin() -> WriteOutage {
        WriteOutage::with_objects(Vec::new())
    }

    /// Parents that have been told that their one pod is ready.
    fn of_ready_parents() -> WriteOutage {
        let pod = |at| {
            let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "controller": true,
                "name": format!("db-{at}"), "uid": format!("db-{at}") });
            read(&json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
                "name": format!("pod-{at}"), "namespace": "shop", "uid": format!("pod-{at}"), "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner] },
                "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } }))
        };
        let mut outage = WriteOutage::with_objects((0..PARENTS).map(pod).collect());
        outage.failing = None;
        outage.run_for(Duration::from_mins(5));
        let last = &outage.reasons[outage.reasons.len() - PARENTS..];
        assert!(last.iter().all(|reason| reason == "AllChildrenReady"), "{last:?}");
        outage.reasons.clear();
        outage
    }

    fn with_objects(children: Vec<ParentObject>) -> WriteOutage {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "group": "", "kind": "Pod" } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut registry = IdRegistry::default();
        let policy = PolicyInUse {
            id: registry.new_policy_id(),
            name: "databases".to_owned(),
            compiled,
            acceptance: aggregator::Acceptance::Accepted,
        };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
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
        let objects: Vec<ParentObject> = parents.values().map(read).chain(children).collect();
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let (in_flight, sent, written) = (VecDeque::new(), Vec::new(), BTreeSet::new());
        let kind = |name: &str| plan.kinds.values().find(|kind| kind.key.1 == name).unwrap().id;
        let (pods, databases) = (kind("Pod"), kind("Database"));
        let reasons = Vec::new();
        WriteOutage {
            core,
            parents,
            now: NOW,
            failing: Some(REFUSED),
            in_flight,
            sent,
            written,
            reasons,
            pods,
            databases,
            refused: |_| true,
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            while let Some((_, write)) = self.in_flight.pop_front_if(|(at, _)| *at <= self.now) {
                self.answer(write);
            }
            for write in self.core.run_turn(self.now) {
                self.sent.push(self.now);
                self.reasons.push(write.wanted.entries[0].reason.clone());
                self.in_flight.push_back((self.now + LATENCY, write));
            }
            assert!(self.in_flight.len() <= WRITER_ROOM, "patches are rendered for what there is room for");
            while self.core.engine.take_due_resync(self.now).is_some() {}
            let landing = self.in_flight.front().map(|(at, _)| *at);
            let next = [self.core.next_deadline(), landing].into_iter().flatten().min().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    fn answer(&mut self, write: ParentWrite) {
        let failing = self.failing.filter(|_| (self.refused)(&write.name));
        self.answer_as(write, failing);
    }

    fn answer_as(&mut self, write: ParentWrite, failing: Option<DeliveryOutcome>) {
        let outcome = if let Some(failing) = failing {
            failing
        } else {
            let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
            let parent = self.parents.get_mut(&write.name).unwrap();
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

    /// Gives a parent a new generation, for which it has to be written anew.
    fn edit_spec(&mut self, name: &str) {
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
    fn busiest_second(&self, after: Time) -> usize {
        let late: Vec<Time> = self.sent.iter().copied().filter(|at| *at >= after).collect();
        let mut end = 0;
        let within = late.iter().enumerate().map(|(first, at)| {
            end += late[end..].iter().take_while(|time| **time < *at + Duration::from_secs(1)).count();
            end - first
        });
        within.max().unwrap_or_default()
    }
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

#[test]
fn a_server_that_refuses_every_write_is_probed_and_told_everything_once_it_heals() {
    let mut outage = WriteOutage::begin();
    outage.run_for(Duration::from_mins(2));
    let first_second = outage.sent.iter().filter(|at| **at < NOW + Duration::from_secs(1)).count();
    assert!(first_second <= 8, "{first_second}");
    let busiest = outage.busiest_second(NOW + Duration::from_secs(1));
    assert!((1..=2).contains(&busiest), "{busiest} requests within a second");
    assert!(outage.sent.len() > 100, "it is probed all the time: {}", outage.sent.len());
    assert!(outage.core.write_queue_len() > PARENTS - 200, "parents wait, and nothing is rendered for them");
    outage.failing = None;
    outage.run_for(Duration::from_mins(2));
    assert_eq!(outage.written.len(), PARENTS);
    assert_eq!(outage.core.write_queue_len(), 0);
}

#[test]
fn a_server_that_denies_every_write_is_asked_six_times_a_second() {
    let mut outage = WriteOutage::begin();
    outage.failing = Some(DeliveryOutcome::Denied);
    outage.run_for(Duration::from_mins(15));
    let busiest = outage.busiest_second(NOW + Duration::from_secs(1));
    assert!((5..=8).contains(&busiest), "{busiest} requests within a second");
    let asked = outage.sent.len();
    assert!(asked > 2 * PARENTS, "each has its turn again and again: {asked}");
    outage.failing = None;
    outage.run_for(Duration::from_mins(2));
    assert_eq!((outage.written.len(), outage.core.write_queue_len()), (PARENTS, 0));
}

#[test]
fn what_one_half_of_the_parents_is_refused_is_tried_rarely_though_the_other_half_is_written_all_the_time() {
    for refusal in [REFUSED, DeliveryOutcome::Conflict] {
        let mut outage = WriteOutage::begin();
        outage.failing = Some(refusal);
        outage.refused = |name| name.ends_with(['0', '2', '4', '6', '8']);
        outage.run_for(Duration::from_mins(2));
        assert_eq!(outage.written.len(), PARENTS / 2, "{refusal:?}: the others are written");
        outage.sent.clear();
        for round in 0..300 {
            outage.edit_spec(&format!("db-{}", 2 * round + 1));
            outage.run_for(Duration::from_millis(100));
        }
        // Each edit takes a write for its first word, and one for its answer some seconds later.
        let refused = outage.sent.len().saturating_sub(2 * 300);
        assert!(refused <= 30 * 8, "{refusal:?}: {refused} beside the others");
        outage.failing = None;
        outage.run_for(Duration::from_mins(2));
        assert_eq!(outage.written.len(), PARENTS, "{refusal:?}");
    }
}

#[test]
fn few_parents_are_written_in_the_turn_that_decides_it_and_more_with_each_that_lands() {
    let mut outage = WriteOutage::begin();
    let (mut handed_out, mut before) = (Vec::new(), BTreeSet::new());
    for _ in 0..8 {
        let writes = outage.core.run_turn(NOW);
        handed_out.push(writes.len());
        for write in writes {
            assert!(before.insert(write.name.clone()), "each in its turn");
            outage.answer_as(write, None);
        }
    }
    assert_eq!(handed_out, [4, 8, 16, 32, 32, 32, 32, 32], "no more than the writer has room for");
}

#[test]
fn what_waits_to_be_said_of_a_blindness_is_not_said_when_it_is_over() {
    let mut outage = WriteOutage::of_ready_parents();
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Stale);
    outage.run_for(LATENCY);
    let begun = outage.reasons.len();
    assert!((1..PARENTS / 2).contains(&begun), "{begun} of {PARENTS} parents are on their way");
    assert!(outage.reasons.iter().all(|reason| reason == "WatchStale"));
    assert!(outage.core.write_queue_len() > 0, "others wait");
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Synced);
    outage.run_for(Duration::from_mins(5));
    let after = &outage.reasons[begun..];
    assert!(after.iter().all(|reason| reason == "AllChildrenReady"), "{after:?}");
    assert_eq!(after.len(), begun, "and only where the blindness was told");
}
