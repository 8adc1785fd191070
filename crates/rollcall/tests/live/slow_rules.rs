//! Rules that take as long as their limits allow, on very many objects: they cost nobody else anything.
//!
//! What is measured is how often such a rule is evaluated while something else is waited for, not how long that takes. The
//! service has one thread for everything but rules, so that whatever occupies it is noticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{LiveCluster, crd, custom, owned, pod, policy};
use super::service::{RunningService, until};

/// Objects that are judged by the slow rule.
const OBJECTS: u64 = 2_000;

/// Rounds in which something else has to be done.
const ROUNDS: u64 = 30;

/// Evaluations of the slow rule that a round may take. Taking in one list takes one for each object.
const FEW: u64 = OBJECTS / 2;

/// Within its limits, and near to them. They are counted in steps, so that a busy machine changes nothing.
const SLOW: &str = "lists.range(120).map(x, lists.range(120).map(y, x + y).size()).size() < 0";

/// Starts the service with these policies and one thread for all tasks.
fn start_service(cluster: &LiveCluster, policies: &[Value]) -> RunningService {
    let text = policies.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let file = cluster.text_file("slow.yaml", &text);
    let args = ["--resync", "1s", "--resync-rate", "100", "--policies", &file];
    RunningService::start(cluster, &args, &[("TOKIO_WORKER_THREADS", "1")])
}

/// Status of the condition `Ready` of a parent.
fn says(cluster: &LiveCluster, kind: &str, name: &str) -> (String, String) {
    let held = cluster.server.lock_store().get("example.com/v1", kind, "default", name).unwrap();
    let conditions = held["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|entry| entry["type"] == "Ready").unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn change(cluster: &LiveCluster, api: &str, kind: &str, name: &str, status: &Value) {
    let now = cluster.server.now();
    let patch = json!({ "status": status });
    cluster.server.lock_store().patch_status(now, api, kind, "default", name, &patch).unwrap();
}

/// A shop over very many databases that are judged by this rule, and a ledger over a pod that no rule judges.
async fn cluster_of(name: &str, rule: Value) -> (Arc<LiveCluster>, [Value; 2]) {
    let cluster = LiveCluster::start(name).await;
    cluster.create(&crd("Ledger"));
    let shop = cluster.create(&custom("Shop", "books"));
    for n in 0..OBJECTS {
        cluster.create(&owned(&shop, custom("Database", &format!("db-{n}"))));
    }
    let ledger = cluster.create(&custom("Ledger", "main"));
    cluster.below(&ledger, pod("web", None));
    let mut slow = policy("Shop", "example.com", "Database");
    slow["spec"]["children"][0]["ready"] = rule;
    (Arc::new(cluster), [slow, policy("Ledger", "", "Pod")])
}

/// Changes all databases, one after the other, for as long as it is held.
struct DatabaseChurn(Arc<AtomicBool>, Arc<AtomicU64>);

impl DatabaseChurn {
    fn begin(cluster: &Arc<LiveCluster>) -> DatabaseChurn {
        let churn = DatabaseChurn(Arc::default(), Arc::default());
        let (stop, changes, cluster) = (churn.0.clone(), churn.1.clone(), cluster.clone());
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let round = changes.fetch_add(1, Ordering::Relaxed);
                let name = format!("db-{}", round % OBJECTS);
                let status = json!({ "observedGeneration": 1, "round": round });
                change(&cluster, "example.com/v1", "Database", &name, &status);
                thread::sleep(Duration::from_millis(1));
            }
        });
        churn
    }
}

impl Drop for DatabaseChurn {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const EVALUATIONS: &str = "rollcall_rule_evaluations_total";

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_rule_on_very_many_changing_objects_delays_neither_probes_nor_other_kinds() {
    let (cluster, policies) = cluster_of("slow", json!({ "cel": { "current": SLOW } })).await;
    let service = start_service(&cluster, &policies);
    until("the ledger is ready", || says(&cluster, "Ledger", "main").0 == "True");
    until("the shop is told", || !["", "ChildrenPending"].contains(&&*says(&cluster, "Shop", "books").1));
    let churn = DatabaseChurn::begin(&cluster);
    // The watch brings objects, and so does the pass, which lists all of them again and again.
    let reads = service.metric("rollcall_resync_reads_total", "");
    until("the pass reads", || service.metric("rollcall_resync_reads_total", "") > reads + 5);
    let begun = service.metric(EVALUATIONS, "");
    for round in 0..ROUNDS {
        for _ in 0..5 {
            assert!(service.get("/livez").starts_with("HTTP/1.1 200"));
        }
        let (ready, status) = if round % 2 == 0 { ("False", "False") } else { ("True", "True") };
        let conditions = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        change(&cluster, "v1", "Pod", "web", &conditions);
        until("the ledger turns", || says(&cluster, "Ledger", "main").0 == status);
    }
    // The counter is published every other second: what it says of all rounds is exact, of a single one it is not.
    let evaluated = service.metric(EVALUATIONS, "") - begun;
    let changes = churn.1.load(Ordering::Relaxed);
    println!("{evaluated} evaluations, {changes} changes in {ROUNDS} rounds");
    assert!(evaluated > 0, "the rule was not busy");
    assert!(
        evaluated < ROUNDS * FEW,
        "{evaluated} evaluations of one rule while probes and another kind waited"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_never_ends_is_taken_out_and_everything_else_goes_on() {
    let (cluster, policies) = cluster_of("endless", json!({ "lua": "while true do end" })).await;
    let service = start_service(&cluster, &policies);
    let _churn = DatabaseChurn::begin(&cluster);
    until("the shop is Unknown", || {
        says(&cluster, "Shop", "books") == ("Unknown".into(), "ChildrenUnknown".into())
    });
    until("the ledger is ready", || says(&cluster, "Ledger", "main").0 == "True");
    until("it is said of the policy", || service.metric("rollcall_rules_suspended", "policy=\"shop\"") == 1);
    let evaluated = service.metric(EVALUATIONS, "");
    assert!((100..1_000).contains(&evaluated), "{evaluated} evaluations of a rule that overruns each time");
    for status in ["False", "True"] {
        let conditions = json!({ "conditions": [{ "type": "Ready", "status": status }] });
        change(&cluster, "v1", "Pod", "web", &conditions);
        until("the ledger turns", || says(&cluster, "Ledger", "main").0 == status);
        assert!(service.get("/livez").starts_with("HTTP/1.1 200"));
    }
}
