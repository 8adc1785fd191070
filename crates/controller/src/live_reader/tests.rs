//! The resync against a server that counts what it is asked.

mod folded;
mod workloads;

use std::collections::BTreeMap;
use std::future::Ready;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use aggregator::{KindId, PolicyId};
use http::{Request, Response};
use kube::client::Body;
use rollcall_core::{HeldObject, LiveRead, live_reads};
use serde_json::{Value, json};
use timer::{ResyncPace, Seed};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
};
use watcher::reflector::Reflector;
use watcher::{ApiKind, ParentObject, ReflectorObject};

use super::{LiveReader, ReadOrder, ResyncOrder, WorkloadExplanations};
use crate::clock::ServerClock;
use crate::kind_tasks::ResolvedKind;
use crate::metrics::Metrics;

const KIND: KindId = KindId(3);
const PERIOD: Duration = Duration::from_secs(30);
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const PODS: &str = "/api/v1/namespaces/shop/pods";

/// An API server with given objects by path. It answers that there is no other one.
#[derive(Clone, Default)]
struct CountingServer(Arc<Mutex<ServedPaths>>);

#[derive(Default)]
struct ServedPaths {
    answers: BTreeMap<String, Value>,
    asked: Vec<String>,
}

impl CountingServer {
    fn serve(&self, path: &str, answer: Value) {
        self.0.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// There is no such object any more.
    fn forget(&self, path: &str) {
        self.0.lock().unwrap().answers.remove(path);
    }

    /// The paths that were asked for since the last time.
    fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }
}

impl tower_service::Service<Request<Body>> for CountingServer {
    type Response = Response<Body>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let mut served = self.0.lock().unwrap();
        served.asked.push(path.clone());
        let parts: Vec<&str> = path.rsplit('/').collect();
        let group = path.split('/').nth(2).unwrap_or_default();
        let absent = json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
            "details": { "name": parts[0], "group": group, "kind": parts[1] } });
        let answer = served.answers.get(&path).unwrap_or(&absent);
        let code = answer["code"].as_u64().map_or(200, |code| u16::try_from(code).unwrap());
        let body = Body::from(answer.to_string().into_bytes());
        std::future::ready(Ok(Response::builder().status(code).body(body).unwrap()))
    }
}

/// A resync of Deployments in one namespace.
struct ResyncStage {
    server: CountingServer,
    reflector: Arc<Reflector>,
    metrics: Arc<Metrics>,
    explanations: Arc<WorkloadExplanations>,
    orders: UnboundedSender<ReadOrder>,
}

impl ResyncStage {
    /// At so many reads a second, of Deployments with these numbers, which are held at version 5.
    fn start(rate: u32, held: &[u32]) -> ResyncStage {
        let api = ApiKind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
            namespaced: true,
            has_status: true,
        };
        let (stage, _) = ResyncStage::start_kind(rate, interest(), api);
        for n in held {
            stage.observe(*n, 5);
        }
        stage
    }

    /// At so many reads a second, of a kind of which nothing is held.
    fn start_kind(rate: u32, interest: Interest, api: ApiKind) -> (ResyncStage, Arc<ResolvedKind>) {
        let (server, reflector) = (CountingServer::default(), Arc::new(Reflector::new(|| ())));
        let metrics = Arc::new(Metrics::new(0).unwrap());
        let explanations = Arc::<WorkloadExplanations>::default();
        reflector.set_interest(interest);
        reflector.finish_list(&reflector.begin_list(KIND, None));
        let reader = LiveReader {
            failure_traffic: Arc::default(),
            client: kube::Client::new(server.clone(), "default"),
            reflector: reflector.clone(),
            resolved: Arc::default(),
            metrics: metrics.clone(),
            rate,
            period: PERIOD,
            namespaces: Vec::new(),
            clock: ServerClock::assume_local(),
            comparisons: Arc::default(),
            explanations: explanations.clone(),
            drift_log: Arc::default(),
            failures: crate::failure_reporter::FailureReporter::default(),
            seed: Seed(1),
            breaks: crate::kind_tasks::HistoryBreaks::default(),
        };
        let found = Arc::new(ResolvedKind::new(KIND, api));
        reader.resolved.insert(KIND, found.clone());
        let (orders, ordered) = unbounded_channel();
        let (_, nothing) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(reader.run(ordered, nothing));
        (ResyncStage { server, reflector, metrics, explanations, orders }, found)
    }

    /// The watch delivers a version of a Deployment.
    fn observe(&self, n: u32, version: u32) {
        let object: ParentObject = serde_json::from_value(deployment(n, version)).unwrap();
        self.reflector.apply_object(KIND, object.as_child(), object.raw_text());
    }

    /// Orders a read of each object that is held, each for a parent of its own.
    fn order_each(&self) {
        let held = live_reads::held_objects(&self.reflector, KIND, None);
        let parents = held.len();
        held.into_iter().map(HeldObject::into_read).for_each(|read| self.order(read, parents));
    }

    fn order_list(&self, namespace: &str) {
        self.order(LiveRead::All { kind: KIND, namespace: namespace.to_owned() }, 1);
    }

    /// Orders a read for one of so many parents.
    fn order(&self, read: LiveRead, parents: usize) {
        let pace = ResyncPace { interval: PERIOD, keys: parents };
        self.orders.send(ReadOrder::Resync(ResyncOrder { reads: vec![read], pace })).unwrap();
    }

    /// Changes that the pass found and the watch had not delivered.
    fn count_drift(&self) -> u64 {
        let text = self.metrics.encode_text();
        let found =
            text.lines().filter(|line| line.starts_with("rollcall_drift_total") && line.contains("resync"));
        found.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    fn holds(&self, n: u32) -> bool {
        let id = self.reflector.find_object(&uid(n));
        id.is_some_and(|id| self.reflector.read_row(id, |_| ()).is_some())
    }
}

