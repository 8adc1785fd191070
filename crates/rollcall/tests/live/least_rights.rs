//! What the service asks the API server for is what it is granted: it lacks no right, and has none that it does not need.
//! `--nocapture` prints both, side by side.

use std::collections::BTreeSet;

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::asked_rights::{AskedRight, GrantedRight, RightsTable, all_asked, granted_rights};
use super::cluster::{LiveCluster, condition, crd, custom, done, owned, pod, policy};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";
/// Where the service lives.
pub(super) const HOME: &str = "rollcall-system";

/// Kinds that a policy counts which names none.
pub(super) const WORKLOADS: [(&str, &str); 7] = [
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
];

/// A cluster in which everything is used that policies can say.
struct BusyCluster {
    cluster: LiveCluster,
    shop: Value,
    database: Value,
}

fn policies() -> [Value; 4] {
    let mut shops = policy("Shop", "", "Pod");
    shops["spec"] = json!({ "parent": shops["spec"]["parent"], "settle": "0s" });
    let mut databases = policy("Database", "batch", "Job");
    databases["spec"]["children"][0]["afterDeletion"] = json!("remember");
    let mut ledgers = policy("Ledger", "example.com", "Page");
    ledgers["spec"]["parent"]["namespaceSelector"] = json!({ "matchLabels": { "tier": "gold" } });
    ledgers["spec"]["children"][0]["find"] = json!({
        "labels": { "ledger": "{parent.metadata.name}" }, "namespaces": ["{parent.spec.namespace}"],
        "allowedNamespaces": ["team-*"],
    });
    ledgers["spec"]["children"][0]["ready"] = json!({ "rules": "gitops/scripts" });
    let group = json!({
        "apiVersion": OWN, "kind": "ReadinessGroup", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" } }], "settle": "0s" },
    });
    [shops, databases, ledgers, group]
}

pub(super) fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": namespace } })
}

pub(super) fn finished_job(name: &str) -> Value {
    let mut job = object("batch/v1", "Job", "default", name);
    job["status"] = json!({ "succeeded": 1, "conditions": [
        { "type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z" },
    ] });
    job
}

impl BusyCluster {
    async fn start(name: &str) -> BusyCluster {
        let cluster = LiveCluster::start(name).await;
        for kind in ["Ledger", "Page"] {
            cluster.create(&crd(kind));
        }
        for own in [api::ReadinessPolicy::crd(), api::ReadinessGroup::crd(), api::ReadinessRecord::crd()] {
            cluster.create(&serde_json::to_value(own).unwrap());
        }
        for (namespace, labels) in [
            (HOME, json!({})),
            ("gitops", json!({})),
            ("team-a", json!({})),
            ("gold", json!({ "tier": "gold" })),
        ] {
            cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": namespace, "labels": labels } }));
        }
        let shop = cluster.create(&custom("Shop", "books"));
        for (api_version, kind) in WORKLOADS {
            let mut workload = object(api_version, kind, "default", "part");
            workload["spec"] = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "part" } } });
            if kind == "Pod" {
                workload = pod("part", Some(("CrashLoopBackOff", "it fails")));
                workload["spec"]["volumes"] =
                    json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
            }
            cluster.below(&shop, workload);
        }
        let database = cluster.create(&custom("Database", "orders"));
        cluster.create(&custom("Database", "without-jobs"));
        let busy = BusyCluster { cluster, shop, database };
        busy.create_ledgers();
        busy
    }

    /// Ledgers whose pages lie elsewhere. One of these is not ready.
    fn create_ledgers(&self) {
        let script = "return {status = obj.metadata.name == 'late' and 'Progressing' or 'Healthy'}";
        let mut scripts = object("v1", "ConfigMap", "gitops", "scripts");
        scripts["data"] = json!({ "resource.customizations.health.example.com_Page": script });
        self.cluster.create(&scripts);
        for name in ["main", "late"] {
            let mut page = custom("Page", name);
            page["metadata"]["namespace"] = json!("team-a");
            page["metadata"]["labels"] = json!({ "ledger": name });
            self.cluster.create(&page);
            let mut ledger = custom("Ledger", name);
            ledger["metadata"]["namespace"] = json!("gold");
            ledger["spec"] = json!({ "namespace": "team-a" });
            self.cluster.create(&ledger);
        }
    }

    fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
        let found = self.cluster.server.lock_store().get(api_version, kind, namespace, name);
        found.map(|found| (*found).clone()).unwrap_or_default()
    }

    fn until_says(&self, api_version: &str, kind: &str, of: (&str, &str), status: &str) {
        until(&format!("{kind} {} says {status}", of.1), || {
            condition(&self.get(api_version, kind, of.0, of.1), "Ready")["status"] == status
        });
    }

    fn delete(&self, api_version: &str, kind: &str, name: &str) {
        let now = self.cluster.server.now();
        self.cluster.server.lock_store().delete_object(now, api_version, kind, "", name).unwrap();
    }

    /// Number of outcomes that are kept.
    fn outcomes(&self) -> usize {
        let records = self.cluster.server.lock_store().list_objects(OWN, "ReadinessRecord", HOME);
        records.iter().map(|record| record["spec"]["outcomes"].as_array().map_or(0, Vec::len)).sum()
    }

    /// Two Jobs end; somebody else writes the record at the same time as the service.
    fn finish_jobs(&self) {
        self.cluster.create(&owned(&self.database, finished_job("first")));
        until("the first Job is remembered", || self.outcomes() == 1);
        let conflict = InjectedFault::new(FaultAction::Answer(409, None)).on_verb(RequestVerb::Patch).once();
        let conflict = self.cluster.server.faults().add(conflict.on_kind("rollcall.dev", "readinessrecords"));
        self.cluster.create(&owned(&self.database, finished_job("second")));
        until("the second Job is remembered", || self.outcomes() == 2);
        assert_eq!(conflict.fired_count(), 1);
    }

    /// Somebody looks at every part of the shop.
    fn look_at_page(&self, service: &RunningService) {
        let answer = |path: &str| service.get_as("ann", path);
        until("the page shows the shop", || answer("/api/v1/parents").contains("\"books\""));
        let uid = self.shop["metadata"]["uid"].as_str().unwrap();
        for (api_version, kind) in WORKLOADS {
            let label = match api_version.split_once('/') {
                Some((group, _)) => format!("{kind}.{group}"),
                None => kind.to_owned(),
            };
            let path = format!("/api/v1/parents/{uid}/around?label={label}&namespace=default&name=part");
            let shown = answer(&path);
            assert!(
                shown.starts_with("HTTP/1.1 200") && shown.contains("\"notRead\":[]"),
                "{label}: {shown}"
            );
        }
    }

    /// A policy is changed to what is refused, and another one is deleted.
    fn change_policies(&self) {
        let broken =
            json!([{ "kind": { "kind": "Pod" }, "ready": { "cel": { "current": "self.status.(" } } }]);
        let (now, patch) = (self.cluster.server.now(), json!({ "spec": { "children": broken } }));
        let store = || self.cluster.server.lock_store();
        store().patch_object(now, OWN, "ReadinessPolicy", "", "database", &patch).unwrap();
        until("the change is refused", || {
            self.get(OWN, "ReadinessPolicy", "", "database")["status"].to_string().contains("Invalid")
        });
        self.delete(OWN, "ReadinessPolicy", "shop");
        until("nothing is said of the shop any more", || {
            condition(&self.cluster.parent("Shop", "books"), "Ready").is_null()
        });
    }

    /// What the chart runs before it is uninstalled, as the same service account.
    async fn release(&self) {
        let mut command = self.cluster.bare();
        command.args(["release", "--lease", "rollcall-system/rollcall", "--records", HOME]);
        let (code, out, err) = done(command).await;
        assert!(code == Some(0) && out.contains("deleted 1 records, 0 failed"), "{out}{err}");
    }

    async fn printed(&self, args: &[&str]) -> Vec<Value> {
        let mut command = self.cluster.bare();
        command.args(args);
        let (code, out, err) = done(command).await;
        assert_eq!(code, Some(0), "{out}{err}");
        serde_saphyr::from_multiple(&out).unwrap()
    }

    fn asked(&self) -> BTreeSet<AskedRight> {
        all_asked(&self.cluster.server)
    }
}

