//! The clock of the API server is set while Rollcall runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use kube::CustomResourceExt;
use sandbox::SandboxOptions;
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, pod, policy};
use super::service::{RunningService, until};

const HOUR: i64 = 3_600_000;

/// A cluster whose server's clock is ahead of this machine's by so many milliseconds.
async fn cluster_ahead(offset: &Arc<AtomicI64>) -> LiveCluster {
    let offset = offset.clone();
    let clock = move || own_time() + offset.load(Ordering::Relaxed);
    let options = SandboxOptions { clock: Some(Arc::new(clock)), ..SandboxOptions::default() };
    let cluster = LiveCluster::start_with("server-clock", options).await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    let mut policy = policy("Database", "", "Pod");
    policy["spec"]["settle"] = json!("1s");
    cluster.create(&policy);
    cluster
}

/// Milliseconds since 1970 by the clock that Rollcall has, too.
#[expect(clippy::disallowed_methods, reason = "another process reads the same clock")]
fn own_time() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

fn create(cluster: &LiveCluster, name: &str, waits: Option<(&str, &str)>) {
    let database = cluster.create(&custom("Database", name));
    cluster.below(&database, pod(&format!("{name}-0"), waits));
}

fn is_told(cluster: &LiveCluster, name: &str, status: &str) -> bool {
    condition(&cluster.parent("Database", name), "Ready")["status"] == status
}

fn both(cluster: &LiveCluster) -> [Value; 2] {
    ["well", "late"].map(|name| cluster.parent("Database", name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_of_the_server_that_is_set_turns_nobody_and_delays_nobody() {
    let offset = Arc::new(AtomicI64::new(0));
    let cluster = cluster_ahead(&offset).await;
    create(&cluster, "well", None);
    create(&cluster, "late", Some(("ContainerCreating", "")));
    let service = RunningService::start(&cluster, &[], &[]);
    until("the one is told True", || is_told(&cluster, "well", "True"));
    until("the other is told False", || is_told(&cluster, "late", "False"));
    let before = both(&cluster);
    for (number, hours) in [1, -1, 0].into_iter().enumerate() {
        offset.store(hours * HOUR, Ordering::Relaxed);
        // Made by the new clock, and judged while Rollcall's own is still on its way there.
        let name = format!("new-{number}");
        create(&cluster, &name, None);
        until(&format!("{name} is told True"), || is_told(&cluster, &name, "True"));
        let expected = hours * HOUR / 1_000;
        until(&format!("{expected} s are seen"), || {
            let text = service.get("/metrics");
            let line = text.lines().find(|line| line.starts_with("rollcall_clock_offset_seconds"));
            let seen: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
            (seen - f64::from(i32::try_from(expected).unwrap())).abs() < 5.0
        });
        assert_eq!(both(&cluster), before, "{hours} h");
    }
}
