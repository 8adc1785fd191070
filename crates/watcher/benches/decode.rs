//! Cost of decoding and assessing one pod event, compared with decoding into kube's `DynamicObject`.
//!
//! Prints ratios of one run; figures of different machines do not compare.

use std::hint::black_box;
use std::time::Duration;

use kube::api::DynamicObject;
use readiness::{Level, RuleKind, StuckLimits, assess};
use serde::de::IgnoredAny;
use tokio::time::Instant;
use watcher::wire::ChildObject;

/// A pod as the API server sends it in a watch, 7.8 kB, a third of it managedFields.
const POD: &str = include_str!("pod.json");
/// A custom resource whose verdict needs the whole generic rule.
const CUSTOM: &str = include_str!("custom.json");

/// Short enough to fit between two time slices of other processes, and repeated often enough that some do.
const TURNS: u32 = 200;
const ROUNDS: usize = 600;

fn main() {
    let limits = StuckLimits::default();
    let event = POD.trim().as_bytes();
    let judged = |bytes: &[u8], kind| {
        let child: ChildObject = serde_json::from_slice(bytes).expect("valid JSON");
        assess(kind, &child.facts, &limits)
    };
    assert_eq!(judged(event, RuleKind::Pod).verdict.level, Level::Ready);
    assert_eq!(judged(CUSTOM.as_bytes(), RuleKind::Other).verdict.level, Level::Ready);

    let pod: ChildObject = serde_json::from_slice(event).expect("valid JSON");
    let custom: ChildObject = serde_json::from_str(CUSTOM).expect("valid JSON");
    let both = time(|| judged(event, RuleKind::Pod));
    let dynamic = time(|| serde_json::from_slice::<DynamicObject>(event).expect("valid JSON"));
    let value = time(|| serde_json::from_slice::<serde_json::Value>(event).expect("valid JSON"));
    let skipped = time(|| serde_json::from_slice::<IgnoredAny>(event).expect("valid JSON"));
    print("decode and judge a pod", event.len(), both, dynamic);
    print("  serde_json::Value", event.len(), value, dynamic);
    print("  kube's DynamicObject", event.len(), dynamic, dynamic);
    print("  only find its end", event.len(), skipped, dynamic);
    let custom_both = time(|| judged(CUSTOM.as_bytes(), RuleKind::Other));
    let custom_dynamic = time(|| serde_json::from_str::<DynamicObject>(CUSTOM).expect("valid JSON"));
    print("decode and judge a custom resource", CUSTOM.len(), custom_both, custom_dynamic);
    print("  judge the pod alone", 0, time(|| assess(RuleKind::Pod, &pod.facts, &limits)), dynamic);
    print(
        "  judge the custom resource alone",
        0,
        time(|| assess(RuleKind::Other, &custom.facts, &limits)),
        dynamic,
    );
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn print(what: &str, bytes: usize, took: Duration, dynamic: Duration) {
    let micros = took.as_secs_f64() * 1e6;
    let ratio = dynamic.as_secs_f64() / took.as_secs_f64();
    println!("{what:36} {bytes:5} B {micros:7.2} µs   {ratio:6.1} x DynamicObject");
}

/// Returns the best time per turn of a few rounds: other work of the machine only makes a round longer.
fn time<T>(mut turn: impl FnMut() -> T) -> Duration {
    let round = |turn: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        for _ in 0..TURNS {
            black_box(turn());
        }
        start.elapsed() / TURNS
    };
    (0..ROUNDS).map(|_| round(&mut turn)).min().unwrap_or_default()
}
