//! A parent of another kind, beside what is costly: it is told of each turn of its pod, and the probes are answered.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, crd, custom, pod, policy};
use super::service::{RunningService, until};

/// Turns of the pod.
const ROUNDS: u64 = 10;

/// A ledger over a pod; returns its policy.
pub(crate) fn create_ledger(cluster: &LiveCluster) -> Value {
    cluster.create(&crd("Ledger"));
    let ledger = cluster.create(&custom("Ledger", "main"));
    cluster.below(&ledger, pod("web", None));
    policy("Ledger", "", "Pod")
}

/// Status and reason of the condition `Ready` of a parent; empty before it has one.
pub(crate) fn says(cluster: &LiveCluster, kind: &str, name: &str) -> (String, String) {
    let ready = condition(&cluster.parent(kind, name), "Ready");
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// Makes work again and again, while the ledger and the probes have to go on.
pub(crate) fn goes_on_beside(cluster: &LiveCluster, service: &RunningService, mut work: impl FnMut(u64)) {
    until("the ledger is ready", || says(cluster, "Ledger", "main").0 == "True");
    for round in 0..ROUNDS {
        work(round);
        let status = if round % 2 == 0 { "False" } else { "True" };
        let conditions = json!({ "conditions": [{ "type": "Ready", "status": status }] });
        change(cluster, ("v1", "Pod"), "web", &conditions);
        for _ in 0..5 {
            assert!(service.get("/livez").starts_with("HTTP/1.1 200"), "in round {round}");
        }
        until("the ledger turns", || says(cluster, "Ledger", "main").0 == status);
    }
}

/// Changes the status of an object.
pub(crate) fn change(cluster: &LiveCluster, (api, kind): (&str, &str), name: &str, status: &Value) {
    let (now, patch) = (cluster.server.now(), json!({ "status": status }));
    cluster.server.lock_store().patch_status(now, api, kind, "default", name, &patch).unwrap();
}
