//! Prometheus metrics. Handles are resolved once; labels come from closed sets, from policies and from kinds.
//!
//! **Invariant:** the number of series depends on policies and kinds, and on at most `export` parents that are not
//! ready; never on the number of objects, nor on their content.

mod access;
mod definitions;
mod factory;
#[cfg(feature = "fixtures")]
pub(crate) mod hostile;
mod parent_series;
mod planned_series;
mod process;
#[cfg(test)]
mod tests;
mod units;
mod updates;

use prometheus::{
    Counter, Encoder, Gauge, Histogram, IntCounter, IntCounterVec, IntGauge, Registry, TextEncoder,
};

pub(crate) use access::{ListenerMetrics, TokenReviewMetrics};

use access::AccessMetrics;
use parent_series::ParentSeries;
use planned_series::PlannedSeries;

/// Metrics of the history task.
#[derive(Clone, Debug)]
pub(crate) struct HistoryMetrics {
    /// Transitions written to the store.
    pub(crate) written: IntCounter,
    /// Attempts to write a batch.
    pub(crate) batches: IntCounterVec,
    /// Transitions waiting to be written.
    pub(crate) waiting: IntGauge,
    /// Time of the last successful upload.
    pub(crate) last: Gauge,
}

/// All metrics of the service.
pub(crate) struct Metrics {
    registry: Registry,
    parent_series: ParentSeries,
    /// Transitions dropped by a subscriber that lagged, by subscriber.
    pub(crate) dropped: IntCounterVec,
    /// Kubernetes Events by outcome.
    pub(crate) events: IntCounterVec,
    /// Open streams of live pages.
    pub(crate) page_streams: IntGauge,
    /// Streams of live pages that were closed because they lagged.
    pub(crate) page_streams_dropped: IntCounter,
    access: AccessMetrics,
    /// Metrics of the history.
    pub(crate) history: HistoryMetrics,
    event_to_write: Histogram,
    /// Connection pools that were given up.
    pub(crate) connections_replaced: IntCounter,
    /// Live reads of the resync.
    pub(crate) resync_reads: IntCounter,
    /// 1 while outcomes of Jobs cannot be saved.
    pub(crate) records_failing: IntGauge,
    /// Outcomes of Jobs that were not remembered for lack of room.
    pub(crate) outcomes_dropped: IntCounter,
    resync_parents: IntGauge,
    judged: IntCounter,
    moved: IntCounter,
    damped_flips: IntCounter,
    turns: IntCounter,
    dirty: IntGauge,
    write_queue: IntGauge,
    debounced: IntGauge,
    rows: IntGauge,
    bytes: IntGauge,
    rule_time: Counter,
    rule_calls: IntCounter,
    leader: IntGauge,
    clock_offset: Gauge,
    /// Series of policies and kinds.
    pub(crate) planned: PlannedSeries,
}

impl Metrics {
    /// Metrics of the listener of page, API and metrics.
    pub(crate) fn page_listener(&self) -> ListenerMetrics {
        self.access.page_listener()
    }

    /// Metrics of the listener of probes.
    pub(crate) fn probe_listener(&self) -> ListenerMetrics {
        self.access.probe_listener()
    }

    /// Metrics of the reviews of tokens.
    pub(crate) fn token_reviews(&self) -> TokenReviewMetrics {
        self.access.token_reviews()
    }

    /// Encodes the metrics in the text format.
    pub(crate) fn encode_text(&self) -> String {
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::error!(%error, "failed to encode metrics");
        }
        String::from_utf8_lossy(&out).into_owned() + &process::process_text()
    }
}
