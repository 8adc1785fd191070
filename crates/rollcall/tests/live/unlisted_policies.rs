//! What the service itself rests on cannot be listed: `/readyz` says why and what mends it, and the metric of blind kinds counts it.

use kube::CustomResourceExt;
use sandbox::{FaultAction, FaultHandle, InjectedFault, RequestVerb};

use super::cluster::{LiveCluster, condition, custom, own_definition, pod, policy};
use super::service::{RunningService, until};

const REMEDY: &str = "not permitted to list and watch readinesspolicies.rollcall.dev; grant it with `rollcall rbac | kubectl apply -f -`";
const STALE: &str = "rollcall_watch_stale{kind=\"ReadinessPolicy.rollcall.dev\"}";

fn forbid_policies(cluster: &LiveCluster) -> [FaultHandle; 2] {
    [RequestVerb::List, RequestVerb::Watch].map(|verb| {
        let fault = InjectedFault::new(FaultAction::Forbid).on_kind("rollcall.dev", "readinesspolicies");
        cluster.server.faults().add(fault.on_verb(verb))
    })
}

/// A cluster with a policy over one Database, whose Pod is ready.
async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.create(&own_definition("ReadinessPolicy"));
    cluster.create(&serde_json::to_value(api::ReadinessGroup::crd()).unwrap());
    cluster.create(&policy("Database", "", "Pod"));
    let database = cluster.create(&custom("Database", "db"));
    cluster.below(&database, pod("web-0", None));
    cluster
}

fn has_series(service: &RunningService, series: &str, value: &str) -> bool {
    service.get("/metrics").lines().any(|line| line.strip_prefix(series) == Some(value))
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_that_may_not_be_listed_are_named_with_the_command_that_grants_it() {
    let cluster = cluster("unlisted-policies").await;
    let forbidden = forbid_policies(&cluster);
    let service = RunningService::start(&cluster, &[], &[]);
    until("it says why", || service.get("/readyz").contains(REMEDY));
    let said = service.get("/readyz");
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("policies: not read yet"), "{said}");
    until("the metric counts it", || has_series(&service, STALE, " 1"));
    assert!(has_series(&service, "rollcall_watch_stale{kind=\"ReadinessGroup.rollcall.dev\"}", " 0"));
    for fault in &forbidden {
        fault.lift();
    }
    until("it is ready", || service.get("/readyz").starts_with("HTTP/1.1 200"));
    assert!(!service.get("/readyz").contains("readinesspolicies"), "{}", service.get("/readyz"));
    assert!(has_series(&service, STALE, " 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_while_it_runs_is_told_and_what_was_read_stays_in_force() {
    let cluster = cluster("policies-taken").await;
    let service = RunningService::start(&cluster, &[], &[]);
    until("it is ready", || service.get("/readyz").starts_with("HTTP/1.1 200"));
    until("it is told", || condition(&cluster.parent("Database", "db"), "Ready")["status"] == "True");
    let forbidden = forbid_policies(&cluster);
    cluster.server.end_watches();
    until("it says why", || service.get("/readyz").contains(REMEDY));
    let said = service.get("/readyz");
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("what was last read stays in force"), "{said}");
    let patch = serde_json::json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    let now = cluster.server.now();
    cluster.server.lock_store().patch_status(now, "v1", "Pod", "default", "web-0", &patch).unwrap();
    until("it judges", || condition(&cluster.parent("Database", "db"), "Ready")["status"] == "False");
    for fault in &forbidden {
        fault.lift();
    }
    until("nothing ails it", || !service.get("/readyz").contains("readinesspolicies"));
}
