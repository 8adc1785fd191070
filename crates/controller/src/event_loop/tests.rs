//! The loop runs the self-checks of the engine: that they find anything is shown beside them.

use std::time::Duration;

use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Notify, watch};
use watcher::ParentObject;

use super::*;
use crate::kind_tasks::ResolvedKinds;
use crate::lease::{GatedLeadership, Leadership};
use crate::transitions::TransitionHub;

/// A running loop over one parent with three pods, all of which the engine has observed.
struct RunningLoop {
    reflector: Arc<Reflector>,
    metrics: Arc<Metrics>,
    pods: KindId,
    kind_events: UnboundedSender<(KindId, KindEvent)>,
}

fn object(value: &Value) -> ParentObject {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn pod(number: u32, version: u32, ready: &str) -> ParentObject {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "controller": true, "name": "db", "uid": "db" });
    object(&json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": format!("pod-{number}"), "namespace": "shop", "uid": format!("pod-{number}"),
        "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } }))
}

fn database() -> ParentObject {
    object(&json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": {}, "metadata": {
        "name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z" } }))
}

fn plan_over_pods() -> WatchPlan {
    let spec = json!({
        "parent": { "group": "example.com", "kind": "Database" },
        "children": [{ "kind": { "group": "", "kind": "Pod" } }],
    });
    let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
    let mut registry = IdRegistry::default();
    let acceptance = aggregator::Acceptance::Accepted;
    let policy = PolicyInUse { id: registry.new_policy_id(), name: "db".to_owned(), compiled, acceptance };
    build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries)
}

impl RunningLoop {
    fn start() -> RunningLoop {
        let (plan, clock) = (Arc::new(plan_over_pods()), ServerClock::assume_local());
        let (metrics, reflector) = (Arc::new(Metrics::new(0).unwrap()), Arc::new(Reflector::new(|| ())));
        let mut core = Core::new(reflector.clone(), Duration::ZERO, Duration::ZERO, Seed(0));
        let objects: Vec<_> = [database()].into_iter().chain((1..=3).map(|n| pod(n, 1, "True"))).collect();
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), clock.now());
        let pods = plan.kinds.values().find(|kind| kind.key.1 == "Pod").unwrap().id;
        let (kind_events, events) = mpsc::unbounded_channel();
        let (plans, new_plans) = mpsc::unbounded_channel();
        let (writes, written) = mpsc::unbounded_channel();
        let (settled, outcomes) = mpsc::unbounded_channel();
        let (kind_requests, asked) = mpsc::unbounded_channel();
        let (live_reads, ordered) = mpsc::unbounded_channel();
        let (queries, questions) = mpsc::channel(1);
        let channels = LoopChannels {
            dirty: Arc::new(Notify::new()),
            kind_events: events,
            plans: new_plans,
            writes,
            leadership: GatedLeadership::new(Leadership::permanent(clock.local_clock())).0,
            settled: outcomes,
            kind_requests,
            live_reads,
            snapshot: watch::Sender::default(),
            trees: None,
            notices: None,
            rollouts: None,
            transitions: Arc::new(TransitionHub::new(ResolvedKinds::default(), metrics.dropped.clone())),
            queries: questions,
        };
        plans.send(plan).unwrap();
        let event_loop = EventLoop::new(core, clock, channels, metrics.clone(), Seed(1));
        tokio::spawn(async move {
            // Whoever is at the other ends does nothing, and stays.
            let _others = (plans, written, settled, asked, ordered, queries);
            event_loop.run_loop(CancellationToken::new()).await
        });
        RunningLoop { reflector, metrics, pods, kind_events }
    }

    /// A pod changes, and the loop does not hear of it.
    fn lose_change(&self, live: &ParentObject) {
        self.reflector.apply_object(self.pods, &live.child, Some(&live.text));
        assert_eq!(self.reflector.take_dirty(usize::MAX).len(), 1);
    }

    fn count_drift(&self) -> u64 {
        let text = self.metrics.encode_text();
        let series = |line: &&str| line.starts_with("rollcall_drift_total") && line.contains("recount");
        let counts =
            text.lines().filter(series).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_list_and_now_and_then_what_was_missed_is_found_and_counted() {
    let running = RunningLoop::start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let listed = || running.kind_events.send((running.pods, KindEvent::Synced)).unwrap();
    listed();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(running.count_drift(), 0, "nothing was missed");
    running.lose_change(&pod(1, 2, "False"));
    running.lose_change(&pod(2, 2, "False"));
    listed();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(running.count_drift(), 2, "after a list");
    running.lose_change(&pod(3, 2, "False"));
    // Each time of one kind of the two.
    tokio::time::sleep(Duration::from_hours(3)).await;
    assert_eq!(running.count_drift(), 3, "without one");
}
