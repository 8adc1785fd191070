//! `release` takes away what was written, of exactly the parents that it is asked for, and says what it could not.

use kube::CustomResourceExt;
use sandbox::store::StoreRequest;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, policy};

async fn release(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.arg("release").args(args);
    done(command).await
}

/// A cluster that serves policies and groups.
async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    cluster.create(&serde_json::to_value(api::ReadinessGroup::crd()).unwrap());
    cluster
}

/// The object, with an answer of Rollcall's in this condition.
fn told(mut object: Value, condition: &str) -> Value {
    object["status"]["conditions"] = json!([{
        "type": condition, "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    object
}

/// A group that Rollcall has told that it is ready.
fn told_group(cluster: &LiveCluster, name: &str, team: &str, label: &str) {
    told_group_in(cluster, "default", (name, team, label));
}

fn told_group_in(cluster: &LiveCluster, namespace: &str, (name, team, label): (&str, &str, &str)) {
    cluster.create(&json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
        "metadata": { "name": name, "namespace": namespace, "labels": { "team": team } },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { label: name } }] },
    }));
    // Whose the condition is, its field manager says.
    let path = format!("/apis/rollcall.dev/v1alpha1/namespaces/{namespace}/readinessgroups/{name}/status");
    let patch = told(json!({}), "Ready");
    let merge = "application/merge-patch+json";
    let request = StoreRequest::with_body("PATCH", &format!("{path}?fieldManager=rollcall"), merge, &patch);
    let answer = cluster.server.lock_store().handle_request(cluster.server.now(), &request);
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

/// True while the object has a condition of ours.
fn is_told(cluster: &LiveCluster, version: &str, kind: &str, name: &str) -> bool {
    is_told_in(cluster, "default", (version, kind, name))
}

fn is_told_in(cluster: &LiveCluster, namespace: &str, (version, kind, name): (&str, &str, &str)) -> bool {
    let store = cluster.server.lock_store();
    let object = store.get(version, kind, namespace, name).unwrap();
    object["status"]["conditions"].to_string().contains("AllChildrenReady")
}

/// A policy over Shops whose spec nobody can compile.
fn refused_policy() -> Value {
    let mut refused = policy("Shop", "example.com", "Database");
    refused["spec"]["children"][0]["ready"] = json!({ "cel": { "current": "self.status.(" } });
    refused
}

#[tokio::test]
async fn what_a_policy_wrote_goes_by_the_spec_that_was_accepted_last() {
    let cluster = cluster("release-accepted").await;
    let mut refused = refused_policy();
    let accepted = json!({ "parent": { "group": "example.com", "kind": "Shop" },
        "children": [{ "kind": { "group": "example.com", "kind": "Database" } }],
        "condition": { "type": "StockReady" } });
    refused["status"] = json!({ "missingRights": [], "conditions": [], "acceptedGeneration": 1,
        "accepted": { "generation": 1, "spec": accepted.to_string() } });
    cluster.create(&refused);
    cluster.create(&told(custom("Shop", "books"), "StockReady"));
    let (code, out, err) = release(&cluster, &[]).await;
    assert_eq!((code, out.as_str()), (Some(0), "released 1 parents, 0 failed\n"), "{err}");
    assert!(!is_told(&cluster, "example.com/v1", "Shop", "books"));
}

#[tokio::test]
async fn a_condition_that_cannot_be_told_apart_from_others_is_left_and_said_to_be() {
    let cluster = cluster("release-left").await;
    cluster.create(&policy("Shop", "example.com", "Database"));
    cluster.create(&told(custom("Shop", "books"), "Ready"));
    for name in ["a", "b", "c", "d"] {
        let mut altered = told(custom("Shop", name), "Ready");
        altered["status"]["conditions"][0]["reason"] = json!("Altered");
        cluster.create(&altered);
    }
    let (code, out, err) = release(&cluster, &[]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.starts_with("released 1 parents, 0 failed\nleft a condition of a policy's type on 4 parents"),
        "{out}"
    );
    let named = ["a", "b", "c"].map(|name| format!("Shop.example.com default/{name}")).join(", ");
    assert!(out.ends_with(&format!("{named} and 1 more\n")), "{out}");
}

