//! Table of all metrics: name, help, and labels.

use prometheus::Registry;

use super::access::AccessMetrics;
use super::factory::MetricFactory;
use super::parent_series::ParentSeries;
use super::planned_series::PlannedSeries;
use super::{HistoryMetrics, Metrics};

/// Outcomes of an upload of a history batch.
pub(super) const BATCH_OUTCOMES: [&str; 4] = ["written", "refused", "failed", "timeout"];

/// Buckets from a write on a fast server to an unacceptable delay.
pub(super) const WRITE_BUCKETS: [f64; 13] =
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

impl Metrics {
    #[expect(clippy::too_many_lines, reason = "a list, one entry per metric")]
    /// Registers everything; at most `export` parents that are not ready get series of their own.
    pub(crate) fn new(export: usize) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let make = MetricFactory(&registry);
        let metrics = Metrics {
            parent_series: ParentSeries::new(&make, export)?,
            dropped: make.counter_vec(
                "transitions_dropped_total",
                "Transitions dropped because Events, the history or a live page could not keep up.",
                &["by"],
            )?,
            page_streams: make.gauge("page_streams", "Live pages with an open stream of changes.")?,
            page_streams_dropped: make.counter(
                "page_streams_dropped_total",
                "Streams of live pages that were closed because they could not keep up; the pages reconnect.",
            )?,
            access: AccessMetrics::new(&make)?,
            events: make.counter_vec("events_total", "Kubernetes Events by outcome.", &["outcome"])?,
            history: HistoryMetrics {
                written: make.counter("history_transitions_written_total", "Transitions written to the object store.")?,
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
            },
            event_to_write: make.histogram(
                "event_to_write_seconds",
                "Time from the first event that changed a condition to the accepted write, in seconds, \
                 debounce included; changes caused by time alone are excluded.",
                &WRITE_BUCKETS,
            )?,
            connections_replaced: make.counter(
                "connection_pool_replacements_total",
                "Connection pools that were given up because they did not answer while a new connection did.",
            )?,
            resync_reads: make.counter("resync_reads_total", "Live reads of the periodic resync.")?,
            records_failing: make
                .gauge("records_failing", "1 while outcomes of Jobs cannot be saved in ReadinessRecords.")?,
            outcomes_dropped: make.counter(
                "outcomes_dropped_total",
                "Outcomes of Jobs that are not remembered because their parent has too many.",
            )?,
            resync_parents: make.gauge("resync_parents", "Parents in the periodic resync.")?,
            judged: make.counter(
                "parents_judged_total",
                "Readiness evaluations of parents.",
            )?,
            moved: make.counter("answers_moved_total", "Evaluations that changed a parent's answer.")?,
            damped_flips: make.counter(
                "damped_flips_total",
                "Times that children stopped being ready and became so again while their parent's condition stayed True.",
            )?,
            turns: make.counter("loop_turns_total", "Turns of the event loop.")?,
            dirty: make.gauge("dirty_objects", "Changed objects waiting to be observed by the engine.")?,
            write_queue: make.gauge(
                "write_queue_parents",
                "Parents waiting for their status to be written.",
            )?,
            debounced: make.gauge("debounced_parents", "Parents whose debounce is running.")?,
            leader: make.gauge("leader", "1 while this replica writes, 0 while it is a standby.")?,
            clock_offset: make.float_gauge(
                "clock_offset_seconds",
                "Offset of the API server's clock from this machine's, in seconds; 0 while they agree to within two seconds.",
            )?,
            rule_time: make.float_counter(
                "rule_seconds_total",
                "Time spent in rules of policies (CEL, Lua, profiles), in seconds; native rules are not included.",
            )?,
            rule_calls: make.counter("rule_evaluations_total", "Evaluations of rules of policies.")?,
            rows: make.gauge("reflector_objects", "Objects held in the reflector.")?,
            bytes: make.gauge(
                "reflector_bytes",
                "Approximate memory held by objects in the reflector, in bytes.",
            )?,
            planned: PlannedSeries::new(&make)?,
            registry,
        };
        MetricFactory(&metrics.registry)
            .gauge_vec("build_info", "Always 1.", &["version"])?
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        metrics.access.init_series();
        for outcome in BATCH_OUTCOMES {
            metrics.history.batches.with_label_values(&[outcome]);
        }
        Ok(metrics)
    }
}
