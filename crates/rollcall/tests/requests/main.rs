//! What the whole service asks of an API server at which nothing happens, minute by minute, in virtual time.
//!
//! `cargo test -p rollcall --test requests -- --nocapture` prints the tables.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that measures")]

mod store_client;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Parser;
use controller::args::RunArgs;
use controller::policies::PolicySource;
use controller::{ControllerService, ServerClock};
use kube::CustomResourceExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use store_client::{StoreClient, TimedRequest};

/// Namespaces of the parents.
const NAMESPACES: u32 = 10;
const PARENTS: u32 = 110;
const CHILDREN: u32 = 10;
/// Time after which everything is told, and only what goes on for ever is asked.
const SETTLED: Duration = Duration::from_secs(10);
/// Most requests a minute that resync and audit may send together.
const MAX_PASS_REQUESTS: usize = 20;
/// The same for each of the namespaces that the service is restricted to: both kinds are listed in it twice a minute, and at first
/// a few objects are read.
const MAX_PASS_REQUESTS_PER_NAMESPACE: usize = 5;
/// The same for workloads: besides both kinds their pods are listed in it, and at first both also whole.
const MAX_WORKLOAD_REQUESTS_PER_NAMESPACE: usize = 10;

#[derive(Parser)]
struct RunArguments {
    #[command(flatten)]
    run: RunArgs,
}

/// What the children are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildSort {
    /// Ten custom resources, one of which may not be ready.
    Parts,
    /// One Deployment with one pod, which may not be ready.
    Workload,
}

impl ChildSort {
    fn kind(self) -> Value {
        match self {
            ChildSort::Parts => json!({ "group": "example.com", "kind": "Part" }),
            ChildSort::Workload => json!({ "group": "apps", "kind": "Deployment" }),
        }
    }
}

/// A cluster of parents with children at which nothing happens.
struct RestingCluster {
    /// Number of parents of which one child is not ready.
    unready: u32,
    children: ChildSort,
    /// Another client writes something every ten seconds, as those do that hold a lease.
    is_busy: bool,
    arguments: &'static str,
}

impl RestingCluster {
    /// Runs the service for so many minutes, and returns what was asked after everything was told. `then` is called in the midst.
    fn play(&self, minutes: u64, then: impl FnOnce(&StoreClient)) -> (StoreClient, Vec<TimedRequest>) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = StoreClient::new();
            fill(&server, self.children, self.unready);
            let arguments = ["rollcall", "--seed", "1"].into_iter().chain(self.arguments.split_whitespace());
            let service = ControllerService {
                client: kube::Client::new(server.clone(), "default"),
                monitor: None,
                source: PolicySource::Cluster(policy::parse_selector("").unwrap()),
                clock: ServerClock::assume_local(),
                listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
                probes: None,
                lease: None,
                trees: None,
                front: None,
                args: RunArguments::parse_from(arguments).run,
            };
            let half = Duration::from_secs(minutes * 30);
            let time = async {
                tokio::time::sleep(SETTLED + half).await;
                then(&server);
                tokio::time::sleep(half).await;
            };
            tokio::select! {
                ended = service.run(CancellationToken::new()) => panic!("the service ended: {ended:?}"),
                () = renew_leases(&server), if self.is_busy => {}
                () = time => {}
            }
            let sent = server.sent().into_iter().filter(|request| request.at > SETTLED);
            let sent = sent
                .map(|request| TimedRequest { at: request.at.saturating_sub(SETTLED), ..request })
                .collect();
            (server, sent)
        })
    }
}

fn namespace(parent: u32) -> String {
    format!("team-{}", parent % NAMESPACES)
}

fn part_status(ready: &str) -> Value {
    json!({ "status": { "observedGeneration": 1, "conditions": [{ "type": "Ready", "status": ready,
        "reason": "AsMade", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })
}

/// Definition of a kind that takes every spec and every status.
fn open_definition(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": singular },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } } }] } })
}

fn fill(server: &StoreClient, children: ChildSort, unready: u32) {
    server.create(serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    server.create(serde_json::to_value(api::ReadinessGroup::crd()).unwrap());
    server.create(open_definition("Widget"));
    server.create(open_definition("Part"));
    server.create(json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
        "metadata": { "name": "widgets" }, "spec": { "settle": "0s",
            "parent": { "group": "example.com", "kind": "Widget" },
            "children": [{ "kind": children.kind() }] } }));
    for name in (0..NAMESPACES).map(namespace).chain(["default", "rollcall-system"].map(str::to_owned)) {
        if server.store().get("v1", "Namespace", "", &name).is_none() {
            server.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
        }
    }
    server.create(json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "lease", "namespace": "default" }, "data": {} }));
    for parent in 0..PARENTS {
        let owner = server.create(json!({ "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": { "name": format!("widget-{parent}"), "namespace": namespace(parent) },
            "spec": {}, "status": { "observedGeneration": 1 } }));
        match children {
            ChildSort::Parts => create_parts(server, &owner, parent, parent < unready),
            ChildSort::Workload => create_workload(server, &owner, parent, parent < unready),
        }
    }
}

