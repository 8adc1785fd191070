//! ReadinessGroups with members in other namespaces.

use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, done};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";

/// A cluster with the namespaces `bank` and `books` beside `default`.
async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.install();
    for namespace in ["bank", "books"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        cluster.create(&namespace);
    }
    cluster
}

fn group(name: &str, member: &Value) -> Value {
    json!({
        "apiVersion": OWN, "kind": "ReadinessGroup", "metadata": { "name": name, "namespace": "default" },
        "spec": { "members": [member], "settle": "0s" },
    })
}

/// The Databases of these namespaces, of which there may be none.
fn databases(namespaces: &[&str]) -> Value {
    let kinds = json!([{ "group": "example.com", "kind": "Database" }]);
    json!({ "kinds": kinds, "labels": { "app": "web" }, "namespaces": namespaces, "expect": { "min": 0 } })
}

/// Databases by their namespaces and names.
fn named(objects: &[(&str, &str)]) -> Value {
    let reference = |(namespace, name): &(&str, &str)| json!({ "apiVersion": "example.com/v1", "kind": "Database", "namespace": namespace, "name": name });
    json!({ "objects": objects.iter().map(reference).collect::<Vec<_>>() })
}

fn database(namespace: &str, name: &str, status: &str) -> Value {
    let mut database = custom("Database", name);
    database["metadata"]["namespace"] = json!(namespace);
    database["metadata"]["labels"] = json!({ "app": "web" });
    database["status"]["conditions"] =
        json!([{ "type": "Ready", "status": status, "reason": "Said", "observedGeneration": 1 }]);
    database
}

fn told(cluster: &LiveCluster, name: &str) -> Value {
    let group = cluster.server.lock_store().get(OWN, "ReadinessGroup", "default", name);
    group.map(|group| condition(&group, "Ready")).unwrap_or_default()
}

fn says(cluster: &LiveCluster, name: &str, status: &str, word: &str) -> bool {
    let told = told(cluster, name);
    told["status"] == status && told["message"].as_str().is_some_and(|message| message.contains(word))
}

async fn run(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_other_namespaces_count_where_an_administrator_has_opened_these() {
    let cluster = cluster("group-namespaces").await;
    cluster.create(&database("bank", "ledger", "True"));
    cluster.create(&database("books", "shelf", "True"));
    cluster.create(&database("default", "own", "False"));
    cluster.create(&group("both", &databases(&["bank", "books"])));
    cluster.create(&group("named", &named(&[("bank", "ledger"), ("books", "ledger")])));
    let _service = RunningService::start(&cluster, &["--group-namespaces", "default=bank,boo*"], &[]);
    until("both are ready, and its own is none of them", || says(&cluster, "both", "True", "2 of 2 ready"));
    until("one is missing", || says(&cluster, "named", "False", "missing"));
    cluster.create(&database("books", "ledger", "False"));
    until("it counts", || says(&cluster, "both", "False", "1 of 3 not ready"));
    until("it is not ready", || says(&cluster, "named", "False", "1 of 2 not ready"));
    for (name, shows) in [("both", "Database bank/ledger"), ("named", "Database books/ledger")] {
        let (code, out, err) = run(&cluster, &["tree", &format!("readinessgroup/{name}")]).await;
        assert!(code == Some(1) && out.contains(shows), "{out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_namespace_that_is_not_open_a_group_is_told_nothing_not_even_that_it_is_there() {
    let cluster = cluster("group-namespaces-closed").await;
    cluster.create(&database("bank", "ledger", "True"));
    cluster.create(&database("default", "own", "True"));
    cluster.create(&group("there", &databases(&["default", "bank"])));
    cluster.create(&group("nowhere", &databases(&["default", "moon"])));
    cluster.create(&group("named", &named(&[("bank", "ledger")])));
    cluster.create(&group("unnamed", &named(&[("bank", "nothing")])));
    cluster.create(&group("own", &databases(&["default"])));
    let _service = RunningService::start(&cluster, &["--group-namespaces", "books=*"], &[]);
    until("its own namespace is open", || says(&cluster, "own", "True", "1 of 1 ready"));
    let mut words = Vec::new();
    for (name, namespace) in [("there", "bank"), ("nowhere", "moon"), ("named", "bank"), ("unnamed", "bank")]
    {
        let flag = format!("--group-namespaces 'default={namespace}'");
        until("it is refused", || says(&cluster, name, "Unknown", &flag));
        words.push(told(&cluster, name)["message"].as_str().unwrap().replace(namespace, "NAMESPACE"));
    }
    assert!(words.iter().all(|said| *said == words[0]), "{words:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_a_restricted_service_does_not_watch_leave_the_group_unknown() {
    let cluster = cluster("group-namespaces-restricted").await;
    cluster.create(&database("bank", "ledger", "False"));
    cluster.create(&database("default", "own", "True"));
    cluster.create(&group("both", &databases(&["default", "bank"])));
    cluster.create(&group("own", &databases(&["default"])));
    let args = ["--group-namespaces", "default=*", "--namespaces", "default"];
    let _service = RunningService::start(&cluster, &args, &[]);
    until("its own is seen", || says(&cluster, "own", "True", "1 of 1 ready"));
    until("the other is not", || says(&cluster, "both", "Unknown", "namespace \"bank\" cannot be seen"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_list_one_namespace_calls_no_group_ready_that_has_members_in_another() {
    let cluster = cluster("group-namespaces-narrow").await;
    cluster.create(&database("default", "own", "True"));
    cluster.create(&group("both", &databases(&["default", "bank"])));
    let both = ["wait", "readinessgroup/both", "--timeout", "90s"];
    let (code, out, err) = run(&cluster, &both).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let forbidden = InjectedFault::new(FaultAction::Forbid).across_namespaces();
    cluster.server.faults().add(forbidden.on_kind("example.com", "databases"));
    let (code, out, err) = run(&cluster, &both).await;
    assert_ne!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_that_opens_no_namespaces_is_refused_with_what_to_write() {
    let cluster = cluster("group-namespaces-flag").await;
    let (code, out, err) = run(&cluster, &["run", "--group-namespaces", "*=bank"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains("opens no namespaces: write NAMESPACE=NAMES"), "{err}");
}
