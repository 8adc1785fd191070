//! What Prometheus scrapes. Handles are resolved once; labels come from closed sets, from policies and from kinds.
//!
//! **Invariant:** the number of series depends on policies and kinds, and on at most `export` parents that are not ready;
//! never on how many objects there are, nor on what they say.

#[cfg(feature = "fixtures")]
pub(crate) mod hostile;
mod make;
mod process;
mod shown;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::time::Duration;

use aggregator::{Counts, KindState};
use prometheus::{
    Counter, Encoder, Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Registry, TextEncoder,
};
use readiness::{Level, Time};

use crate::kinds::News;
use crate::policies::Plan;
use crate::snapshot::Snapshot;
use crate::writer::Settled;
use make::Make;
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
    not_ready_since: GaugeVec,
    not_ready_info: IntGaugeVec,
    not_exported: IntGauge,
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
    rule_time: Counter,
    rule_calls: IntCounter,
    leader: IntGauge,
    clock_offset: Gauge,
    export: usize,
    shown: Mutex<Shown>,
}

/// How an attempt to put a batch of the history away may end.
const BATCH_OUTCOMES: [&str; 4] = ["written", "refused", "failed", "timeout"];

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
/// From the settling of a small thing to an hour.
const READY: [f64; 12] = [1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0];
/// From a fast migration to a day.
const ENDED: [f64; 11] = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0];
/// From a write on a fast server to what nobody should wait for.
const WRITE: [f64; 13] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

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
            not_ready_since: make.times(
                "parent_not_ready_since_timestamp_seconds",
                "Since when a parent has not been ready, whatever it said meanwhile.",
                &["policy", "namespace", "name"],
            )?,
            not_ready_info: make.gauges(
                "parent_not_ready_info",
                "1 for each parent that is not ready, with its verdict and reason.",
                &["policy", "namespace", "name", "verdict", "reason"],
            )?,
            not_exported: make.gauge(
                "parents_not_exported",
                "Parents that are not ready but have no series of their own.",
            )?,
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
            registry,
            export,
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

    /// A kind's task said something.
    pub(crate) fn news(&self, kind: &str, news: &News, now: Time) {
        match news {
            News::Alive | News::Synced => self.last_event.with_label_values(&[kind]).set(seconds(now)),
            News::Trouble(cause, _) => self.restarts.with_label_values(&[kind, cause.label()]).inc(),
            News::Starting | News::Listing | News::Absent | News::Stopped | News::RuleChanged(_) => {}
        }
    }

    /// Where a kind stands.
    pub(crate) fn kind_state(&self, kind: &str, state: KindState) {
        let blind = matches!(state, KindState::Stale | KindState::Forbidden);
        self.stale.with_label_values(&[kind]).set(i64::from(blind));
    }

    /// A write ended; `called` is how long ago it was called for, where something did.
    pub(crate) fn settled(&self, settled: &Settled, called: Option<Duration>, plan: &Plan) {
        for (_, words) in settled.policies.iter().filter_map(|id| plan.policies.get(id)) {
            self.writes.with_label_values(&[words.name.as_str(), settled.label]).inc();
            if settled.label == "conflict" {
                self.conflicts.with_label_values(&[&words.name]).inc();
            }
            if let Some(to) = settled.turned_to {
                self.transitions.with_label_values(&[words.name.as_str(), to.word()]).inc();
            }
        }
        if let Some(called) = called.filter(|_| settled.turned_to.is_some()) {
            self.event_to_write.observe(called.as_secs_f64());
        }
    }

    /// A generation was ready for the first time, so long after it was first seen.
    pub(crate) fn first_ready(&self, policy: &str, after: Duration) {
        self.time_to_ready.with_label_values(&[policy]).observe(after.as_secs_f64());
    }

    /// Finalizers were put back so often.
    pub(crate) fn flapped(&self, policy: &str, times: u64) {
        self.flaps.with_label_values(&[policy]).inc_by(times);
    }

    /// The watch had lost something.
    pub(crate) fn drift(&self, kind: &str, found_by: &str) {
        self.drift.with_label_values(&[kind, found_by]).inc();
    }

    /// The loop begins a turn while so many objects wait.
    pub(crate) fn turn(&self, dirty: usize) {
        self.turns.inc();
        self.dirty.set(dirty as i64);
    }

    /// The server's clock is so many seconds ahead.
    pub(crate) fn clock_offset(&self, seconds: f64) {
        self.clock_offset.set(seconds);
    }

    /// This replica writes, or stands by.
    pub(crate) fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Numbers were gathered. A standby shows the same series at 0, so that a sum over all replicas counts once.
    pub(crate) fn gathered(&self, snapshot: &Snapshot, counts: Counts) {
        self.judged.inc_by(counts.judged);
        self.moved.inc_by(counts.moved);
        self.rows.set(snapshot.rows as i64);
        let (times, took) = snapshot.asked;
        self.rule_calls.inc_by(times.saturating_sub(self.rule_calls.get()));
        self.rule_time.inc_by((took.as_secs_f64() - self.rule_time.get()).max(0.0));
        self.resync_parents.set(snapshot.passed as i64);
        self.debounced.set(snapshot.debounced as i64);
        let shares = self.leader.get();
        for (policy, numbers) in &snapshot.policies {
            let policy = policy.as_str();
            for level in Level::ALL {
                let at: u64 =
                    numbers.reasons.iter().filter(|(r, _)| r.level() == level).map(|(_, n)| n).sum();
                self.parents.with_label_values(&[policy, level.word()]).set(at as i64 * shares);
                for (kind, tally) in &numbers.children {
                    let at = i64::from(tally.at(level)) * shares;
                    self.children.with_label_values(&[policy, kind, level.word()]).set(at);
                    if level == Level::Stuck {
                        self.stuck.with_label_values(&[policy, kind]).set(at);
                    }
                }
            }
            self.yielding
                .with_label_values(&[policy])
                .set(numbers.yielding.values().sum::<u64>() as i64 * shares);
            self.owned.with_label_values(&[policy]).set(numbers.owned.values().sum::<u64>() as i64 * shares);
            self.pruned.with_label_values(&[policy]).set(numbers.pruned as i64 * shares);
            self.undefaulted.with_label_values(&[policy]).set(numbers.undefaulted as i64 * shares);
            self.disagreements.with_label_values(&[policy]).set(numbers.disagreeing as i64 * shares);
        }
        self.gathered_unready(if shares == 0 { &[] } else { &snapshot.unready });
    }

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
