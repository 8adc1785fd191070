//! `wait --for`: created, deleted, a condition, as kubectl spells them.

use std::process::Stdio;

use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, pod};
use super::terminal::LiveTerminal;

/// Creates a Shop with these finalizers.
fn held_shop(cluster: &LiveCluster, finalizers: &[&str]) -> Value {
    let mut shop = custom("Shop", "books");
    shop["metadata"]["finalizers"] = json!(finalizers);
    cluster.create(&shop)
}

fn delete_shop(cluster: &LiveCluster) -> bool {
    let now = cluster.server.now();
    cluster.server.lock_store().delete_object(now, "example.com/v1", "Shop", "default", "books").unwrap()
}

fn patch_shop(cluster: &LiveCluster, patch: &Value) {
    let now = cluster.server.now();
    let mut store = cluster.server.lock_store();
    store.patch_object(now, "example.com/v1", "Shop", "default", "books", patch).unwrap();
}

fn shows(rows: &[String], part: &str) -> bool {
    rows.iter().any(|row| row.contains(part))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_waited_for_and_what_holds_it_is_named_meanwhile() {
    let cluster = LiveCluster::start("goal-delete").await;
    held_shop(&cluster, &["a.io/x", "kopf.zalando.org/KopfFinalizerMarker"]);
    let args = ["wait", "shop/books", "--for=delete", "--timeout", "2m"];
    let mut terminal = LiveTerminal::start(&cluster.rollcall(&args), 200, &[]);
    terminal
        .until("that it stands", |rows| shows(rows, "Shop books exists, and its deletion was not requested"))
        .await;
    assert!(!delete_shop(&cluster), "its finalizers hold it");
    terminal
        .until("both", |rows| {
            shows(rows, "Shop books being deleted: finalizers a.io/x")
                && shows(rows, "(likely a Kopf operator), terminating since")
        })
        .await;
    patch_shop(&cluster, &json!({ "metadata": { "finalizers": ["a.io/x"] } }));
    terminal.until("the other", |rows| shows(rows, "being deleted: finalizer a.io/x")).await;
    patch_shop(&cluster, &json!({ "metadata": { "finalizers": [] } }));
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.rows(), ["Shop books: deleted"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_is_deleted_and_another_of_that_name_does_not_count() {
    let cluster = LiveCluster::start("goal-gone").await;
    let args = ["wait", "shop/books", "--for=delete", "--timeout", "2m"];
    let (code, out, err) = cluster.run(&args).await;
    assert_eq!((code, &*out), (Some(0), "Shop books: deleted\n"), "{err}");
    held_shop(&cluster, &[]);
    let mut terminal = LiveTerminal::start(&cluster.rollcall(&args), 100, &[]);
    terminal.until("that it stands", |rows| shows(rows, "its deletion was not requested yet")).await;
    assert!(delete_shop(&cluster), "nothing holds it");
    held_shop(&cluster, &[]);
    assert_eq!(terminal.end().await.code(), Some(0));
    let (code, out, err) = cluster.run(&["wait", "shop/books", "--for=delete", "--timeout", "500ms"]).await;
    assert_eq!(code, Some(124), "{err}");
    assert_eq!(out, "Shop books exists, and its deletion was not requested yet: waited too long\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_is_waited_for_about_the_current_generation() {
    let cluster = LiveCluster::start("goal-condition").await;
    let args = ["wait", "shop/books", "--for=condition=Up", "--timeout", "2m"];
    let mut terminal = LiveTerminal::start(&cluster.rollcall(&args), 100, &[]);
    terminal.until("that there is none", |rows| shows(rows, "Shop books does not exist")).await;
    held_shop(&cluster, &[]);
    terminal.until("no condition", |rows| shows(rows, "Shop books has no condition Up yet")).await;
    let status = |status: &str, observed: i64| {
        let now = cluster.server.now();
        let condition =
            json!({ "type": "Up", "status": status, "reason": "Because", "observedGeneration": observed });
        let patch = json!({ "status": { "conditions": [condition] } });
        let mut store = cluster.server.lock_store();
        store.patch_status(now, "example.com/v1", "Shop", "default", "books", &patch).unwrap();
    };
    status("True", 0);
    terminal.until("the generation", |rows| shows(rows, "about generation 0, the object is at 1")).await;
    status("False", 1);
    terminal.until("the status", |rows| shows(rows, "condition Up is False, not True (Because)")).await;
    let other = ["wait", "shop/books", "--for=condition=up=FALSE", "--timeout", "2m"];
    assert_eq!(cluster.run(&other).await.0, Some(0), "kubectl compares in any case");
    status("True", 1);
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.rows(), ["Shop books: condition met"]);
    let created = ["wait", "shop/books", "--for=create", "--timeout", "2m"];
    assert_eq!(cluster.run(&created).await.1, "Shop books: created\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_spelling_is_refused_with_those_that_are_known() {
    let cluster = LiveCluster::start("goal-spelling").await;
    for (goal, says) in [
        ("deleted", "one of ready, create, delete, condition=TYPE"),
        ("condition=", "write condition=TYPE or condition=TYPE=STATUS"),
        ("jsonpath={.status.phase}=Up", "`kubectl wait` knows them"),
    ] {
        let mut command = cluster.rollcall(&["wait", "shop/books", "--for", goal]);
        command.stdin(Stdio::null());
        let (code, out, err) = super::cluster::done(command).await;
        assert_eq!((code, &*out), (Some(2), ""), "{goal}: {err}");
        assert!(err.contains(says), "{goal}: {err}");
    }
    let (code, _, err) = cluster.run(&["wait", "shop/books", "--for=delete", "-A"]).await;
    assert!(code == Some(2) && err.contains("-n NAMESPACE"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_time_to_wait_one_look_answers() {
    let cluster = LiveCluster::start("goal-once").await;
    let mut books = custom("Shop", "books");
    books["status"]["conditions"] = json!([{ "type": "Up", "status": "True", "reason": "Because" }]);
    let books = cluster.create(&books);
    let database = cluster.below(&books, custom("Database", "db"));
    cluster.below(&database, pod("db-0", None));
    cluster.create(&custom("Shop", "empty"));
    for (what, goal, code, says) in [
        ("shop/books", "ready", 0, "Shop books: ready\n"),
        ("shop/books", "condition=Up", 0, "Shop books: condition met\n"),
        ("shop/books", "create", 0, "Shop books: created\n"),
        ("shop/toys", "delete", 0, "Shop toys: deleted\n"),
        ("shop/empty", "ready", 124, "Database missing"),
        ("shop/toys", "ready", 124, "Shop toys does not exist: waited too long\n"),
        ("shop/books", "condition=Down", 124, "Shop books has no condition Down yet: waited too long\n"),
        ("shop/toys", "create", 124, "Shop toys does not exist: waited too long\n"),
        ("shop/books", "delete", 124, "its deletion was not requested yet: waited too long\n"),
    ] {
        let (ended, out, err) = cluster.run(&["wait", what, "--for", goal, "--timeout", "0s"]).await;
        assert_eq!(ended, Some(code), "{what} {goal}: {out}{err}");
        assert!(out.contains(says), "{what} {goal}: {out}{err}");
    }
}
