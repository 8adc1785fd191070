//! Which kinds are read, and where: as far as policies lead, and no further than what is asked for.

use std::time::Duration;

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, crd, custom, done, pod, policy};

fn placed(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

fn create_namespace(cluster: &LiveCluster, name: &str) {
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        "status": { "phase": "Active" } }));
}

fn crash_loop(name: &str) -> Value {
    pod(name, Some(("CrashLoopBackOff", "back-off 5m0s")))
}

fn write_policies(cluster: &LiveCluster, policies: &[Value]) {
    let texts: Vec<String> = policies.iter().map(ToString::to_string).collect();
    cluster.text_file("policies.yaml", &texts.join("\n---\n"));
}

/// A policy over Databases that needs no pods.
fn lenient_databases() -> Value {
    let mut databases = policy("Database", "", "Pod");
    databases["spec"]["children"][0]["expect"] = json!({ "min": 0 });
    databases
}

#[tokio::test(flavor = "multi_thread")]
async fn below_what_is_found_in_another_namespace_its_children_are_read_there() {
    let cluster = LiveCluster::start("reading-elsewhere").await;
    create_namespace(&cluster, "vault");
    let mut shops = policy("Shop", "example.com", "Database");
    shops["spec"]["children"][0]["find"] = json!({ "labels": { "app": "orders" }, "namespaces": ["vault"] });
    write_policies(&cluster, &[shops, lenient_databases()]);
    cluster.create(&custom("Shop", "books"));
    let mut database = placed("vault", custom("Database", "orders"));
    database["metadata"]["labels"] = json!({ "app": "orders" });
    let database = cluster.create(&database);
    cluster.below(&database, placed("vault", crash_loop("orders-0")));
    let own = cluster.create(&custom("Database", "own"));
    cluster.below(&own, pod("own-0", None));
    let (code, out, err) = cluster.run(&["tree", "shop/books"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("orders-0"), "{out}{err}");
    let (code, out, err) = cluster.run(&["wait", "shop/books", "--timeout", "5s"]).await;
    assert_eq!(code, Some(124), "{out}{err}");
    // Of the objects that are no children, those of the namespace are shown.
    write_policies(
        &cluster,
        &[lenient_databases(), {
            let mut shops = policy("Shop", "example.com", "Database");
            shops["spec"]["children"][0]["find"] =
                json!({ "labels": { "app": "none" }, "namespaces": ["vault"] });
            shops["spec"]["children"][0]["expect"] = json!({ "min": 0 });
            shops
        }],
    );
    let (_, out, err) = cluster.run(&["tree"]).await;
    assert!(out.contains("own-0") && !out.contains("vault"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_children_of_a_cluster_scoped_object_are_read_in_all_namespaces() {
    let cluster = LiveCluster::start("reading-tenants").await;
    create_namespace(&cluster, "vault");
    let mut tenants = crd("Tenant");
    tenants["spec"]["scope"] = json!("Cluster");
    cluster.create(&tenants);
    let mut of_tenant = policy("Tenant", "", "Pod");
    of_tenant["spec"]["children"][0]["find"] = json!({ "allowedNamespaces": ["default", "vault"] });
    write_policies(&cluster, &[of_tenant, lenient_databases()]);
    let tenant = cluster.create(&custom("Tenant", "acme"));
    cluster.below(&tenant, pod("here-0", None));
    cluster.below(&tenant, placed("vault", crash_loop("there-0")));
    let database = cluster.create(&custom("Database", "db"));
    cluster.below(&database, pod("db-0", None));
    let (code, out, err) = cluster.run(&["tree", "-n", "default"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("there-0"), "{out}{err}");
    // Whoever may list in one namespace only is told of the others that they are not known, and of the rest as before.
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List);
    for command in ["tree", "wait"] {
        cluster.server.faults().add(forbidden.clone().on_kind("", "pods").once());
        let timeout = if command == "wait" { &["--timeout", "90s"][..] } else { &[] };
        let mut args = vec![command, "database/db"];
        args.extend(timeout);
        let (code, out, err) = cluster.run(&args).await;
        assert_eq!(code, Some(0), "{command}: {out}{err}");
    }
    cluster.server.faults().add(forbidden.on_kind("", "pods").once());
    let (code, out, err) = cluster.run(&["tree"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("KindNotVisible") && out.contains("Pod in all namespaces"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_installed_while_it_is_waited_for_is_read() {
    let cluster = LiveCluster::start("reading-installed").await;
    write_policies(&cluster, &[policy("Shop", "example.com", "Queue")]);
    let shop = cluster.create(&custom("Shop", "books"));
    let waiting = cluster.rollcall(&["wait", "shop/books", "--timeout", "25s"]);
    let waiting = tokio::spawn(done(waiting));
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.create(&crd("Queue"));
    let mut queue = custom("Queue", "orders");
    queue["status"]["conditions"] =
        json!([{ "type": "Ready", "status": "True", "reason": "Up", "observedGeneration": 1 }]);
    cluster.below(&shop, queue);
    let (code, out, err) = waiting.await.unwrap();
    assert_eq!(code, Some(0), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_served_in_another_version_is_not_empty() {
    let cluster = LiveCluster::start("reading-version").await;
    let mut shops = policy("Shop", "", "Pod");
    let databases = json!({ "kind": { "group": "example.com", "version": "v1beta1", "kind": "Database" }, "expect": { "min": 0 } });
    shops["spec"]["children"].as_array_mut().unwrap().push(databases);
    write_policies(&cluster, &[shops]);
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("web-0", None));
    cluster.below(&shop, custom("Database", "db"));
    let (code, out, err) = cluster.run(&["tree", "shop/books"]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("not read: Database.example.com: it is served as example.com/v1"), "{out}{err}");
    let (code, out, err) = cluster.run(&["wait", "shop/books", "--timeout", "90s"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
}