#[tokio::test]
async fn a_version_that_is_not_served_any_more_leaves_nothing_behind() {
    let cluster = cluster("release-version").await;
    let mut older = policy("Shop", "example.com", "Database");
    older["spec"]["parent"]["version"] = json!("v1alpha1");
    cluster.create(&older);
    cluster.create(&told(custom("Shop", "books"), "Ready"));
    let (code, out, err) = release(&cluster, &[]).await;
    assert_eq!((code, out.as_str()), (Some(0), "released 1 parents, 0 failed\n"), "{err}");
}

#[tokio::test]
async fn a_policy_of_which_no_spec_is_known_is_named_and_counts_as_failed() {
    let cluster = cluster("release-refused").await;
    cluster.create(&refused_policy());
    cluster.create(&policy("Database", "", "Pod"));
    cluster.create(&told(custom("Database", "db"), "Ready"));
    cluster.create(&told(custom("Shop", "books"), "Ready"));
    let (code, out, err) = release(&cluster, &[]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("policy shop is refused, and no spec of it that was accepted is known: "), "{err}");
    assert!(err.contains("spec.children[0].ready"), "{err}");
    assert!(out.contains("1 policies are refused"), "{out}");
    // Others are released, and of this one what can be told from it.
    assert!(!is_told(&cluster, "example.com/v1", "Database", "db"));
    assert!(!is_told(&cluster, "example.com/v1", "Shop", "books"));
}

#[tokio::test]
async fn groups_are_chosen_by_their_own_labels_and_each_is_counted_once() {
    let cluster = cluster("release-groups").await;
    for (name, team, label) in [("one", "a", "app"), ("two", "a", "part"), ("three", "b", "app")] {
        told_group(&cluster, name, team, label);
    }
    let left = || {
        let is_left = |name: &&str| is_told(&cluster, "rollcall.dev/v1alpha1", "ReadinessGroup", name);
        ["one", "two", "three"].into_iter().filter(is_left).collect::<Vec<_>>()
    };
    let (code, out, err) = release(&cluster, &["--policy-selector", "team!=a"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "released 1 parents, 0 failed\n"), "{err}");
    assert_eq!(left(), ["one", "two"]);
    let (code, out, err) = release(&cluster, &["--policy-selector", "team=a"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "released 2 parents, 0 failed\n"), "{err}");
    assert!(left().is_empty());
}

#[tokio::test]
async fn where_groups_may_not_be_listed_policies_are_released_all_the_same_and_it_is_said() {
    let cluster = cluster("release-no-groups").await;
    cluster.create(&policy("Shop", "example.com", "Database"));
    cluster.create(&told(custom("Shop", "books"), "Ready"));
    told_group(&cluster, "one", "a", "app");
    let forbidden = InjectedFault::new(FaultAction::Forbid);
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinessgroups"));
    let (code, out, err) = release(&cluster, &[]).await;
    assert_eq!((code, out.as_str()), (Some(1), "released 1 parents, 0 failed\n"), "{err}");
    assert!(err.contains("ReadinessGroups could not be read, and what stands on them stays"), "{err}");
    assert!(!is_told(&cluster, "example.com/v1", "Shop", "books"));
    assert!(is_told(&cluster, "rollcall.dev/v1alpha1", "ReadinessGroup", "one"));
    // Of a policy that is named, no group is left out.
    let (code, out, err) = release(&cluster, &["shop"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "released 0 parents, 0 failed\n"), "{err}");
    let mut rbac = cluster.bare();
    rbac.args(["rbac", "--all"]);
    let (code, out, err) = done(rbac).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("shops/status") && err.contains("ReadinessGroups could not be read"), "{out}{err}");
}

#[tokio::test]
async fn a_parent_of_which_nothing_can_be_removed_counts_once() {
    let cluster = cluster("release-forbidden").await;
    for (name, label) in [("one", "app"), ("two", "part")] {
        told_group(&cluster, name, "a", label);
    }
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::Patch);
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinessgroups"));
    let (code, out, err) = release(&cluster, &[]).await;
    assert_eq!((code, out.as_str()), (Some(1), "released 0 parents, 2 failed\n"), "{err}");
}

