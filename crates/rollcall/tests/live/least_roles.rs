//! Restricted to namespaces, the service asks for what the Roles grant that `rollcall rbac --namespaces` prints, and for all of it.

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::asked_rights::{AskedRight, GrantedRight, RightsTable, all_asked, granted_rights};
use super::cluster::{LiveCluster, condition, crd, custom, done, owned, pod, policy};
use super::least_rights::{HOME, WORKLOADS, finished_job, object};
use super::service::{RunningService, until};

/// The namespaces that it is restricted to. Of others it reads nothing, though they have the same kinds.
const NAMESPACES: &str = "default,gold";

/// Policies over workloads, over Jobs of a Kopf operator that are remembered, and over what a script in another namespace judges.
fn policies() -> [Value; 3] {
    let mut shops = policy("Shop", "", "Pod");
    shops["spec"] = json!({ "parent": shops["spec"]["parent"], "settle": "0s" });
    let mut databases = policy("Database", "batch", "Job");
    databases["spec"]["children"][0]["afterDeletion"] = json!("remember");
    databases["spec"]["evidence"] = json!("kopf");
    let mut ledgers = policy("Ledger", "example.com", "Page");
    ledgers["spec"]["children"][0]["ready"] = json!({ "rules": "gitops/scripts" });
    [shops, databases, ledgers]
}

fn in_namespace(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// A cluster with parents of all policies in each namespace; returns it with the Database in `default`.
async fn cluster() -> (LiveCluster, Value) {
    let cluster = LiveCluster::start("least-roles").await;
    for kind in ["Ledger", "Page"] {
        cluster.create(&crd(kind));
    }
    cluster.create(&serde_json::to_value(api::ReadinessRecord::crd()).unwrap());
    for name in [HOME, "gitops", "gold", "elsewhere"] {
        cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }
    let mut scripts = object("v1", "ConfigMap", "gitops", "scripts");
    let script = "return {status = 'Progressing'}";
    scripts["data"] = json!({ "resource.customizations.health.example.com_Page": script });
    cluster.create(&scripts);
    for namespace in ["default", "gold", "elsewhere"] {
        let shop = cluster.create(&in_namespace(namespace, custom("Shop", "books")));
        for (api_version, kind) in WORKLOADS {
            let mut workload = object(api_version, kind, namespace, "part");
            workload["spec"] = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "part" } } });
            if kind == "Pod" {
                workload = in_namespace(namespace, pod("part", Some(("CrashLoopBackOff", "it fails"))));
                workload["spec"]["volumes"] =
                    json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
            }
            cluster.below(&shop, workload);
        }
        let ledger = cluster.create(&in_namespace(namespace, custom("Ledger", "main")));
        cluster.below(&ledger, in_namespace(namespace, custom("Page", "one")));
        cluster.create(&in_namespace(namespace, custom("Database", "without-jobs")));
    }
    let database = cluster.create(&custom("Database", "orders"));
    (cluster, database)
}

fn until_says(cluster: &LiveCluster, namespace: &str, (kind, name): (&str, &str), status: &str) {
    until(&format!("{kind} {namespace}/{name} says {status}"), || {
        let found = cluster.server.lock_store().get("example.com/v1", kind, namespace, name).unwrap();
        condition(&found, "Ready")["status"] == status
    });
}

/// Somebody looks at every part of the shops. The Pods mount claims.
fn look_at_page(cluster: &LiveCluster, service: &RunningService) {
    for namespace in ["default", "gold"] {
        let shop = cluster.server.lock_store().get("example.com/v1", "Shop", namespace, "books").unwrap();
        let shop = format!("/api/v1/parents/{}", shop["metadata"]["uid"].as_str().unwrap());
        for (api_version, kind) in WORKLOADS {
            let group = api_version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
            let path = format!("{shop}/around?label={kind}{group}&namespace={namespace}&name=part");
            let shown = service.get(&path);
            assert!(shown.starts_with("HTTP/1.1 200") && shown.contains("\"notRead\":[]"), "{kind}: {shown}");
        }
    }
}

