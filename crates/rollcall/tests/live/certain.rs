//! `wait` says ready of nothing else than what it was asked for, and of nothing of which it does not know what is asked.

use sandbox::{FaultAction, InjectedFault};
use serde_json::json;

use super::cluster::{LiveCluster, custom, done, own_definition, pod, policy};

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_that_name_in_another_namespace_is_not_the_one() {
    let cluster = LiveCluster::start("certain-namespace").await;
    for name in ["shop", "vault"] {
        let status = json!({ "phase": "Active" });
        cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name }, "status": status }));
    }
    let mut elsewhere = pod("web-0", None);
    elsewhere["metadata"]["namespace"] = json!("vault");
    cluster.create(&elsewhere);
    // With a cluster-scoped object all namespaces are read.
    let wait = |namespace| ["wait", "-n", namespace, "namespace/shop", "pod/web-0", "--timeout", "3s"];
    let (code, out, err) = cluster.run(&wait("shop")).await;
    assert_eq!(code, Some(124), "{out}{err}");
    assert!(out.contains("Pod web-0 does not exist"), "{out}");
    let (code, out, err) = cluster.run(&wait("vault")).await;
    assert_eq!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_policies_of_the_cluster_nothing_is_ready() {
    let cluster = LiveCluster::start("certain-policies").await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("web-0", None));
    let mut deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 1 },
        "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1 } });
    deployment = super::cluster::owned(&shop, deployment);
    cluster.create(&deployment);
    let waited = async || {
        let mut command = cluster.bare();
        command.args(["wait", "shop/books", "--timeout", "20s"]);
        done(command).await
    };
    let (code, out, err) = waited().await;
    assert_eq!(code, Some(0), "by the default policy, for there is none: {out}{err}");
    cluster
        .server
        .faults()
        .add(InjectedFault::new(FaultAction::Forbid).on_kind("rollcall.dev", "readinesspolicies"));
    let (code, out, err) = waited().await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(out.contains("policies could not be read") && out.contains("pass them with -f"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_but_quiet_shows_that_an_operator_is_done_quiet_is_waited_for() {
    let cluster = LiveCluster::start("certain-quiet").await;
    let mut slow = policy("Shop", "", "Pod");
    slow["spec"]["settle"] = json!("1h");
    let slow = cluster.file("slow.yaml", &slow);
    let waited = async |name: &str, timeout: &str| {
        let mut command = cluster.bare();
        command.args(["wait", &format!("shop/{name}"), "--timeout", timeout, "-f", &slow]);
        done(command).await
    };
    let told = json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    for (name, status, expected) in [
        // Its operator leaves no mark: it may not have seen the spec at all.
        ("silent", json!({ "phase": "Up" }), 124),
        ("told", json!({ "phase": "Up", "conditions": [told] }), 0),
    ] {
        let mut shop = custom("Shop", name);
        shop["status"] = status;
        let shop = cluster.create(&shop);
        cluster.below(&shop, pod(&format!("{name}-0"), None));
        for timeout in ["7s", "0s"] {
            let (code, out, err) = waited(name, timeout).await;
            assert_eq!(code, Some(expected), "{name} {timeout}: {out}{err}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_two_policies_judge_is_as_ready_as_the_worse_of_them_says() {
    let cluster = LiveCluster::start("certain-two-policies").await;
    let shop = cluster.create(&custom("Shop", "books"));
    let database = cluster.below(&shop, custom("Database", "orders"));
    cluster.below(&database, pod("orders-0", None));
    for (first, second) in [("Pod", "Service"), ("Service", "Pod")] {
        let mut of_database = [first, second].map(|child| policy("Database", "", child));
        for (policy, name) in of_database.iter_mut().zip(["a", "b"]) {
            policy["metadata"]["name"] = json!(name);
            policy["spec"]["condition"] = json!({ "type": format!("Ready{name}") });
        }
        let [a, b] = of_database;
        let policies = [policy("Shop", "example.com", "Database"), a, b].map(|policy| policy.to_string());
        cluster.text_file("policies.yaml", &policies.join("\n---\n"));
        let (code, out, err) = cluster.run(&["wait", "database/orders", "--timeout", "4s"]).await;
        assert_eq!(code, Some(124), "{first}: {out}{err}");
        assert!(out.contains("Service missing"), "{first}: {out}{err}");
    }
}
