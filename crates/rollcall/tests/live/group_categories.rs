//! ReadinessGroups whose members are the objects of all kinds of a category.

use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, crd, custom, done, own_definition, owned, pod};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";

async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    cluster
}

fn group(members: &Value) -> Value {
    json!({
        "apiVersion": OWN, "kind": "ReadinessGroup", "metadata": { "name": "shop", "namespace": "default" },
        "spec": { "members": members, "settle": "0s" },
    })
}

/// All that is part of the shop.
fn of_category(category: &str) -> Value {
    group(&json!([{ "category": category, "labels": { "app": "web" } }]))
}

fn deployment(name: &str, available: u32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "labels": { "app": "web" } }, "spec": { "replicas": 1 },
        "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": available,
            "availableReplicas": available } })
}

/// A definition of a kind that is in this category.
fn listed_crd(kind: &str, category: &str) -> Value {
    let mut definition = crd(kind);
    definition["spec"]["names"]["categories"] = json!([category]);
    definition
}

fn ready(mut object: Value, status: &str) -> Value {
    object["metadata"]["labels"] = json!({ "app": "web" });
    object["status"]["conditions"] =
        json!([{ "type": "Ready", "status": status, "reason": "Said", "observedGeneration": 1 }]);
    object
}

async fn run(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

async fn tree(cluster: &LiveCluster) -> (Option<i32>, String, String) {
    run(cluster, &["tree", "readinessgroup/shop"]).await
}

fn told(cluster: &LiveCluster) -> Value {
    let group = cluster.server.lock_store().get(OWN, "ReadinessGroup", "default", "shop").unwrap();
    condition(&group, "Ready")
}

fn says(cluster: &LiveCluster, status: &str, word: &str) -> bool {
    let told = told(cluster);
    told["status"] == status && told["message"].as_str().is_some_and(|message| message.contains(word))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_carries_a_label_is_a_group_whatever_its_kind_is() {
    let cluster = cluster("category-all").await;
    cluster.create(&of_category("all"));
    cluster.create(&deployment("web", 1));
    cluster.create(&pod("lonely", None));
    let (code, out, err) = tree(&cluster).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("Deployment default/web") && out.contains("Pod default/lonely"), "{out}");
    cluster.create(&deployment("books", 0));
    let (code, out, err) = tree(&cluster).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("Deployment default/books"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_has_made_does_not_count_beside_it_and_what_a_stranger_has_made_does() {
    let cluster = cluster("category-made").await;
    cluster.create(&of_category("all"));
    let web = cluster.create(&deployment("web", 1));
    let set = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": "web-1", "labels": { "app": "web" } }, "spec": { "replicas": 1 },
        "status": { "observedGeneration": 1, "replicas": 0 } });
    let set = cluster.create(&owned(&web, set));
    cluster.create(&owned(&set, pod("web-1-x", Some(("CrashLoopBackOff", "again")))));
    let (code, out, err) = tree(&cluster).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("1 of 1 ready") && out.contains("ReplicaSet default/web-1 (not counted)"), "{out}");
    // A Shop is in no category: nothing else stands for its Pod.
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.create(&owned(&shop, pod("books-0", Some(("CrashLoopBackOff", "again")))));
    let (code, out, err) = tree(&cluster).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("Pod default/books-0"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_category_without_any_object_that_is_selected_is_not_ready_though_another_member_is() {
    let cluster = cluster("category-empty").await;
    let database = ready(custom("Database", "db"), "True");
    cluster.create(&database);
    let objects = json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db" }]);
    cluster
        .create(&group(&json!([{ "objects": objects }, { "category": "all", "labels": { "app": "web" } }])));
    let (code, out, err) = tree(&cluster).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("object of category all missing (0 of at least 1 found)"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_category_that_nobody_knows_and_a_kind_without_namespaces_are_refused_by_name() {
    let cluster = cluster("category-refused").await;
    cluster.create(&deployment("web", 1));
    let namespaces = json!([{ "kinds": [{ "kind": "Namespace" }], "labels": { "app": "web" } }]);
    for (manifest, word) in [
        (of_category("nothing"), "lists no namespaced kind in category nothing"),
        (group(&namespaces), "Namespace is cluster-scoped"),
    ] {
        let file = cluster.file("group.json", &manifest);
        let (code, out, err) = run(&cluster, &["plan", "-f", &file]).await;
        assert_eq!(code, Some(1), "{out}{err}");
        assert!(out.contains(word), "{out}{err}");
        cluster.create(&manifest);
        let (code, out, err) = tree(&cluster).await;
        assert_eq!(code, Some(1), "{out}{err}");
        assert!(out.contains(word), "{out}{err}");
        let now = cluster.server.now();
        cluster.server.lock_store().delete_object(now, OWN, "ReadinessGroup", "default", "shop").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_nobody_knows_the_rights_of_a_category_and_with_one_they_are_printed() {
    let cluster = cluster("category-rights").await;
    cluster.create(&listed_crd("Bucket", "managed"));
    let manifest = of_category("managed");
    let file = cluster.file("group.json", &manifest);
    let (code, out, err) = run(&cluster, &["check", "-f", &file]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("warning") && out.contains("category managed only the API server knows"), "{out}");
    let (code, out, err) = run(&cluster, &["rbac", "-f", &file]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("rollcall rbac --all") && !out.contains("buckets"), "{out}{err}");
    cluster.create(&manifest);
    let (code, out, err) = run(&cluster, &["rbac", "--all"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("buckets"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_may_not_be_listed_leaves_the_group_unknown_and_is_named() {
    let cluster = cluster("category-forbidden").await;
    cluster.create(&serde_json::to_value(<api::ReadinessRecord as kube::CustomResourceExt>::crd()).unwrap());
    cluster.create(&deployment("web", 1));
    cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_kind("batch", "cronjobs"));
    cluster.create(&of_category("all"));
    let _service = RunningService::start(&cluster, &[], &[]);
    until("it says that it cannot see", || says(&cluster, "Unknown", "CronJob"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_joins_a_category_counts_without_a_restart() {
    let cluster = cluster("category-joined").await;
    cluster.create(&listed_crd("Bucket", "managed"));
    cluster.create(&ready(custom("Bucket", "images"), "True"));
    cluster.create(&of_category("managed"));
    let _service = RunningService::start(&cluster, &[], &[]);
    until("its only member is ready", || says(&cluster, "True", "1 of 1 ready"));
    cluster.create(&listed_crd("Queue", "managed"));
    cluster.create(&ready(custom("Queue", "orders"), "False"));
    until("it awaits a kind that came", || says(&cluster, "False", "Queue orders"));
    let now = cluster.server.now();
    let patch = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let mut store = cluster.server.lock_store();
    store.patch_status(now, "example.com/v1", "Queue", "default", "orders", &patch).unwrap();
    drop(store);
    until("all of them are ready", || says(&cluster, "True", "2 of 2 ready"));
}