fn child_of(owner: &Value, parent: u32, name: &str) -> Value {
    json!({ "name": name, "namespace": namespace(parent), "labels": { "part-of": name },
        "ownerReferences": [{ "apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": true,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"] }] })
}

fn create_parts(server: &StoreClient, owner: &Value, parent: u32, is_last_unready: bool) {
    for child in 0..CHILDREN {
        let is_unready = is_last_unready && child + 1 == CHILDREN;
        let mut part = part_status(if is_unready { "False" } else { "True" });
        part["apiVersion"] = json!("example.com/v1");
        part["kind"] = json!("Part");
        part["metadata"] = child_of(owner, parent, &format!("widget-{parent}-part-{child}"));
        server.create(part);
    }
}

fn create_workload(server: &StoreClient, owner: &Value, parent: u32, is_unready: bool) {
    let name = format!("widget-{parent}-web");
    let available = i32::from(!is_unready);
    let containers = json!({ "containers": [{ "name": "main", "image": "example.com/web:1" }] });
    let deployment = server.create(json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": child_of(owner, parent, &name),
        "spec": { "replicas": 1, "selector": { "matchLabels": { "part-of": name } },
            "template": { "metadata": { "labels": { "part-of": name } }, "spec": containers } },
        "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": available,
            "availableReplicas": available, "unavailableReplicas": 1 - available } }));
    let ready = if is_unready { "False" } else { "True" };
    server.create(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": child_of(&deployment, parent, &name),
        "spec": containers, "status": { "phase": "Running",
            "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z" }],
            "containerStatuses": [{ "name": "main", "ready": !is_unready, "started": !is_unready, "restartCount": 9,
                "image": "example.com/web:1", "imageID": "",
                "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off" } } }] } }));
}

async fn renew_leases(server: &StoreClient) {
    for renewal in 0.. {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let patch = json!({ "data": { "renewal": renewal.to_string() } });
        server.store().patch_object(server.now(), "v1", "ConfigMap", "default", "lease", &patch).unwrap();
    }
}

fn is_of_pass(request: &TimedRequest) -> bool {
    let plurals = ["widgets", "parts", "deployments", "pods", "events"];
    let read = request.target.strip_prefix("get ").or_else(|| request.target.strip_prefix("list "));
    read.is_some_and(|plural| plurals.contains(&plural))
}

/// The requests of each minute by their target, and how many of them are of the pass.
fn by_minute(sent: &[TimedRequest]) -> Vec<(BTreeMap<&str, usize>, usize)> {
    let minutes = sent.last().map_or(0, |request| request.at.as_secs() / 60 + 1);
    let mut all = vec![(BTreeMap::new(), 0); usize::try_from(minutes).unwrap()];
    for request in sent {
        let (targets, of_pass) = &mut all[usize::try_from(request.at.as_secs() / 60).unwrap()];
        *targets.entry(&*request.target).or_default() += 1;
        *of_pass += usize::from(is_of_pass(request));
    }
    all
}

/// Plays it for half an hour, prints the table, and returns the largest number of requests of the pass in a minute.
fn busiest_minute(title: &str, cluster: &RestingCluster) -> usize {
    let (_, sent) = cluster.play(30, |_| {});
    println!("\n{title}\n| minute | of the pass | all |");
    let minutes = by_minute(&sent);
    for (minute, (targets, of_pass)) in minutes.iter().enumerate() {
        println!("| {} | {of_pass} | {targets:?} |", minute + 1);
    }
    minutes.iter().map(|(_, of_pass)| *of_pass).max().unwrap()
}

#[test]
fn a_hundred_and_ten_parents_that_are_not_ready_cost_twenty_requests_a_minute_at_most() {
    for (unready, is_busy) in [(PARENTS, true), (PARENTS, false)] {
        let title = format!("{unready} of {PARENTS} parents not ready, busy server: {is_busy}");
        let most = busiest_minute(
            &title,
            &RestingCluster { unready, children: ChildSort::Parts, is_busy, arguments: "" },
        );
        assert!(most <= MAX_PASS_REQUESTS, "{title}: {most}");
    }
}

#[test]
fn ten_that_are_not_ready_cost_what_they_are() {
    let (unready, title) = (10, "10 of 110 parents not ready, busy server");
    let most = busiest_minute(
        title,
        &RestingCluster { unready, children: ChildSort::Parts, is_busy: true, arguments: "" },
    );
    assert!(most <= 2 * 2 * 10, "two objects of each, twice a minute: {most}");
}

