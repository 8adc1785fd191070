//! Metrics of rollouts that ended.

use prometheus::{IntCounterVec, Result};

use super::factory::MetricFactory;

/// Outcomes of a rollout that ended.
pub(super) const ROLLOUT_OUTCOMES: [&str; 3] = ["read", "failed", "skipped"];
/// Outcomes of an export of a trace.
pub(super) const TRACE_OUTCOMES: [&str; 2] = ["exported", "failed"];

/// Metrics of the task that reads rollouts.
#[derive(Clone, Debug)]
pub(crate) struct RolloutMetrics {
    /// Rollouts that ended, by what became of them.
    pub(crate) rollouts: IntCounterVec,
    /// Traces, by outcome.
    pub(crate) traces: IntCounterVec,
}

impl RolloutMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<Self> {
        let metrics = RolloutMetrics {
            rollouts: make.counter_vec(
                "rollouts_total",
                "Rollouts that ended, by whether what they waited for was read; counted with --rollout-causes or --otlp-endpoint.",
                &["outcome"],
            )?,
            traces: make.counter_vec(
                "rollout_traces_total",
                "Traces of rollouts, by outcome of their export.",
                &["outcome"],
            )?,
        };
        for outcome in ROLLOUT_OUTCOMES {
            metrics.rollouts.with_label_values(&[outcome]);
        }
        for outcome in TRACE_OUTCOMES {
            metrics.traces.with_label_values(&[outcome]);
        }
        Ok(metrics)
    }
}
