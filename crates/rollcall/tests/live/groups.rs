//! ReadinessGroups: they come and change while commands run, and may be readable in one namespace only.

use std::time::Duration;

use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, own_definition, pod, policy};
use super::terminal::LiveTerminal;

/// A cluster that serves policies and groups, with a pod that is ready.
async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    cluster.create(&pod("web-0", None));
    cluster
}

/// A group whose members carry this label.
fn group(name: &str, kind: &Value, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "metadata": { "name": name },
        "spec": { "members": [{ "kinds": [kind], "labels": { key: value } }], "settle": "0s" },
    })
}

fn of_pods(name: &str, key: &str, value: &str) -> Value {
    group(name, &json!({ "kind": "Pod" }), key, value)
}

fn edit_group(cluster: &LiveCluster, into: &Value) {
    let now = cluster.server.now();
    let name = into["metadata"]["name"].as_str().unwrap();
    let patch = json!({ "spec": into["spec"] });
    let mut store = cluster.server.lock_store();
    store.patch_object(now, "rollcall.dev/v1alpha1", "ReadinessGroup", "default", name, &patch).unwrap();
}

/// Runs a command by the policies of the cluster.
async fn run(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

/// Ends a wait for the group `shop` that begins before this happens.
async fn wait_until(cluster: &LiveCluster, happens: impl FnOnce()) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(["wait", "readinessgroup/shop", "--timeout", "25s"]);
    let waiting = tokio::spawn(done(command));
    tokio::time::sleep(Duration::from_secs(3)).await;
    happens();
    waiting.await.unwrap()
}

