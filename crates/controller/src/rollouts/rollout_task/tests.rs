use std::collections::BTreeSet;
use std::sync::Mutex;

use inspect::rollout::PathPart;
use readiness::Time;
use tokio::time::Instant;

use super::*;
use crate::page::rollout_report::tests::report;
use crate::rollouts::RolloutSender;

/// Knows the rollouts of some parents, and when it was asked.
struct KnownRollouts {
    parts: Vec<PathPart>,
    asked: Arc<Mutex<Vec<(String, Instant)>>>,
}

impl ReadRollouts for KnownRollouts {
    async fn read_rollout(&self, ended: &EndedRollout) -> Result<RolloutReport, String> {
        self.asked.lock().unwrap().push((ended.uid.to_string(), Instant::now()));
        if *ended.uid == *"gone" {
            return Err("the parent has gone".to_owned());
        }
        let (from, to, parts) = (Time(1_000), Time(70_000), self.parts.clone());
        let policy = ended.policy.clone();
        Ok(RolloutReport { policy, from, to, parts, ..report(&ended.uid, 7, 0) })
    }
}

fn part(cause: WaitCause, from: i64, to: i64) -> PathPart {
    PathPart {
        object: "Pod orders-0".to_owned(),
        cause,
        detail: String::new(),
        from: Time(from),
        to: Time(to),
    }
}

fn ended(uid: &str) -> EndedRollout {
    EndedRollout { uid: uid.into(), policy: "databases".to_owned() }
}

fn sample(metrics: &Metrics, series: &str) -> Option<String> {
    let text = metrics.encode_text();
    text.lines().find_map(|line| line.strip_prefix(series).map(|value| value.trim().to_owned()))
}

#[tokio::test(start_paused = true)]
async fn each_cause_of_a_rollout_is_observed_once_with_all_its_time() {
    let metrics = Arc::new(Metrics::new(0).unwrap());
    let kinds = BTreeSet::new();
    metrics.planned.set_planned(BTreeMap::from([("databases".to_owned(), kinds)]), BTreeSet::new());
    let (sender, received) = RolloutSender::new(metrics.rollouts.rollouts.with_label_values(&["skipped"]));
    let parts = vec![
        part(WaitCause::Kubelet, 1_000, 3_000),
        part(WaitCause::ImagePull, 3_000, 40_000),
        part(WaitCause::Kubelet, 40_000, 70_000),
    ];
    let asked = Arc::default();
    let task = RolloutTask {
        reader: KnownRollouts { parts, asked: Arc::clone(&asked) },
        ended: received,
        metrics: metrics.clone(),
        exporter: None,
        past: Arc::default(),
        history: None,
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(task.run(stop.clone()));
    sender.send(ended("a"));
    sender.send(ended("gone"));
    sleep(READ_PAUSE * 3).await;
    stop.cancel();
    running.await.unwrap();
    for (series, value) in [
        (r#"rollcall_rollout_wait_seconds_sum{cause="kubelet",policy="databases"}"#, "32"),
        (r#"rollcall_rollout_wait_seconds_count{cause="kubelet",policy="databases"}"#, "1"),
        (r#"rollcall_rollout_wait_seconds_sum{cause="image_pull",policy="databases"}"#, "37"),
        (r#"rollcall_rollouts_total{outcome="read"}"#, "1"),
        (r#"rollcall_rollouts_total{outcome="failed"}"#, "1"),
    ] {
        assert_eq!(sample(&metrics, series).as_deref(), Some(value), "{series}");
    }
    // The series go with their policy, and a rollout that is read later does not bring them back.
    metrics.planned.set_planned(BTreeMap::new(), BTreeSet::new());
    metrics.planned.observe_rollout_wait("databases", WaitCause::Kubelet, READ_PAUSE);
    assert!(!metrics.encode_text().contains("rollout_wait_seconds_sum"));
}

#[tokio::test(start_paused = true)]
async fn rollouts_that_end_faster_than_they_are_read_are_counted_and_left_out() {
    let metrics = Arc::new(Metrics::new(0).unwrap());
    let (sender, received) = RolloutSender::new(metrics.rollouts.rollouts.with_label_values(&["skipped"]));
    let asked = Arc::<Mutex<Vec<(String, Instant)>>>::default();
    let task = RolloutTask {
        reader: KnownRollouts { parts: Vec::new(), asked: asked.clone() },
        ended: received,
        metrics: metrics.clone(),
        exporter: None,
        past: Arc::default(),
        history: None,
    };
    (0..1_000).for_each(|number| sender.send(ended(&format!("{number}"))));
    let stop = CancellationToken::new();
    let running = tokio::spawn(task.run(stop.clone()));
    sleep(READ_PAUSE * 2_000).await;
    stop.cancel();
    running.await.unwrap();
    let asked = asked.lock().unwrap();
    let read = asked.len();
    assert!(asked.windows(2).all(|two| two[1].1 - two[0].1 >= READ_PAUSE), "one every {READ_PAUSE:?}");
    let skipped = sample(&metrics, r#"rollcall_rollouts_total{outcome="skipped"}"#);
    assert_eq!(skipped, Some((1_000 - read).to_string()));
    assert!((1..=100).contains(&read), "{read} wait at most");
}