#[tokio::test]
async fn a_group_in_a_file_is_the_only_one_that_is_released() {
    let cluster = cluster("release-group-file").await;
    for name in ["one", "two"] {
        told_group(&cluster, name, "a", "app");
    }
    let group = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "metadata": { "name": "one" },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "one" } }] } });
    let file = cluster.file("one.json", &group);
    let (code, out, err) = release(&cluster, &["-f", &file]).await;
    assert_eq!((code, out.as_str()), (Some(0), "released 1 parents, 0 failed\n"), "{err}");
    assert!(is_told(&cluster, "rollcall.dev/v1alpha1", "ReadinessGroup", "two"));
}

#[tokio::test]
async fn a_policy_that_is_not_there_is_named() {
    let cluster = cluster("release-unnamed").await;
    cluster.create(&policy("Shop", "example.com", "Database"));
    cluster.create(&told(custom("Shop", "books"), "Ready"));
    let (code, out, err) = release(&cluster, &["shop", "databse"]).await;
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains("there is no policy databse in the cluster"), "{err}");
    assert!(is_told(&cluster, "example.com/v1", "Shop", "books"), "nothing was done");
    let (code, _, err) = cluster.run(&["release", "databse"]).await;
    assert!(code == Some(2) && err.contains("there is no policy databse in the files"), "{err}");
}

/// The record of a parent.
fn record(cluster: &LiveCluster, kind: &str, namespace: &str, name: &str) {
    let group = if kind == "ReadinessGroup" { "rollcall.dev" } else { "example.com" };
    let parent = json!({ "group": group, "kind": kind, "namespace": namespace, "name": name });
    cluster.create(&json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessRecord",
        "metadata": { "name": format!("{}-{namespace}-{name}", kind.to_lowercase()), "namespace": "default" },
        "spec": { "parent": parent, "outcomes": [] } }));
}

fn records(cluster: &LiveCluster, all: &[&str]) -> Vec<String> {
    let store = cluster.server.lock_store();
    let is_there =
        |name: &&&str| store.get("rollcall.dev/v1alpha1", "ReadinessRecord", "default", name).is_some();
    all.iter().filter(is_there).map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_group_in_a_file_that_names_no_namespace_is_that_of_the_kubeconfig_with_its_records() {
    let cluster = cluster("release-group-namespace").await;
    cluster.create(&serde_json::to_value(api::ReadinessRecord::crd()).unwrap());
    let vault = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "vault" } });
    cluster.create(&vault);
    let all = [
        "readinessgroup-default-one",
        "readinessgroup-default-two",
        "readinessgroup-vault-one",
        "shop-default-one",
    ];
    for (namespace, name) in [("default", "one"), ("default", "two"), ("vault", "one")] {
        told_group_in(&cluster, namespace, (name, "a", "app"));
        record(&cluster, "ReadinessGroup", namespace, name);
    }
    record(&cluster, "Shop", "default", "one");
    let mut group = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "metadata": { "name": "one" },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "one" } }] } });
    let file = cluster.file("one.json", &group);
    let (code, out, err) = release(&cluster, &["-f", &file, "--records", "default"]).await;
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "released 1 parents, 0 failed\ndeleted 1 records, 0 failed\n"),
        "{err}"
    );
    assert!(is_told_in(&cluster, "vault", ("rollcall.dev/v1alpha1", "ReadinessGroup", "one")));
    assert_eq!(records(&cluster, &all), all[1..]);
    group["metadata"]["namespace"] = json!("vault");
    let file = cluster.file("one.json", &group);
    let (code, out, err) = release(&cluster, &["-f", &file, "--records", "default"]).await;
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "released 1 parents, 0 failed\ndeleted 1 records, 0 failed\n"),
        "{err}"
    );
    assert_eq!(records(&cluster, &all), [all[1], all[3]]);
}

#[tokio::test]
async fn of_some_namespaces_the_records_go_with_the_parents() {
    let cluster = cluster("release-records").await;
    cluster.create(&serde_json::to_value(api::ReadinessRecord::crd()).unwrap());
    cluster.create(&policy("Shop", "example.com", "Database"));
    let all = ["shop-default-books", "shop-vault-books"];
    for namespace in ["default", "vault"] {
        record(&cluster, "Shop", namespace, "books");
    }
    for more in [&["shop"][..], &[]] {
        let mut args = vec!["--namespaces", "vault", "--records", "default"];
        args.extend(more);
        let (code, out, err) = release(&cluster, &args).await;
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(records(&cluster, &all), all[..1]);
        record(&cluster, "Shop", "vault", "books");
    }
}
