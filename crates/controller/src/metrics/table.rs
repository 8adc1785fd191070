//! All metrics there are: what each is called, what it tells, and by which labels.

use std::sync::Mutex;

use prometheus::Registry;

use super::make::Make;
use super::named::Named;
use super::{Meters, Metrics};

/// How an attempt to put a batch of the history away may end.
pub(super) const BATCH_OUTCOMES: [&str; 4] = ["written", "refused", "failed", "timeout"];

/// From the settling of a small thing to an hour.
pub(super) const READY: [f64; 12] =
    [1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0];
/// From a fast migration to a day.
pub(super) const ENDED: [f64; 11] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0];
/// From a write on a fast server to what nobody should wait for.
pub(super) const WRITE: [f64; 13] =
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

impl Metrics {
    #[expect(clippy::too_many_lines, reason = "a list, one entry per metric")]
    /// Registers everything; at most `export` parents that are not ready get series of their own.
    pub(crate) fn new(export: usize) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let make = Make(&registry);
        let metrics = Metrics {
            parents: make.gauges("parents", "Parents by policy and verdict.", &["policy", "verdict"])?,
            children: make.gauges(
                "children",
                "Children by policy, kind and verdict; one that counts for two parents counts twice.",
                &["policy", "kind", "verdict"],
            )?,
            stuck: make.gauges(
                "stuck_children",
                "Children that are pending or terminating beyond their limit.",
                &["policy", "kind"],
            )?,
            named: Named::new(&make, export)?,
            transitions: make.counters(
                "transitions_total",
                "Conditions written, by the status they turned to.",
                &["policy", "to"],
            )?,
            dropped: make.counters(
                "transitions_dropped_total",
                "Transitions that Events, the history or a live page did not get, because they came faster than these could follow.",
                &["by"],
            )?,
            page_streams: make.gauge("page_streams", "Live pages that listen to what moves.")?,
            page_streams_dropped: make.counter(
                "page_streams_dropped_total",
                "Live pages that were let go because they fell behind; they come back by themselves.",
            )?,
            events: make.counters("events_total", "Kubernetes Events by outcome.", &["outcome"])?,
            history: Meters {
                written: make.counter("history_transitions_written_total", "Transitions that are in the object store.")?,
                batches: make.counters(
                    "history_batches_total",
                    "Attempts to put a batch of transitions into the object store, by outcome.",
                    &["outcome"],
                )?,
                waiting: make.gauge(
                    "history_waiting_transitions",
                    "Transitions that wait to be put into the object store.",
                )?,
                last: make.time(
                    "history_last_written_timestamp_seconds",
                    "When a batch of transitions last arrived in the object store; 0 before.",
                )?,
            },
            time_to_ready: make.histograms(
                "time_to_ready_seconds",
                "From the first sight of a generation of a parent to its first Ready=True.",
                &["policy"],
                &READY,
            )?,
            child_duration: make.histograms(
                "child_duration_seconds",
                "From start to end of children that completed: Jobs, and kinds that note both moments as Jobs do.",
                &["policy", "kind"],
                &ENDED,
            )?,
            event_to_write: make.histogram(
                "event_to_write_seconds",
                "From the first event that turned a condition to the accepted write, debounce included; not where time alone turned it.",
                &WRITE,
            )?,
            writes: make.counters("writes_total", "Status writes by outcome.", &["policy", "outcome"])?,
            conflicts: make.counters(
                "write_conflicts_total",
                "Status writes whose guard failed.",
                &["policy"],
            )?,
            flaps: make.counters(
                "finalizer_flaps_total",
                "Finalizers of parents and children that were taken off and put back.",
                &["policy"],
            )?,
            yielding: make.gauges(
                "parents_yielding",
                "Parents on which another writer keeps overwriting the condition.",
                &["policy"],
            )?,
            owned: make.gauges(
                "parents_owned",
                "Parents on which the condition belongs to another writer, so that nothing is written.",
                &["policy"],
            )?,
            pruned: make.gauges(
                "parents_pruned",
                "Parents whose schema drops the condition.",
                &["policy"],
            )?,
            undefaulted: make.gauges(
                "parents_without_default",
                "Parents without status.observedGeneration: their CRD lacks the default of `rollcall crd-defaults`, and readers that go by kstatus may be early.",
                &["policy"],
            )?,
            disagreements: make.gauges(
                "shadow_disagreements",
                "Parents of a policy in shadow whose own condition says True where the policy does not, or the other way round.",
                &["policy"],
            )?,
            last_event: make.times(
                "watch_last_event_timestamp_seconds",
                "When the server last answered a list or watch of a kind.",
                &["kind"],
            )?,
            restarts: make.counters(
                "watch_restarts_total",
                "Lists and watches that had to be begun again.",
                &["kind", "cause"],
            )?,
            stale: make.gauges(
                "watch_stale",
                "1 while a kind can be neither watched nor listed.",
                &["kind"],
            )?,
            drift: make.counters(
                "drift_total",
                "Changes that a live read found and the watch did not bring.",
                &["kind", "found_by"],
            )?,
            resync_reads: make.counter("resync_reads_total", "Live reads of the periodic pass.")?,
            outcomes_dropped: make.counter(
                "outcomes_dropped_total",
                "Outcomes of Jobs that are not remembered, because there are too many of one parent.",
            )?,
            resync_parents: make.gauge("resync_parents", "Parents that the periodic pass looks after.")?,
            judged: make.counter(
                "parents_judged_total",
                "How often the children of a parent were weighed.",
            )?,
            moved: make.counter("answers_moved_total", "How often that weighing had another result.")?,
            turns: make.counter("loop_turns_total", "Turns of the loop that decides.")?,
            dirty: make.gauge("dirty_objects", "Objects that moved and wait to be taken in.")?,
            debounced: make.gauge("debounced_parents", "Parents that wait for quiet before they are weighed.")?,
            leader: make.gauge("leader", "1 while this replica writes, 0 while it stands by.")?,
            clock_offset: make.time(
                "clock_offset_seconds",
                "The API server's clock less this machine's; 0 while they agree to within two seconds.",
            )?,
            rule_time: make.seconds(
                "rule_seconds_total",
                "Time that rules of policies took (CEL, Lua, a peer's); the native rules are not in it.",
            )?,
            rule_calls: make.counter("rule_evaluations_total", "How often rules of policies were asked.")?,
            rows: make.gauge("reflector_objects", "Objects held in memory.")?,
            bytes: make.gauge(
                "reflector_bytes",
                "Memory that these take, about: what is in their rows and hangs on them.",
            )?,
            registry,
            shown: Mutex::default(),
        };
        Make(&metrics.registry)
            .gauges("build_info", "Always 1.", &["version"])?
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        for outcome in BATCH_OUTCOMES {
            metrics.history.batches.with_label_values(&[outcome]);
        }
        Ok(metrics)
    }
}
