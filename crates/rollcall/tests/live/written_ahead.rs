//! What policies write is kept before it is written: whenever a process is killed, the next one knows what is its own.

use sandbox::{FaultAction, InjectedFault, LoggedRequest};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, OWN_NAMESPACE, condition, custom, policy};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";
const INVENTORY: &str = "/api/v1/namespaces/rollcall/configmaps/rollcall-inventory";

/// A database that is ready, a policy in the cluster, and a service that may be killed.
struct AheadCluster {
    cluster: LiveCluster,
    service: Option<RunningService>,
    /// Numbers of requests before the service began, and before the policy was edited last.
    started: usize,
    edited: usize,
}

impl AheadCluster {
    async fn start(name: &str) -> AheadCluster {
        let cluster = LiveCluster::start(name).await;
        cluster.install();
        let database = cluster.create(&custom("Database", "orders"));
        cluster.below(&database, super::cluster::pod("orders-0", None));
        cluster.create(&policy("Database", "", "Pod"));
        AheadCluster { cluster, service: None, started: 0, edited: 0 }
    }

    fn run(&mut self, more: &[&str]) {
        self.started = self.cluster.server.logged_requests().len();
        let args = [&["--records-namespace", OWN_NAMESPACE], more].concat();
        self.service = Some(RunningService::start(&self.cluster, &args, &[]));
    }

    /// The policy writes this type now; a condition that nobody knew is waited for.
    fn edit_type(&mut self, to: &str) {
        let name = policy("Database", "", "Pod")["metadata"]["name"].as_str().unwrap().to_owned();
        let spec = json!({ "spec": { "condition": { "type": to }, "settle": "10m" } });
        self.edited = self.cluster.server.logged_requests().len();
        let now = self.cluster.server.now();
        let mut store = self.cluster.server.lock_store();
        store.patch_object(now, OWN, "ReadinessPolicy", "", &name, &spec).unwrap();
    }

    fn says(&self, of: &str) -> Value {
        condition(&self.cluster.parent("Database", "orders"), of)["status"].clone()
    }

    /// Waits until the database is ready under this type, and the service knows that it has said so: what it does not know
    /// yet is not taken over by an edit.
    fn until_ready(&self, of: &str) {
        until(&format!("it is told as {of}"), || self.says(of) == "True");
        let service = self.service.as_ref().unwrap();
        until("every answer has come back", || {
            let log = self.cluster.server.logged_requests();
            let writes = log.iter().skip(self.started).filter(|request| is_write(request));
            u64::try_from(writes.count()).unwrap() == service.metric("rollcall_writes_total", "")
        });
    }

    /// Reads and writes of the inventory, and writes of the database, since the last edit in their order; each is told once.
    fn sequence(&self) -> Vec<&'static str> {
        let step = |request: &LoggedRequest| {
            let of_inventory = INVENTORY.starts_with(&request.path) && request.path.contains("/configmaps");
            match (&*request.method, is_write(request), of_inventory) {
                ("GET", _, true) => Some("inventory read"),
                (_, _, true) => Some("inventory written"),
                (_, true, _) => Some("parent written"),
                _ => None,
            }
        };
        let mut steps = Vec::new();
        for step in self.cluster.server.logged_requests().iter().skip(self.edited).filter_map(step) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }
}

/// A write of the database.
fn is_write(request: &LoggedRequest) -> bool {
    request.method == "PATCH" && request.path.ends_with("/databases/orders/status")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_parent_is_written_before_it_is_kept_what_its_policy_writes() {
    const ELECT: [&str; 3] = ["--leader-elect", "--lease-namespace", OWN_NAMESPACE];
    const WHOLE: [&str; 3] = ["inventory read", "inventory written", "parent written"];
    for (name, election) in [("written-ahead", &[][..]), ("written-ahead-elected", &ELECT)] {
        let mut world = AheadCluster::start(name).await;
        world.run(election);
        world.until_ready("Ready");
        assert_eq!(world.sequence(), WHOLE, "{name}");
        for now in ["Whole", "Sound"] {
            world.edit_type(now);
            world.until_ready(now);
            assert_eq!(world.sequence(), ["inventory written", "parent written"], "{name}: {now}");
        }
        drop(world.service.take());
        world.edit_type("Healthy");
        world.run(election);
        until("the type before is gone", || world.says("Sound").is_null());
        assert_eq!(world.says("Healthy"), "True", "{name}");
        assert_eq!(world.sequence(), WHOLE, "{name}, by the next process");
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
        let mut world = AheadCluster::start(name).await;
        world.cluster.server.faults().add(InjectedFault::new(action).on_kind("", "configmaps"));
        world.run(&[]);
        world.until_ready("Ready");
        world.edit_type("Whole");
        world.until_ready("Whole");
    }
}
