//! What policies write is kept before it is written: whenever a process is killed, the next one knows what is its own.

use sandbox::{FaultAction, InjectedFault, LoggedRequest};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, OWN_NAMESPACE, condition, custom, policy};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";
const INVENTORY: &str = "/api/v1/namespaces/rollcall/configmaps/rollcall-inventory";

/// A database that is ready, of an operator that says nothing of generations, and a policy in the cluster.
async fn start_cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.install();
    let database = cluster.create(&custom("Database", "orders"));
    cluster.below(&database, super::cluster::pod("orders-0", None));
    cluster.create(&policy("Database", "", "Pod"));
    cluster
}

/// The policy writes this type now; a condition that nobody knew is waited for.
fn edit_type(cluster: &LiveCluster, to: &str) {
    let name = policy("Database", "", "Pod")["metadata"]["name"].as_str().unwrap().to_owned();
    let spec = json!({ "spec": { "condition": { "type": to }, "settle": "10m" } });
    let now = cluster.server.now();
    cluster.server.lock_store().patch_object(now, OWN, "ReadinessPolicy", "", &name, &spec).unwrap();
    cluster.server.forget_requests();
}

fn run(cluster: &LiveCluster, more: &[&str]) -> RunningService {
    let args = [&["--records-namespace", OWN_NAMESPACE], more].concat();
    RunningService::start(cluster, &args, &[])
}

fn says(cluster: &LiveCluster, of: &str) -> Value {
    condition(&cluster.parent("Database", "orders"), of)["status"].clone()
}

/// Reads and writes of the inventory, and writes of the database, in their order; each is told once.
fn sequence(cluster: &LiveCluster) -> Vec<&'static str> {
    let step = |request: &LoggedRequest| {
        let of_database = request.path.ends_with("/databases/orders/status");
        let of_inventory = INVENTORY.starts_with(&request.path) && request.path.contains("/configmaps");
        match (&*request.method, of_database, of_inventory) {
            ("GET", _, true) => Some("inventory read"),
            (_, _, true) => Some("inventory written"),
            ("PATCH", true, _) => Some("parent written"),
            _ => None,
        }
    };
    let mut steps = Vec::new();
    for step in cluster.server.logged_requests().iter().filter_map(step) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

#[tokio::test(flavor = "multi_thread")]
async fn no_parent_is_written_before_it_is_kept_what_its_policy_writes() {
    const ELECT: [&str; 3] = ["--leader-elect", "--lease-namespace", OWN_NAMESPACE];
    for (name, election) in [("written-ahead", &[][..]), ("written-ahead-elected", &ELECT)] {
        let cluster = start_cluster(name).await;
        let first = run(&cluster, election);
        until("it is told", || says(&cluster, "Ready") == "True");
        assert_eq!(sequence(&cluster), ["inventory read", "inventory written", "parent written"], "{name}");
        for (before, now) in [("Ready", "Whole"), ("Whole", "Sound")] {
            edit_type(&cluster, now);
            until("it is told under the new type", || says(&cluster, now) == "True");
            assert_eq!(sequence(&cluster), ["inventory written", "parent written"], "{name} from {before}");
        }
        drop(first);
        edit_type(&cluster, "Healthy");
        let _second = run(&cluster, election);
        until("the type before is gone", || says(&cluster, "Sound").is_null());
        assert_eq!(says(&cluster, "Healthy"), "True", "{name}");
        let expected = ["inventory read", "inventory written", "parent written"];
        assert_eq!(sequence(&cluster), expected, "{name}, by the next process");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_an_inventory_that_cannot_be_read_or_written() {
    let failures = [
        ("inventory-forbidden", FaultAction::Forbid),
        ("inventory-fails", FaultAction::Answer(500, None)),
        ("inventory-drops", FaultAction::Drop),
        ("inventory-stalls", FaultAction::Stall),
    ];
    for (name, action) in failures {
        let cluster = start_cluster(name).await;
        cluster.server.faults().add(InjectedFault::new(action).on_kind("", "configmaps"));
        let _service = run(&cluster, &[]);
        until("it is told", || says(&cluster, "Ready") == "True");
        edit_type(&cluster, "Whole");
        until("an edit counts", || says(&cluster, "Whole") == "True");
    }
}
