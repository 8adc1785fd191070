//! Metrics of the history.

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Result};

use super::factory::MetricFactory;

/// Outcomes of an upload of a history batch.
pub(super) const BATCH_OUTCOMES: [&str; 4] = ["written", "refused", "failed", "timeout"];

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

impl HistoryMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<Self> {
        let metrics = HistoryMetrics {
            written: make
                .counter("history_transitions_written_total", "Transitions written to the object store.")?,
            batches: make.counter_vec(
                "history_batches_total",
                "Attempts to write a batch of transitions to the object store, by outcome.",
                &["outcome"],
            )?,
            waiting: make.gauge(
                "history_waiting_transitions",
                "Transitions waiting to be written to the object store.",
            )?,
            last: make.float_gauge(
                "history_last_written_timestamp_seconds",
                "Time of the last batch written to the object store, in seconds since the Unix epoch; 0 before the first one.",
            )?,
        };
        for outcome in BATCH_OUTCOMES {
            metrics.batches.with_label_values(&[outcome]);
        }
        Ok(metrics)
    }
}