async fn printed(cluster: &LiveCluster, args: &[&str]) -> (String, String) {
    let mut command = cluster.bare();
    command.args(args);
    let (code, out, err) = done(command).await;
    assert_eq!(code, Some(0), "{out}{err}");
    (out, err)
}

#[tokio::test(flavor = "multi_thread")]
async fn within_namespaces_what_is_granted_is_what_is_asked_for() {
    let (cluster, database) = cluster().await;
    let file = cluster.text_file("all.yaml", &policies().map(|policy| policy.to_string()).join("\n---\n"));
    let args = ["--policies", &file, "--namespaces", NAMESPACES, "--resync", "1s", "--leader-elect"];
    let home = ["--lease-namespace", HOME, "--records-namespace", HOME];
    let service = RunningService::start(&cluster, &[&args[..], &home].concat(), &[]);
    for namespace in ["default", "gold"] {
        until_says(&cluster, namespace, ("Shop", "books"), "False");
        until_says(&cluster, namespace, ("Ledger", "main"), "False");
        until_says(&cluster, namespace, ("Database", "without-jobs"), "False");
    }
    let records =
        || cluster.server.lock_store().list_objects("rollcall.dev/v1alpha1", "ReadinessRecord", HOME);
    let outcomes = || {
        let count = |record: &Value| record["spec"]["outcomes"].as_array().map_or(0, Vec::len);
        records().iter().map(|record| count(record)).sum::<usize>()
    };
    cluster.create(&owned(&database, finished_job("first")));
    until("the Job is remembered", || outcomes() == 1);
    // Somebody else writes the record at the same time.
    let conflict = InjectedFault::new(FaultAction::Answer(409, None)).on_verb(RequestVerb::Patch).once();
    cluster.server.faults().add(conflict.on_kind("rollcall.dev", "readinessrecords"));
    cluster.create(&owned(&database, finished_job("second")));
    until("the second Job is remembered", || outcomes() == 2);
    look_at_page(&cluster, &service);
    let asked = || all_asked(&cluster.server);
    let asks = |what: &str| asked().iter().any(|asked| asked.what() == what);
    for namespace in ["default", "gold"] {
        let is_sent = |asked: &AskedRight| {
            asked.what() == "create events.events.k8s.io" && *asked.namespace == *namespace
        };
        until(&format!("it sends an Event in {namespace}"), || asked().iter().any(is_sent));
    }
    for what in [
        "get databases.example.com",
        "get ledgers.example.com",
        "get pages.example.com",
        "get shops.example.com",
        "update leases.coordination.k8s.io",
    ] {
        until(&format!("it asks to {what}"), || asks(what));
    }
    drop(service);
    let release = ["release", "-f", &file, "--namespaces", NAMESPACES, "--records", HOME];
    let (out, err) =
        printed(&cluster, &[&release[..], &["--lease", "rollcall-system/rollcall"]].concat()).await;
    assert!(out.contains("deleted 1 records, 0 failed"), "{out}{err}");

    let own = printed(&cluster, &["rbac", "--namespaces", NAMESPACES]).await.0;
    let of_policies = printed(&cluster, &["rbac", "--namespaces", NAMESPACES, "-f", &file]).await.0;
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&(own + &of_policies)).unwrap();
    assert!(!manifests.iter().any(|object| object["kind"] == "ClusterRole"), "{manifests:?}");
    let (asked, granted) = (asked(), granted_rights(&manifests));
    let table = RightsTable { asked: &asked, granted: &granted };
    println!("{table}");
    assert_eq!(table.refused(), [] as [&AskedRight; 0], "no Role grants these");
    assert_eq!(table.unasked(), [] as [&GrantedRight; 0], "granted, and never asked for");
}
