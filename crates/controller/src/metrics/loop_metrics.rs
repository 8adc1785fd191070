//! Metrics of the event loop, and of what it holds.

use std::time::Duration;

use aggregator::EvaluationCounts;
use prometheus::{Counter, Histogram, IntCounter, IntGauge, Result};

use super::factory::MetricFactory;
use super::units::gauge_value;
use crate::snapshot::StatsSnapshot;

/// Buckets from a write on a fast server to an unacceptable delay.
pub(super) const WRITE_BUCKETS: [f64; 13] =
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Metrics of the event loop.
pub(super) struct LoopMetrics {
    event_to_write: Histogram,
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
    rules_waiting: IntGauge,
}

impl LoopMetrics {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<Self> {
        Ok(LoopMetrics {
            event_to_write: make.histogram(
                "event_to_write_seconds",
                "Time from the first event that changed a condition to the accepted write, in seconds, \
                 debounce included; changes caused by time alone are excluded.",
                &WRITE_BUCKETS,
            )?,
            resync_parents: make.gauge("resync_parents", "Parents in the periodic resync.")?,
            judged: make.counter("parents_judged_total", "Readiness evaluations of parents.")?,
            moved: make.counter("answers_moved_total", "Evaluations that changed a parent's answer.")?,
            damped_flips: make.counter(
                "damped_flips_total",
                "Times that children stopped being ready and became so again while their parent's condition stayed True.",
            )?,
            turns: make.counter("loop_turns_total", "Turns of the event loop.")?,
            dirty: make.gauge("dirty_objects", "Changed objects waiting to be observed by the engine.")?,
            write_queue: make.gauge("write_queue_parents", "Parents waiting for their status to be written.")?,
            debounced: make.gauge("debounced_parents", "Parents whose debounce is running.")?,
            rule_time: make.float_counter(
                "rule_seconds_total",
                "Time spent in rules of policies (CEL, Lua, profiles), in seconds; native rules are not included.",
            )?,
            rule_calls: make.counter("rule_evaluations_total", "Evaluations of rules of policies.")?,
            rules_waiting: make.gauge(
                "rules_waiting_objects",
                "Objects whose newest version waits for a rule of a policy.",
            )?,
            rows: make.gauge("reflector_objects", "Objects held in the reflector.")?,
            bytes: make.gauge(
                "reflector_bytes",
                "Approximate memory held by objects in the reflector, in bytes.",
            )?,
        })
    }

    /// Records the start of a turn, with the number of objects waiting.
    pub(super) fn begin_turn(&self, dirty: usize) {
        self.turns.inc();
        self.dirty.set(gauge_value(dirty));
    }

    /// Sets the number of parents waiting to be written.
    pub(super) fn set_write_queue(&self, waiting: usize) {
        self.write_queue.set(gauge_value(waiting));
    }

    /// Records the time from an event to the accepted write of a condition that it changed.
    pub(super) fn observe_written_event(&self, called: Duration) {
        self.event_to_write.observe(called.as_secs_f64());
    }

    pub(super) fn record_snapshot(&self, snapshot: &StatsSnapshot, counts: EvaluationCounts) {
        self.judged.inc_by(counts.evaluations);
        self.moved.inc_by(counts.changed_answers);
        self.damped_flips.inc_by(counts.saved_flips);
        self.rows.set(gauge_value(snapshot.rows));
        self.bytes.set(gauge_value(snapshot.bytes));
        let (times, took) = snapshot.user_rule_usage;
        self.rule_calls.inc_by(times.saturating_sub(self.rule_calls.get()));
        self.rule_time.inc_by((took.as_secs_f64() - self.rule_time.get()).max(0.0));
        self.rules_waiting.set(gauge_value(snapshot.rules_waiting));
        self.resync_parents.set(gauge_value(snapshot.resynced));
        self.debounced.set(gauge_value(snapshot.debounced));
    }
}
