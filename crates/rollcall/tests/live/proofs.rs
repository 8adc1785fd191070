//! Policies whose proof reads their children: what it reads is read by every command.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, own_definition, pod, policy};

/// A Shop with a Database that is ready, and says so in a field of its own; with a policy that asks for this.
async fn shop(name: &str, proof: &str) -> (LiveCluster, Value) {
    let cluster = LiveCluster::start(name).await;
    let shop = cluster.create(&custom("Shop", "books"));
    let mut database = custom("Database", "db");
    database["spec"] = json!({ "ok": true });
    database["status"]["conditions"] = json!([{ "type": "Ready", "status": "True", "reason": "Up" }]);
    cluster.below(&shop, database);
    let mut shops = policy("Shop", "example.com", "Database");
    shops["spec"]["proof"] = json!(proof);
    cluster.file("policies.yaml", &shops);
    (cluster, shops)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_proof_reads_of_children_is_read() {
    let (cluster, _) = shop("proof-read", "children.all(c, c.kind == 'Database' && c.spec.ok == true)").await;
    for args in [&["tree"][..], &["explain", "shop/books"], &["wait", "shop/books", "--timeout", "90s"]] {
        let (code, out, err) = cluster.run(args).await;
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_that_does_not_hold_is_said_not_to_hold() {
    let (cluster, _) = shop("proof-broken", "children.all(c, c.spec.ok == false)").await;
    let (code, out, err) = cluster.run(&["tree"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("ChildrenPending") && !out.contains("absent"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_children_are_read_for_a_proof_too() {
    let cluster = LiveCluster::start("proof-pods").await;
    let database = cluster.create(&custom("Database", "db"));
    cluster.below(&database, pod("db-0", None));
    let mut databases = policy("Database", "", "Pod");
    databases["spec"]["proof"] = json!("children.exists(c, c.metadata.labels.app == 'web')");
    cluster.file("policies.yaml", &databases);
    let (code, out, err) = cluster.run(&["wait", "database/db", "--timeout", "90s"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_reads_what_a_planned_proof_reads() {
    let (cluster, planned) = shop("proof-plan", "children.all(c, c.spec.ok == true)").await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    let file = cluster.file("planned.json", &planned);
    let mut command = cluster.bare();
    command.args(["plan", "-f", &file, "-o", "json"]);
    let (_, out, err) = done(command).await;
    let plan: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(plan["parents"][0]["then"]["status"], json!("True"), "{out}{err}");
}
