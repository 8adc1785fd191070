//! Memory comes back: what a start and edits of a rule take for a while is given back to the system.
//!
//! `cargo run --profile dist -p bench -- edits` measures the same at full size.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kube::CustomResourceExt;
use serde_json::json;

use super::cluster::{LiveCluster, custom, owned, pod, policy};
use super::service::{RunningService, until};

/// Parents with two children each.
const PARENTS: u64 = 2_000;
const EDITS: u64 = 8;
/// Memory in kB that the allocator may keep for what its threads allocate next: 1 to 7 MB were seen, the same at any
/// size. The plain ratios hold at full size, where this is a twelfth of the rest (the benchmark prints them). What this
/// size must not hide is memory that grows with the parents: a queue of rendered patches took 27 kB for each of them.
const ALLOCATOR_SLACK: u64 = 8 << 10;
/// Interval at which the memory is looked at. What comes and goes within it was never held.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Memory of a process in kB, without the pages of the binary, which it shares with whoever runs it too.
fn anonymous_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Waits until the memory of a process stays within a hundredth for a second, and returns it.
pub(crate) fn settled_memory(process: u32) -> u64 {
    let mut held = (anonymous_memory(process), 0);
    until("the memory stays as it is", || {
        let memory = anonymous_memory(process);
        let is_same = memory.abs_diff(held.0) * 100 <= held.0;
        held = if is_same { (held.0, held.1 + 1) } else { (memory, 0) };
        held.1 == 100
    });
    held.0
}

/// Looks at the memory of a process, for its peak.
pub(crate) struct PeakSampler {
    stop: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl PeakSampler {
    pub(crate) fn begin(process: u32) -> PeakSampler {
        let (stop, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, highest) = (stop.clone(), peak.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                highest.fetch_max(anonymous_memory(process), Ordering::Relaxed);
                thread::sleep(SAMPLE_INTERVAL);
            }
        });
        PeakSampler { stop, peak, thread: Some(thread) }
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Drop for PeakSampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// The environment that the image sets.
fn image_environment() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("../../../../deploy/Dockerfile").lines();
    let set = lines.filter_map(|line| line.strip_prefix("ENV ")).flat_map(str::split_whitespace);
    set.map(|variable| variable.split_once('=').unwrap()).collect()
}

/// Memory of a process in kB that it holds in huge pages.
fn huge_page_memory(process: u32) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = maps.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_allocator_of_the_image_gives_memory_back_at_once_and_takes_no_huge_pages() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.arg("--version").envs(image_environment()).env("MIMALLOC_VERBOSE", "1");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    for option in ["'purge_delay': 0 ", "'allow_thp': 0 "] {
        assert!(printed.contains(option), "{option}: {printed}");
    }
}

/// Gives the policy another rule that says the same.
fn edit_rule(cluster: &LiveCluster, number: u64) {
    let current = format!("self.metadata.name != 'no-{number}' && self.status.phase == 'Running'");
    let mut edited = policy("Database", "", "Pod");
    edited["spec"]["children"][0]["ready"] = json!({ "cel": { "current": current } });
    let (now, patch) = (cluster.server.now(), json!({ "spec": edited["spec"] }));
    let mut store = cluster.server.lock_store();
    store.patch_object(now, "rollcall.dev/v1alpha1", "ReadinessPolicy", "", "database", &patch).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_a_start_and_edits_of_a_rule_take_comes_back() {
    let cluster = LiveCluster::start("memory").await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    cluster.create(&policy("Database", "", "Pod"));
    for number in 0..PARENTS {
        let parent = cluster.create(&custom("Database", &format!("db-{number}")));
        for child in 0..2 {
            cluster.create(&owned(&parent, pod(&format!("db-{number}-{child}"), None)));
        }
    }
    let service = RunningService::start(&cluster, &[], &image_environment());
    let memory = PeakSampler::begin(service.process());
    let parents = usize::try_from(PARENTS).unwrap();
    until("all parents are told True", || cluster.count_told("True") == parents);
    let evaluations = || service.metric("rollcall_rule_evaluations_total", "");
    let rest = settled_memory(service.process());
    for number in 1..=EDITS {
        let before = evaluations();
        edit_rule(&cluster, number);
        until("every child is judged by the new rule", || evaluations() - before >= 2 * PARENTS);
    }
    assert_eq!(cluster.count_told("True"), parents);
    println!("rest {rest} kB, peak {} kB, then {} kB", memory.peak(), anonymous_memory(service.process()));
    let (highest, lasting) = (rest * 15 / 10 + ALLOCATOR_SLACK, rest * 11 / 10 + ALLOCATOR_SLACK);
    assert!(memory.peak() <= highest, "{} kB at its peak, {rest} at rest", memory.peak());
    assert_eq!(huge_page_memory(service.process()), 0);
    until("it is given back", || anonymous_memory(service.process()) <= lasting);
}
