//! What no watch tells: the audit finds it, counts it, and does not fill the log with it.

use std::time::Duration;

use kube::CustomResourceExt;
use readiness::Time;
use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, pod, policy};
use super::service::{RunningService, until};

const PARENTS: usize = 100;
/// Between two lines about one kind; a log's clock is no monotonic one.
const A_MINUTE: Duration = Duration::from_secs(59);

#[tokio::test(flavor = "multi_thread")]
async fn what_the_watch_keeps_back_of_a_hundred_children_is_found_told_and_logged_once_a_minute() {
    let cluster = LiveCluster::start("drift").await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    cluster.create(&policy("Database", "", "Pod"));
    for number in 0..PARENTS {
        let parent = cluster.create(&custom("Database", &format!("db-{number}")));
        cluster.below(&parent, pod(&format!("db-{number}-0"), None));
    }
    let service = RunningService::start(&cluster, &["--audit", "2s"], &[]);
    until("all parents are told True", || cluster.count_told("True") == PARENTS);
    cluster.server.faults().add(InjectedFault::new(FaultAction::DropEvent).on_kind("", "pods"));
    for number in 0..PARENTS {
        let (now, name) = (cluster.server.now(), format!("db-{number}-0"));
        let failed = pod(&name, Some(("CrashLoopBackOff", "it fails")))["status"].take();
        let patch = json!({ "status": failed });
        cluster.server.lock_store().patch_status(now, "v1", "Pod", "default", &name, &patch).unwrap();
    }
    until("all parents are told False", || cluster.count_told("False") == PARENTS);
    // The watch has some seconds to tell of it itself.
    until("all of it is counted", || service.metric("rollcall_drift_total", "") >= PARENTS as u64);
    let lines = service.logged("drift: ");
    let times: Vec<Time> = lines.iter().map(|line| logged_at(line)).collect();
    // As many as an audit has found at once are one line; a busy machine lets it begin amid the changes, and end them later.
    assert!(!times.is_empty() && times.windows(2).all(|two| two[1] - two[0] >= A_MINUTE), "{lines:#?}");
}

fn logged_at(line: &str) -> Time {
    let line: Value = serde_json::from_str(line).unwrap();
    Time::from_rfc3339(line["timestamp"].as_str().unwrap()).unwrap()
}