fn interest() -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Database".into() };
    Interest {
        assessment_rules: vec![AssessmentRule {
            limits: readiness::StuckLimits::default(),
            rule: None,
            remembers_outcome: false,
        }],
        child: vec![ChildRule {
            policy: PolicyId(1),
            group: 0,
            rule_index: 0,
            find,
            allowed: AllowedNamespaces::default(),
            ignore: None,
            made_by_none_of: [].into(),
            scope: NamespaceScope::default(),
            retention: OutcomeRetention::Forget,
        }],
        ..Interest::for_kind(KIND, "apps", "Deployment")
    }
}

fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-0000000000{n:02}")
}

/// A Deployment that lacks its pods.
fn deployment(n: u32, version: u32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "namespace": "shop", "name": format!("web-{n}"), "uid": uid(n), "generation": 1,
            "resourceVersion": version.to_string(), "ownerReferences":
            [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": uid(99) }] },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "web" } } },
        "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1 } })
}

fn list_of(items: &[Value]) -> Value {
    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "100" }, "items": items })
}

fn path_of(n: u32) -> String {
    format!("{DEPLOYMENTS}/web-{n}")
}

#[tokio::test(start_paused = true)]
async fn an_object_that_keeps_changing_waits_once() {
    let stage = ResyncStage::start(1, &[1, 2, 3]);
    for version in 6..40 {
        (1..=3).for_each(|n| stage.observe(n, version));
        stage.order_each();
    }
    (1..=3).for_each(|n| stage.server.serve(&path_of(n), deployment(n, 40)));
    stage.server.serve(PODS, list_of(&[]));
    tokio::time::sleep(Duration::from_mins(2)).await;
    let asked = stage.server.take_asked();
    assert_eq!(asked.iter().filter(|path| path.starts_with(DEPLOYMENTS)).count(), 3, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changed_since_its_read_was_ordered_is_found_gone() {
    let stage = ResyncStage::start(1, &[1]);
    stage.order_each();
    stage.observe(1, 6);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.server.take_asked(), [path_of(1)]);
    assert!(!stage.holds(1), "it was held at that version when the read was sent");
}

#[tokio::test(start_paused = true)]
async fn what_is_known_to_be_gone_before_its_turn_comes_is_not_read() {
    let stage = ResyncStage::start(1, &[1, 2]);
    stage.order_each();
    stage.reflector.delete_object(&uid(1), 6);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(stage.server.take_asked(), [path_of(2)]);
    let length = "rollcall_resync_queue_length 0";
    assert!(stage.metrics.encode_text().lines().any(|line| line == length), "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn a_workload_whose_pods_are_not_answered_for_waits_once() {
    let stage = ResyncStage::start(20, &[1]);
    stage.server.serve(&path_of(1), deployment(1, 5));
    stage.server.serve(PODS, json!({ "kind": "Status", "status": "Failure", "code": 500 }));
    for _ in 0..120 {
        stage.order_each();
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    stage.server.serve(PODS, list_of(&[]));
    stage.server.take_asked();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let asked = stage.server.take_asked();
    assert_eq!(asked.iter().filter(|path| *path == PODS).count(), 1, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_list_of_the_pass_lacks_is_read_and_found_gone() {
    let stage = ResyncStage::start(20, &[1, 2]);
    stage.server.serve(DEPLOYMENTS, list_of(&[deployment(1, 5)]));
    stage.server.serve(PODS, list_of(&[]));
    stage.order_list("shop");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = stage.server.take_asked();
    let read = asked.iter().filter(|path| path.starts_with(DEPLOYMENTS)).collect::<Vec<_>>();
    assert_eq!(read, [DEPLOYMENTS, &path_of(2)]);
    assert!(stage.holds(1) && !stage.holds(2));
}