const RUN: [&str; 7] =
    ["--resync", "1s", "--leader-elect", "--lease-namespace", HOME, "--records-namespace", HOME];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_is_what_is_asked_for() {
    let busy = BusyCluster::start("least-rights").await;
    let texts = policies().map(|policy| policy.to_string()).join("\n---\n");
    let file = busy.cluster.text_file("all.yaml", &texts);
    for policy in policies() {
        busy.cluster.create(&policy);
    }
    let service = RunningService::start_at(&busy.cluster, "0.0.0.0:0", &RUN, &[]);
    busy.until_says("example.com/v1", "Shop", ("default", "books"), "False");
    busy.until_says("example.com/v1", "Ledger", ("gold", "main"), "True");
    busy.until_says("example.com/v1", "Ledger", ("gold", "late"), "False");
    busy.until_says(OWN, "ReadinessGroup", ("default", "web"), "False");
    busy.finish_jobs();
    busy.look_at_page(&service);
    // What is not ready is read again; of what no policy chooses any more nothing is.
    until("it asks to get shops", || {
        busy.asked().iter().any(|asked| asked.what() == "get shops.example.com")
    });
    busy.change_policies();
    // What is not ready is read again, and the inventory is written without what is gone.
    let asks = |what: &str| busy.asked().iter().any(|asked| asked.what() == what);
    for what in [
        "create events.events.k8s.io",
        "get databases.example.com",
        "get ledgers.example.com",
        "get pages.example.com",
        "get readinessgroups.rollcall.dev",
        "patch configmaps",
        "update leases.coordination.k8s.io",
    ] {
        until(&format!("it asks to {what}"), || asks(what));
    }
    drop(service);
    busy.release().await;

    let asked = busy.asked();
    let of_base = busy.printed(&["install", "--offline", "-f", &file]).await;
    let of_commands = [busy.printed(&["rbac"]).await, busy.printed(&["rbac", "-f", &file]).await].concat();
    for manifests in [of_base, of_commands] {
        let granted = granted_rights(&manifests);
        let table = RightsTable { asked: &asked, granted: &granted };
        println!("{table}");
        assert_eq!(table.refused(), [] as [&AskedRight; 0], "no rule grants these");
        assert_eq!(table.unasked(), [] as [&GrantedRight; 0], "granted, and never asked for");
    }
}
