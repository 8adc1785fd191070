//! What Prometheus scrapes. Handles are resolved once; labels come from closed sets, from policies and from kinds.
//!
//! **Invariant:** the number of series depends on policies and kinds, and on at most `export` parents that are not ready;
//! never on how many objects there are, nor on what they say.

#[cfg(feature = "fixtures")]
pub(crate) mod hostile;
mod make;
mod named;
mod process;
mod shown;
mod table;
#[cfg(test)]
mod tests;
mod told;

use std::sync::Mutex;

use prometheus::{
    Counter, Encoder, Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Registry, TextEncoder,
};
use readiness::Time;

use named::Named;
use shown::Shown;

/// What the task that keeps the history counts.
#[derive(Clone, Debug)]
pub(crate) struct Meters {
    /// Transitions that are in the store.
    pub(crate) written: IntCounter,
    /// Attempts to write a batch.
    pub(crate) batches: IntCounterVec,
    /// Transitions that wait.
    pub(crate) waiting: IntGauge,
    /// When a batch last arrived.
    pub(crate) last: Gauge,
}

/// Every metric of the service.
pub(crate) struct Metrics {
    registry: Registry,
    parents: IntGaugeVec,
    children: IntGaugeVec,
    stuck: IntGaugeVec,
    named: Named,
    transitions: IntCounterVec,
    /// Transitions that one of those who are told of them could not keep, by whom.
    pub(crate) dropped: IntCounterVec,
    /// What became of Kubernetes Events.
    pub(crate) events: IntCounterVec,
    /// Live pages that listen.
    pub(crate) page_streams: IntGauge,
    /// Live pages that were let go because they fell behind.
    pub(crate) page_streams_dropped: IntCounter,
    /// What becomes of the history.
    pub(crate) history: Meters,
    time_to_ready: HistogramVec,
    child_duration: HistogramVec,
    event_to_write: Histogram,
    writes: IntCounterVec,
    conflicts: IntCounterVec,
    flaps: IntCounterVec,
    yielding: IntGaugeVec,
    owned: IntGaugeVec,
    pruned: IntGaugeVec,
    undefaulted: IntGaugeVec,
    disagreements: IntGaugeVec,
    last_event: GaugeVec,
    restarts: IntCounterVec,
    stale: IntGaugeVec,
    drift: IntCounterVec,
    /// Live reads of the periodic pass.
    pub(crate) resync_reads: IntCounter,
    /// Outcomes of Jobs that there was no room to remember.
    pub(crate) outcomes_dropped: IntCounter,
    resync_parents: IntGauge,
    judged: IntCounter,
    moved: IntCounter,
    turns: IntCounter,
    dirty: IntGauge,
    debounced: IntGauge,
    rows: IntGauge,
    bytes: IntGauge,
    rule_time: Counter,
    rule_calls: IntCounter,
    leader: IntGauge,
    clock_offset: Gauge,
    shown: Mutex<Shown>,
}

/// How a write may end.
const OUTCOMES: [&str; 10] = [
    "written",
    "conflict",
    "gone",
    "pruned",
    "forbidden",
    "throttled",
    "error",
    "timeout",
    "dropped",
    "standby",
];

impl Metrics {
    /// The text that is scraped.
    pub(crate) fn text(&self) -> String {
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::error!(%error, "failed to encode metrics");
        }
        String::from_utf8_lossy(&out).into_owned() + &process::text()
    }
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1_000.0
}