#[test]
fn a_hundred_and_ten_deployments_cost_twenty_requests_a_minute_at_most() {
    for is_busy in [true, false] {
        let title = format!(
            "{PARENTS} of {PARENTS} parents not ready, each with a Deployment, busy server: {is_busy}"
        );
        let most = busiest_minute(
            &title,
            &RestingCluster { unready: PARENTS, children: ChildSort::Workload, is_busy, arguments: "" },
        );
        assert!(most <= MAX_PASS_REQUESTS, "{title}: {most}");
    }
}

#[test]
fn few_deployments_are_read_one_by_one_and_their_pods_with_them() {
    let (unready, title) = (4, "4 of 110 parents not ready, each with a Deployment, busy server");
    let most = busiest_minute(
        title,
        &RestingCluster { unready, children: ChildSort::Workload, is_busy: true, arguments: "" },
    );
    assert!(most <= 3 * 2 * 4 + 1, "the parent, its Deployment and the pods of that, twice a minute: {most}");
}

#[test]
fn a_pod_that_changes_is_explained_by_the_next_pass() {
    for is_busy in [true, false] {
        let cluster =
            RestingCluster { unready: PARENTS, children: ChildSort::Workload, is_busy, arguments: "" };
        let parent = 27;
        let change = |server: &StoreClient| {
            let (namespace, name) = (namespace(parent), format!("widget-{parent}-web"));
            let container = json!({ "name": "main", "ready": false, "started": false, "restartCount": 9,
                "image": "example.com/web:1", "imageID": "",
                "state": { "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } } });
            let patch = json!({ "status": { "containerStatuses": [container] } });
            server.store().patch_status(server.now(), "v1", "Pod", &namespace, &name, &patch).unwrap();
        };
        let (server, sent) = cluster.play(3, change);
        let changed_at = Duration::from_secs(90);
        let lists: Vec<_> = sent.iter().filter(|request| request.target == "list pods").collect();
        let found = lists.iter().filter(|request| request.at > changed_at).nth(1);
        let took = found.map(|request| request.at.saturating_sub(changed_at));
        assert!(took.is_some_and(|took| took < Duration::from_secs(31)), "the list, and the pod: {lists:?}");
        let message = |parent: u32| {
            let widget = format!("widget-{parent}");
            let widget = server.store().get("example.com/v1", "Widget", &namespace(parent), &widget).unwrap();
            widget["status"]["conditions"][0]["message"].as_str().unwrap().to_owned()
        };
        assert!(message(parent).contains("ImagePullBackOff"), "{}", message(parent));
        assert!(message(parent + 10).contains("CrashLoopBackOff"), "{}", message(parent + 10));
    }
}

#[test]
fn where_the_service_is_restricted_to_namespaces_each_of_them_is_listed() {
    let arguments = "--namespaces team-0,team-1,team-2,team-3,team-4,team-5,team-6,team-7,team-8,team-9";
    for (children, most) in [
        (ChildSort::Parts, MAX_PASS_REQUESTS_PER_NAMESPACE),
        (ChildSort::Workload, MAX_WORKLOAD_REQUESTS_PER_NAMESPACE),
    ] {
        let title = "110 of 110 parents not ready, restricted to their namespaces";
        let cluster = RestingCluster { unready: PARENTS, children, is_busy: true, arguments };
        let busiest = busiest_minute(title, &cluster);
        assert!(busiest <= most * usize::try_from(NAMESPACES).unwrap(), "{busiest}");
    }
}

#[test]
fn an_event_that_is_lost_at_rest_is_found_by_the_next_pass() {
    for is_busy in [true, false] {
        let cluster = RestingCluster { unready: PARENTS, children: ChildSort::Parts, is_busy, arguments: "" };
        let (parent, child) = (27, CHILDREN - 1);
        let lose = |server: &StoreClient| {
            let (namespace, name) = (namespace(parent), format!("widget-{parent}-part-{child}"));
            server.patch_status_unseen(("Part", &namespace, &name), &part_status("True"));
        };
        let (server, sent) = cluster.play(3, lose);
        let lost_at = Duration::from_secs(90);
        let found = sent.iter().find(|request| request.at > lost_at && request.target == "get parts");
        let took = found.map(|request| request.at.saturating_sub(lost_at));
        assert!(took.is_some_and(|took| took < Duration::from_secs(31)), "{took:?}");
        let widget = server.store().get("example.com/v1", "Widget", &namespace(parent), "widget-27").unwrap();
        assert_eq!(widget["status"]["conditions"][0]["status"], "True", "{widget}");
        let is_small = |request: &&TimedRequest| request.target == "list widgets" && request.limit == 1;
        let small = sent.iter().filter(is_small).count();
        assert_eq!(small > 0, !is_busy, "one object shows that nothing has changed");
    }
}
