//! Commands judge by the policies that the service has in force, and say so where nobody knows what these ask for.

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, own_definition, owned, pod, policy};

/// A cluster that serves policies, also those that no version of Rollcall can read.
async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    cluster
}

/// Runs a command by the policies of the cluster.
async fn run(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

/// The policy, with this spec as the one that was accepted last.
fn accepted(mut policy: Value, spec: &Value) -> Value {
    policy["status"] = json!({ "missingRights": [], "conditions": [], "acceptedGeneration": 1,
        "accepted": { "generation": 1, "spec": spec.to_string() } });
    policy
}

fn named(name: &str, mut policy: Value) -> Value {
    policy["metadata"]["name"] = json!(name);
    policy
}

/// A policy over Databases in a form that nobody can read.
fn unreadable() -> Value {
    let mut unreadable = policy("Database", "", "Pod");
    unreadable["spec"]["children"] = json!("as many as it likes");
    unreadable
}

/// A Database that calls itself ready, of a Shop with a policy; below it is a Deployment that is ready.
fn ready_database(cluster: &LiveCluster) {
    cluster.create(&policy("Shop", "example.com", "Database"));
    let shop = cluster.create(&custom("Shop", "books"));
    let mut database = custom("Database", "db");
    database["status"]["conditions"] =
        json!([{ "type": "Ready", "status": "True", "reason": "Up", "observedGeneration": 1 }]);
    let database = cluster.below(&shop, database);
    cluster.below(&database, deployment());
}

fn deployment() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": { "replicas": 1 },
        "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1 } })
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_policies_that_claim_the_same_the_one_that_is_in_force_judges() {
    let cluster = cluster("in-force-conflict").await;
    let holder = policy("Shop", "", "Pod");
    cluster.create(&named("b", accepted(holder.clone(), &holder["spec"])));
    cluster.create(&named("a", policy("Shop", "", "Service")));
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("web-0", None));
    let (code, out, err) = run(&cluster, &["wait", "shop/books", "--timeout", "90s"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("policy a") && err.contains("policy b writes Ready on Shop already"), "{err}");
    let (code, out, err) = run(&cluster, &["tree"]).await;
    assert_eq!((code, out.matches("Shop default/books").count()), (Some(0), 1), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_refused_judges_as_it_was_last_accepted() {
    let cluster = cluster("in-force-last").await;
    ready_database(&cluster);
    let before = policy("Database", "apps", "Deployment");
    cluster.create(&accepted(unreadable(), &before["spec"]));
    let (code, out, err) = run(&cluster, &["wait", "database/db", "--timeout", "90s"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("generation 1 stays in force"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn by_a_policy_that_cannot_be_read_nothing_is_ready_at_any_depth() {
    let cluster = cluster("in-force-unreadable").await;
    ready_database(&cluster);
    cluster.create(&unreadable());
    for what in ["database/db", "shop/books"] {
        let (code, out, err) = run(&cluster, &["wait", what, "--timeout", "90s"]).await;
        assert_eq!(code, Some(2), "{what}: {out}{err}");
        assert!(out.contains("policy database is refused"), "{what}: {out}{err}");
        let (code, out, err) = run(&cluster, &["tree", what]).await;
        assert_eq!(code, Some(1), "{what}: {out}{err}");
        assert!(out.contains("PolicyRefused"), "{what}: {out}{err}");
        assert!(!out.contains("not permitted") && !out.contains("NotVisible"), "{what}: {out}{err}");
        let (code, out, err) = run(&cluster, &["explain", what]).await;
        assert_eq!(code, Some(1), "{what}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_knows_which_objects_a_policy_is_about_it_may_be_about_all() {
    let cluster = cluster("in-force-nameless").await;
    cluster.create(&policy("Shop", "", "Pod"));
    let mut nameless = policy("Database", "", "Pod");
    nameless["spec"] = json!({ "parent": "Database" });
    cluster.create(&nameless);
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("web-0", None));
    for args in [&["wait", "shop/books", "--timeout", "90s"][..], &["tree"], &["explain", "shop/books"]] {
        let (code, out, err) = run(&cluster, args).await;
        assert_eq!(code, Some(2), "{args:?}: {out}{err}");
        assert!(err.contains("not read: policy database: "), "{args:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_policies_of_the_cluster_no_command_calls_anything_ready() {
    let cluster = cluster("in-force-unseen").await;
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, deployment());
    let all = [
        &["tree", "shop/books"][..],
        &["explain", "shop/books"],
        &["wait", "shop/books", "--timeout", "20s"],
    ];
    for args in all {
        let (code, out, err) = run(&cluster, args).await;
        assert_eq!(code, Some(0), "by the default policy, for there is none: {args:?}: {out}{err}");
    }
    let forbidden = InjectedFault::new(FaultAction::Forbid);
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinesspolicies"));
    for args in all {
        let (code, out, err) = run(&cluster, args).await;
        assert_eq!(code, Some(2), "{args:?}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_kind_may_not_be_listed_is_not_said_to_be_missing() {
    let cluster = LiveCluster::start("in-force-hidden").await;
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("web-0", None));
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List);
    cluster.server.faults().add(forbidden.on_kind("example.com", "shops"));
    let (code, out, err) = cluster.run(&["wait", "shop/books", "--timeout", "90s"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(!out.contains("does not exist"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_outcomes_may_not_be_read_what_remembers_them_is_not_ready() {
    let cluster = LiveCluster::start("in-force-records").await;
    cluster.create(&serde_json::to_value(api::ReadinessRecord::crd()).unwrap());
    let mut remembers = policy("Shop", "batch", "Job");
    remembers["spec"]["children"][0]["afterDeletion"] = json!("remember");
    let policies = [remembers, policy("Database", "", "Pod")].map(|policy| policy.to_string());
    cluster.text_file("policies.yaml", &policies.join("\n---\n"));
    let shop = cluster.create(&custom("Shop", "books"));
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "seed" },
        "status": { "succeeded": 1, "conditions": [{ "type": "Complete", "status": "True" }] } });
    cluster.create(&owned(&shop, job));
    let database = cluster.create(&custom("Database", "db"));
    cluster.below(&database, pod("db-0", None));
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List);
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinessrecords"));
    // Whoever remembers nothing needs none.
    for (what, expected) in [("shop/books", 2), ("database/db", 0)] {
        let (code, out, err) = cluster.run(&["wait", what, "--timeout", "90s"]).await;
        assert_eq!(code, Some(expected), "{what}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_may_be_read_in_the_users_namespace_only_count_where_one_is_found_there() {
    let cluster = LiveCluster::start("in-force-own-records").await;
    cluster.create(&serde_json::to_value(api::ReadinessRecord::crd()).unwrap());
    let mut remembers = policy("Shop", "batch", "Job");
    remembers["spec"]["children"][0]["afterDeletion"] = json!("remember");
    cluster.text_file("policies.yaml", &remembers.to_string());
    let shop = cluster.create(&custom("Shop", "books"));
    let forbidden = InjectedFault::new(FaultAction::Forbid).across_namespaces();
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinessrecords"));
    let said = async |args: &[&str]| {
        let (code, out, err) = cluster.run(args).await;
        (code, out + &err)
    };
    let (wait, tree) = (["wait", "shop/books", "--timeout", "90s"], ["tree", "shop/books"]);
    let (code, text) = said(&wait).await;
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("there is none in namespace default"), "{text}");
    assert_eq!(said(&tree).await.0, Some(1), "it is Unknown");
    let job = json!({ "group": "batch", "kind": "Job", "namespace": "default", "name": "seed", "slot": "seed",
        "uid": "j", "created": "2025-12-31T00:00:00Z", "outcome": "Complete" });
    cluster.create(&json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessRecord",
        "metadata": { "name": shop["metadata"]["uid"], "namespace": "default" },
        "spec": { "outcomes": [job], "parent": { "group": "example.com", "kind": "Shop", "namespace": "default",
            "name": "books" } } }));
    for args in [&wait[..], &tree] {
        let (code, text) = said(args).await;
        assert_eq!(code, Some(0), "{args:?}: {text}");
        assert!(!text.contains("ReadinessRecord"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn to_name_an_object_changes_nothing_of_what_its_parent_is_told() {
    let cluster = LiveCluster::start("in-force-named").await;
    cluster.text_file("policies.yaml", &policy("Shop", "example.com", "Database").to_string());
    let shop = cluster.create(&custom("Shop", "books"));
    let database = cluster.below(&shop, custom("Database", "db"));
    cluster.below(&database, deployment());
    let alone = cluster.create(&custom("Database", "alone"));
    let mut web = deployment();
    web["metadata"]["name"] = json!("alone");
    cluster.below(&alone, web);
    let waited = async |what: &[&str]| {
        let mut args = vec!["wait", "--timeout", "16s"];
        args.extend(what);
        cluster.run(&args).await
    };
    let (alone, both, database, uncounted) = tokio::join!(
        waited(&["shop/books"]),
        waited(&["shop/books", "database/db"]),
        waited(&["database/db"]),
        // No policy counts it: what it owns does.
        waited(&["database/alone"]),
    );
    for ((code, out, err), expected) in [(alone, 124), (both, 124), (database, 124), (uncounted, 0)] {
        assert_eq!(code, Some(expected), "{out}{err}");
    }
}