fn forbid_groups_elsewhere(cluster: &LiveCluster) {
    let forbidden = InjectedFault::new(FaultAction::Forbid).across_namespaces();
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinessgroups"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_does_not_exist_yet_is_waited_for() {
    let cluster = cluster("groups-none").await;
    let (code, out, err) =
        wait_until(&cluster, || drop(cluster.create(&of_pods("shop", "app", "web")))).await;
    assert_eq!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_there_is_not_is_said_to_be_missing() {
    let cluster = cluster("groups-missing").await;
    for command in ["tree", "explain"] {
        let (code, out, err) = run(&cluster, &[command, "readinessgroup/shop"]).await;
        assert_eq!(code, Some(2), "{command}: {out}{err}");
        assert!(
            err.contains("there is no ReadinessGroup shop in namespace default"),
            "{command}: {out}{err}"
        );
    }
    let (code, out, err) = cluster.run(&["wait", "readinessgroup/shop", "--timeout", "3s"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains("no ReadinessGroup in the files of -f"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_comes_later_and_selects_as_no_other_did_is_judged() {
    let cluster = cluster("groups-later").await;
    cluster.create(&of_pods("other", "team", "any"));
    let (code, out, err) =
        wait_until(&cluster, || drop(cluster.create(&of_pods("shop", "app", "web")))).await;
    assert_eq!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_edited_is_judged_as_it_is_then_with_kinds_that_nobody_asked_for_before() {
    let cluster = cluster("groups-edited").await;
    cluster.create(&of_pods("shop", "team", "nobody"));
    let mut database = custom("Database", "db");
    database["metadata"]["labels"] = json!({ "app": "web" });
    database["status"]["conditions"] =
        json!([{ "type": "Ready", "status": "True", "reason": "Up", "observedGeneration": 1 }]);
    cluster.create(&database);
    let databases = json!({ "group": "example.com", "kind": "Database" });
    let (code, out, err) =
        wait_until(&cluster, || edit_group(&cluster, &group("shop", &databases, "app", "web"))).await;
    assert_eq!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_tree_shows_a_group_that_comes_and_what_it_is_edited_to() {
    let cluster = cluster("groups-watched").await;
    let mut command = cluster.bare();
    command.args(["tree", "readinessgroup/shop", "--watch"]);
    let mut terminal = LiveTerminal::start(&command, 120, &[]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.create(&of_pods("shop", "app", "web"));
    let shows = |rows: &[String], part: &str| {
        rows.iter().any(|row| row.contains("ReadinessGroup default/shop") && row.contains(part))
    };
    terminal.until("the group", |rows| shows(rows, " Ready ")).await;
    edit_group(&cluster, &of_pods("shop", "team", "nobody"));
    let rows = terminal.until("its edit", |rows| shows(rows, "Pod missing")).await;
    assert!(shows(&rows, " Progressing "), "{rows:#?}");
    terminal.types("\u{3}");
    assert_eq!(terminal.end().await.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_list_the_groups_of_one_namespace_is_judged_by_the_policies_of_the_cluster() {
    let cluster = cluster("groups-narrow").await;
    cluster.create(&policy("Shop", "", "Pod"));
    cluster.create(&of_pods("web", "app", "web"));
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("books-0", None));
    let database = cluster.create(&custom("Shop", "empty"));
    cluster.below(
        &database,
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 1 }, "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
            "readyReplicas": 1, "availableReplicas": 1 } }),
    );
    forbid_groups_elsewhere(&cluster);
    for what in ["shop/books", "readinessgroup/web"] {
        let (code, out, err) = run(&cluster, &["wait", what, "--timeout", "90s"]).await;
        assert_eq!(code, Some(0), "{what}: {out}{err}");
        assert!(err.contains("ReadinessGroup.rollcall.dev outside of namespace default"), "{err}");
    }
    // The default policy would have counted the Deployment.
    for command in ["tree", "explain"] {
        let (code, out, err) = run(&cluster, &[command, "shop/empty"]).await;
        assert_eq!(code, Some(1), "{command}: {out}{err}");
        assert!(out.contains("ChildrenMissing"), "{command}: {out}{err}");
    }
    let now = cluster.server.now();
    cluster.server.lock_store().delete_object(now, "example.com/v1", "Shop", "default", "empty").unwrap();
    // With all namespaces there may be groups that nobody saw.
    for (args, expected) in [(&["tree"][..], 0), (&["tree", "-A"], 2)] {
        let (code, out, err) = run(&cluster, args).await;
        assert_eq!(code, Some(expected), "{args:?}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suggest_knows_the_policies_where_groups_are_not_to_be_read_and_says_where_it_does_not() {
    let cluster = cluster("groups-suggest").await;
    cluster.create(&policy("Shop", "", "Pod"));
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("books-0", None));
    forbid_groups_elsewhere(&cluster);
    let (code, out, err) = run(&cluster, &["suggest"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("policy shop names it already"), "{out}{err}");
    let forbidden = InjectedFault::new(FaultAction::Forbid);
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinesspolicies"));
    let (code, out, err) = run(&cluster, &["suggest"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(
        err.contains("not read: ReadinessPolicy.rollcall.dev") && err.contains("have a policy already"),
        "{err}"
    );
}

/// A group of one object.
fn of_object(name: &str, api_version: &str, kind: &str, object: &str) -> Value {
    let objects = json!([{ "apiVersion": api_version, "kind": kind, "name": object }]);
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "metadata": { "name": name },
        "spec": { "members": [{ "objects": objects }], "settle": "0s" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_group_lacks_is_no_matter_of_an_operator() {
    let cluster = cluster("groups-advice").await;
    cluster.create(&of_object("shop", "v1", "Pod", "nope"));
    cluster.create(&of_pods("labelled", "team", "nobody"));
    for (what, names) in [("shop", "nope"), ("labelled", "Pod")] {
        let (code, out, err) = run(&cluster, &["explain", &format!("readinessgroup/{what}")]).await;
        assert_eq!(code, Some(1), "{out}{err}");
        assert!(out.contains("missing") && out.contains(names), "{out}");
        assert!(out.contains("create the missing members, or change spec.members"), "{out}");
        assert!(!out.contains("operator") && !out.contains("the policy expects"), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_cannot_be_judged_is_to_be_corrected_itself() {
    let cluster = cluster("groups-broken").await;
    let mut broken = of_object("shop", "v1", "Pod", "web-0");
    broken["spec"]["members"][0]["objects"][0]["group"] = json!("apps");
    cluster.create(&broken);
    let (code, out, err) = run(&cluster, &["explain", "readinessgroup/shop"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("correct its spec as its message says"), "{out}");
    assert!(out.contains("rollcall check -f GROUP") && !out.contains("template"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_in_a_cycle_are_not_said_to_have_to_be_created() {
    let cluster = cluster("groups-cycle").await;
    for (one, other) in [("cy1", "cy2"), ("cy2", "cy1")] {
        cluster.create(&of_object(one, "rollcall.dev/v1alpha1", "ReadinessGroup", other));
    }
    let (code, out, err) = run(&cluster, &["explain", "readinessgroup/cy1"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("take one of the groups out of the spec.members of another"), "{out}");
    assert!(!out.contains("create") && !out.contains("operator"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_calls_nothing_well_whose_policies_it_could_not_read() {
    let cluster = cluster("groups-doctor").await;
    cluster.create(&policy("Shop", "", "Pod"));
    let (sound, out, err) = run(&cluster, &["doctor"]).await;
    assert_eq!(sound, Some(0), "{out}{err}");
    assert!(err.contains(" 1 policies checked"), "{err}");
    forbid_groups_elsewhere(&cluster);
    let (code, out, err) = run(&cluster, &["doctor"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains("outside of namespace default") && err.contains(" 1 policies checked"), "{err}");
    assert_eq!(run(&cluster, &["doctor", "-n", "default"]).await.0, Some(0), "it reads no others");
    let forbidden = InjectedFault::new(FaultAction::Forbid);
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinesspolicies"));
    let (code, out, err) = run(&cluster, &["doctor", "-n", "default"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains("not read: ReadinessPolicy.rollcall.dev"), "{err}");
}

async fn plan(cluster: &LiveCluster, group: &Value) -> (Option<i32>, Value, String) {
    let file = cluster.file("group.json", group);
    let (code, out, err) = run(cluster, &["plan", "-o", "json", "-f", &file]).await;
    (code, serde_json::from_str(&out).unwrap_or_default(), err)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_judges_a_group_by_the_spec_that_it_would_have() {
    let cluster = cluster("groups-plan").await;
    let held = of_pods("shop", "app", "web");
    cluster.create(&held);
    let (code, planned, err) = plan(&cluster, &held).await;
    assert_eq!((code, &planned["parents"]), (Some(0), &json!([])), "{err}");
    // Another value: the same shape. Other labels: another one. More of them than there are.
    let mut many = held.clone();
    many["spec"]["members"][0]["expect"] = json!({ "min": 3 });
    for edited in [of_pods("shop", "app", "nobody"), of_pods("shop", "team", "nobody"), many] {
        let (code, planned, err) = plan(&cluster, &edited).await;
        assert_eq!(code, Some(1), "{planned}{err}");
        let change = &planned["parents"][0];
        assert_eq!((&change["name"], &change["turn"]), (&json!("shop"), &json!("falls")), "{planned}");
        assert_eq!(change["then"]["reason"], "ChildrenMissing", "{planned}");
        assert_eq!(planned["parents"].as_array().unwrap().len(), 1, "{planned}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_knows_of_a_group_that_there_is_not_yet() {
    let cluster = cluster("groups-plan-new").await;
    let (code, planned, err) = plan(&cluster, &of_pods("shop", "app", "web")).await;
    assert_eq!(code, Some(1), "{planned}{err}");
    let change = &planned["parents"][0];
    assert_eq!((&change["namespace"], &change["turn"]), (&json!("default"), &json!("new")), "{planned}");
    assert_eq!(change["then"]["status"], "True", "{planned}");
}
