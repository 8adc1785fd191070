//! Objects whose rule reads the clock are read and evaluated again, told in sentences.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use aggregator::KindId;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::{Core, LiveRead};
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

/// A full half minute.
const NOW: Time = Time(1_800_000_000_000);

/// Says that an operator which has not set its mark for a minute is dead.
const HEARTBEAT: &str = "if os.time() - obj.spec.beat < 60 then return {status = 'Healthy'} end \
                         return {status = 'Degraded', message = 'no heartbeat'}";

fn pod(number: u32, beat: u64) -> Value {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" });
    json!({ "apiVersion": "v1", "kind": "Pod", "status": {},
        "spec": { "beat": NOW.0 / 1000 + i64::try_from(beat).unwrap() },
        "metadata": { "name": format!("pod-{number}"), "namespace": "shop", "uid": format!("pod-{number}"),
            "generation": 1, "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [owner] } })
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

struct HeartbeatCluster {
    core: Core,
    pods: KindId,
}

impl HeartbeatCluster {
    /// A parent above so many pods, each of which is judged by this script at the start.
    fn begin(pods: u32, script: &str) -> HeartbeatCluster {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s", "mode": "shadow",
            "children": [{ "kind": { "group": "", "kind": "Pod" }, "ready": { "lua": script } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut registry = IdRegistry::default();
        let acceptance = aggregator::Acceptance::Accepted;
        let policy =
            PolicyInUse { id: registry.new_policy_id(), name: "db".to_owned(), compiled, acceptance };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
        let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": {}, "metadata": {
            "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
        let all = std::iter::once(parent).chain((1..=pods).map(|number| pod(number, 0)));
        let objects: Vec<ParentObject> = all.map(|object| read(&object)).collect();
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        core.reflector.set_now(NOW);
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let pods = plan.kinds.values().find(|kind| kind.key.1 == "Pod").unwrap().id;
        let mut cluster = HeartbeatCluster { core, pods };
        cluster.turn_at(0);
        cluster
    }

    /// A turn runs so many seconds after the start; returns the reads that it asks for.
    fn turn_at(&mut self, seconds: u64) -> Vec<LiveRead> {
        self.core.run_turn(NOW + Duration::from_secs(seconds));
        self.core.take_reevaluation_reads()
    }

    /// A live read brings a pod as it is, in the version that is held.
    fn read_pod(&self, number: u32, beat: u64) {
        let (reflector, object) = (&self.core.reflector, read(&pod(number, beat)));
        let drift =
            reflector.apply_live(self.pods, reflector.start_read(), &object.child, Some(&object.text));
        assert!(drift.1.is_none(), "the watch has lost nothing");
    }

    fn reason(&self) -> ParentReason {
        let parent = self.core.reflector.find_object("db").unwrap();
        let policy = self.core.engine.policies_of(parent).next().unwrap();
        self.core.engine.answer_of(parent, policy).unwrap().reason
    }
}

#[test]
fn an_object_whose_rule_reads_the_clock_is_judged_again_though_nothing_of_it_changes() {
    let mut cluster = HeartbeatCluster::begin(1, HEARTBEAT);
    assert_eq!(cluster.reason(), ParentReason::AllChildrenReady);
    for second in 1..30 {
        assert_eq!(cluster.turn_at(second), [], "{second}");
    }
    for second in [30, 60] {
        let at = Time(NOW.0 + i64::try_from(second * 1000).unwrap());
        assert!(cluster.core.next_deadline().is_some_and(|next| next <= at), "{second}");
        let reads = cluster.turn_at(second);
        assert!(matches!(&reads[..], [LiveRead::One { name, .. }] if name == "pod-1"), "{reads:?}");
        assert_eq!(cluster.reason(), ParentReason::AllChildrenReady);
        cluster.read_pod(1, 0);
        assert_eq!(cluster.turn_at(second + 1), [], "once");
    }
    cluster.turn_at(65);
    assert_eq!(cluster.reason(), ParentReason::ChildrenFailed, "it has been silent for a minute");
    assert_eq!(cluster.turn_at(90).len(), 1);
    cluster.read_pod(1, 85);
    cluster.turn_at(91);
    cluster.turn_at(95);
    assert_eq!(cluster.reason(), ParentReason::AllChildrenReady, "it is back");
}

#[test]
fn a_verdict_by_the_clock_that_cannot_be_renewed_ends() {
    let mut cluster = HeartbeatCluster::begin(1, HEARTBEAT);
    for second in [30, 60, 90, 120] {
        assert_eq!(cluster.turn_at(second).len(), 1, "{second}");
        assert_eq!(cluster.reason(), ParentReason::AllChildrenReady);
    }
    assert_eq!(cluster.turn_at(150).len(), 1);
    cluster.turn_at(155);
    assert_eq!(cluster.reason(), ParentReason::ChildrenUnknown);
    cluster.read_pod(1, 150);
    cluster.turn_at(156);
    cluster.turn_at(160);
    assert_eq!(cluster.reason(), ParentReason::AllChildrenReady);
}

#[test]
fn where_many_of_a_namespace_are_due_one_list_brings_them() {
    let mut cluster = HeartbeatCluster::begin(21, HEARTBEAT);
    let list = LiveRead::All { kind: cluster.pods, namespace: "shop".to_owned() };
    assert_eq!(cluster.turn_at(30), [list]);
    let mut cluster = HeartbeatCluster::begin(20, HEARTBEAT);
    assert_eq!(cluster.turn_at(30).len(), 20);
}

#[test]
fn an_object_whose_rule_does_not_ask_for_the_time_costs_no_reads() {
    let script = "if obj.spec.beat == 0 then os.time() end return {status = 'Healthy'}";
    let mut cluster = HeartbeatCluster::begin(3, script);
    for second in (0..600).step_by(30) {
        assert_eq!(cluster.turn_at(second), [], "{second}");
    }
    assert_eq!(cluster.reason(), ParentReason::AllChildrenReady);
}
