//! Where ReadinessGroups are not to be read there are none, and everything else is as it is without them.

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, own_definition, pod, policy};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";

/// A cluster with a policy over one Database, whose Pod is ready.
async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.create(&own_definition("ReadinessPolicy"));
    cluster.create(&policy("Database", "", "Pod"));
    let database = cluster.create(&custom("Database", "db"));
    cluster.below(&database, pod("web-0", None));
    cluster
}

/// Waits until the parent follows its Pod, both ways.
fn until_followed(cluster: &LiveCluster) {
    for status in ["True", "False", "True"] {
        let patch = json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
        let now = cluster.server.now();
        cluster.server.lock_store().patch_status(now, "v1", "Pod", "default", "web-0", &patch).unwrap();
        until(&format!("the Database says {status}"), || {
            condition(&cluster.parent("Database", "db"), "Ready")["status"] == status
        });
    }
}

fn group(cluster: &LiveCluster) -> Value {
    let group = cluster.server.lock_store().get(OWN, "ReadinessGroup", "default", "shop");
    group.map(|group| (*group).clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_definition_of_groups_there_are_none_and_policies_are_followed() {
    let cluster = cluster("no-groups").await;
    let service = RunningService::start(&cluster, &[], &[]);
    until_followed(&cluster);
    until("it is ready", || service.get("/readyz").starts_with("HTTP/1.1 200"));
    let metrics = service.get("/metrics");
    let of_groups = |line: &&str| line.starts_with("rollcall_parents{") && line.contains("ReadinessGroup");
    assert_eq!(metrics.lines().find(of_groups), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_groups_may_not_be_listed_there_are_none_until_they_may() {
    let cluster = cluster("unlisted-groups").await;
    cluster.create(&serde_json::to_value(api::ReadinessGroup::crd()).unwrap());
    cluster.create(&json!({
        "apiVersion": OWN, "kind": "ReadinessGroup", "metadata": { "name": "shop" },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" } }], "settle": "0s" },
    }));
    let forbid = |verb| {
        InjectedFault::new(FaultAction::Forbid).on_kind("rollcall.dev", "readinessgroups").on_verb(verb)
    };
    let forbidden =
        [RequestVerb::List, RequestVerb::Watch].map(|verb| cluster.server.faults().add(forbid(verb)));
    let before = group(&cluster);
    let service = RunningService::start(&cluster, &[], &[]);
    until_followed(&cluster);
    until("it is ready", || service.get("/readyz").starts_with("HTTP/1.1 200"));
    assert!(forbidden[0].fired_count() > 0, "they were not asked for");
    assert_eq!(group(&cluster), before);
    assert!(!service.logged("not permitted to list and watch readinessgroups").is_empty());
    for fault in &forbidden {
        fault.lift();
    }
    until("the group is told", || condition(&group(&cluster), "Ready")["reason"] == "AllChildrenReady");
}
