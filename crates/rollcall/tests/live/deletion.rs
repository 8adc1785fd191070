//! What a deletion waits for, and whether whoever holds it still lives.

use sandbox::store::StoreRequest;
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, owned, pod};

const GUARD: &str = "shop.example.com/guard";

/// Sends a request as this field manager.
fn send(cluster: &LiveCluster, manager: &str, method: &str, path: &str, body: &Value) -> Value {
    let now = cluster.server.now();
    let target = format!("/apis/example.com/v1/namespaces/default/{path}?fieldManager={manager}");
    let request = StoreRequest::with_body(method, &target, "application/json", body);
    cluster.server.lock_store().handle_request(now, &request).body_value()
}

/// Creates a Shop on which this field manager sets finalizers.
fn create_shop(cluster: &LiveCluster, name: &str, manager: &str, finalizers: &[&str]) -> Value {
    let mut shop = custom("Shop", name);
    if !finalizers.is_empty() {
        shop["metadata"]["finalizers"] = json!(finalizers);
    }
    let created = send(cluster, manager, "POST", "shops", &shop);
    assert!(created["metadata"]["uid"].is_string(), "{created:#}");
    created
}

/// Deletes a Shop, which stays because of its finalizers.
fn delete_shop(cluster: &LiveCluster, propagation: &str) {
    let options = json!({ "propagationPolicy": propagation });
    let left = send(cluster, "kubectl", "DELETE", "shops/books", &options);
    assert!(left["metadata"]["deletionTimestamp"].is_string(), "{left:#}");
}

/// A Shop with a Database, whose finalizer is that of a field manager `shop-operator`; in deletion.
async fn held(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    let shop = create_shop(&cluster, "books", "shop-operator", &[GUARD]);
    cluster.below(&shop, custom("Database", "db"));
    delete_shop(&cluster, "Background");
    cluster
}

fn operator_pod() -> Value {
    let mut operator = pod("shop-operator-7d4b9c-x2x", None);
    operator["metadata"]["namespace"] = json!("ops");
    operator
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_in_deletion_is_explained_with_its_holder_and_the_command_that_releases_it() {
    let cluster = held("deletion-parent").await;
    let (code, out, err) = cluster.run(&["explain", "shop/books"]).await;
    assert_eq!(code, Some(1), "{err}");
    for part in [
        "Shop default/books  Terminating  Terminating",
        "being deleted: finalizer shop.example.com/guard (set by shop-operator), terminating since",
        "set by field manager shop-operator",
        "holder    ownerless: there is no Lease and no running pod with the name shop-operator",
        "field manager shop-operator last wrote this object at",
        "kubectl -n default patch shop.example.com books --type=json",
        "start its operator again, or remove the finalizer yourself",
        "becomes Stuck: finalizer shop.example.com/guard",
    ] {
        assert!(out.contains(part), "{part}:\n{out}{err}");
    }
    let waiting = ["wait", "shop/books", "--for=delete", "--timeout=1s"];
    let (code, out, err) = cluster.run(&waiting).await;
    assert_eq!(code, Some(124), "{err}");
    assert!(out.contains("shop.example.com/guard is ownerless: there is no Lease"), "{out}{err}");
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "ops" } }));
    cluster.create(&operator_pod());
    let (_, out, err) = cluster.run(&waiting).await;
    assert!(out.contains("being deleted: finalizer") && !out.contains("ownerless"), "{out}{err}");
    let (_, out, err) = cluster.run(&["explain", "shop/books"]).await;
    for part in ["holder    alive: 1 running pod, such as ops/shop-operator-7d4b9c-x2x", "must remove them"] {
        assert!(out.contains(part), "{part}:\n{out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_beyond_its_limit_is_stuck_as_explain_has_promised() {
    let cluster = held("deletion-stuck").await;
    let quick = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "quick" },
        "spec": { "parent": { "group": "example.com", "kind": "Shop" }, "limits": { "terminating": "0s" },
            "children": [{ "kind": { "group": "example.com", "kind": "Database" } }], "settle": "0s" } });
    let file = cluster.file("quick.json", &quick);
    let mut command = cluster.bare();
    command.args(["explain", "shop/books", "-f", &file]);
    let (code, out, err) = done(command).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("Shop default/books  Stuck  DeletionStuck"), "{out}{err}");
    assert!(out.contains("longer than limits.terminating of the policy allows"), "{out}{err}");
    assert!(out.contains("older than limits.terminating") && out.contains("release   kubectl"), "{out}{err}");
    let mut command = cluster.bare();
    command.args(["tree", "shop/books", "-f", &file]);
    let (_, out, err) = done(command).await;
    assert!(out.contains("Stuck"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_in_the_foreground_names_the_children_that_it_waits_for() {
    let cluster = LiveCluster::start("deletion-foreground").await;
    let shop = create_shop(&cluster, "books", "shop-operator", &[]);
    let mut database = owned(&shop, custom("Database", "db"));
    database["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = json!(true);
    database["metadata"]["finalizers"] = json!(["a.io/x"]);
    cluster.create(&database);
    delete_shop(&cluster, "Foreground");
    let (_, out, err) = cluster.run(&["explain", "shop/books"]).await;
    for part in
        ["likely Kubernetes garbage collector", "waits for", "Database db: being deleted: finalizer a.io/x"]
    {
        assert!(out.contains(part), "{part}:\n{out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inventory_tells_who_sets_each_finalizer_and_who_waits_for_whom() {
    let cluster = held("deletion-inventory").await;
    create_shop(&cluster, "toys", "shop-operator", &[GUARD, "kopf.zalando.org/KopfFinalizerMarker"]);
    let inventory = |args: &[&str]| {
        let mut command = cluster.bare();
        command.args(["doctor", "--finalizers"]).args(args);
        done(command)
    };
    let (code, out, err) = inventory(&[]).await;
    assert_eq!(code, Some(1), "an object waits for nobody: {out}{err}");
    for part in [
        "shop.example.com/guard  2 objects, 1 in deletion",
        "on       Shop.example.com (2)",
        "set by   shop-operator",
        "ownerless: there is no Lease and no running pod with the name shop-operator",
        "waits    Shop default/books, since ",
        "release  kubectl -n default patch shop.example.com books --type=json",
        "kopf.zalando.org/KopfFinalizerMarker  1 object\n",
        "holder   likely a Kopf operator",
    ] {
        assert!(out.contains(part), "{part}:\n{out}{err}");
    }
    assert!(
        out.find("shop.example.com/guard") < out.find("kopf.zalando.org"),
        "who is waited for first: {out}"
    );
    assert!(err.contains("finalizers found: ") && err.contains("that wait for a finalizer: 1"), "{err}");
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "ops" } }));
    cluster.create(&operator_pod());
    let (code, out, err) = inventory(&["-o", "json"]).await;
    assert_eq!(code, Some(0), "{err}");
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    let guard = all.iter().find(|entry| entry["finalizer"] == GUARD).unwrap();
    assert_eq!(
        (&guard["objects"], &guard["waiting"], &guard["holder"]["state"]),
        (&json!(2), &json!(1), &json!("Alive"))
    );
    assert_eq!(guard["waiters"][0]["object"], "Shop default/books");
}
