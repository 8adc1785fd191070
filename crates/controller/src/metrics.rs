//! What Prometheus scrapes. Handles are resolved once; labels come from closed sets, from policies and from kinds.

use aggregator::{Counts, KindState};
use prometheus::{
    Encoder, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use readiness::rollup::Status;
use readiness::{Level, Time};
use watcher::Cause;

use crate::kinds::News;
use crate::policies::Plan;
use crate::snapshot::Snapshot;
use crate::writer::Settled;

/// Every metric of the service.
pub(crate) struct Metrics {
    registry: Registry,
    parents: IntGaugeVec,
    not_ready_since: GaugeVec,
    not_ready_info: IntGaugeVec,
    not_exported: IntGauge,
    transitions: IntCounterVec,
    writes: IntCounterVec,
    conflicts: IntCounterVec,
    yielding: IntGaugeVec,
    last_event: GaugeVec,
    restarts: IntCounterVec,
    stale: IntGaugeVec,
    drift: IntCounterVec,
    /// Live reads of the periodic pass.
    pub(crate) resync_reads: IntCounter,
    judged: IntCounter,
    rows: IntGauge,
    export: usize,
}

const OUTCOMES: [&str; 9] =
    ["written", "conflict", "gone", "pruned", "forbidden", "throttled", "error", "timeout", "dropped"];

impl Metrics {
    #[expect(clippy::too_many_lines, reason = "a list, one entry per metric")]
    /// Registers everything; at most `export` parents that are not ready get series of their own.
    pub(crate) fn new(export: usize) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let metrics = Metrics {
            parents: gauges(&registry, "parents", "Parents by policy and verdict.", &["policy", "verdict"])?,
            not_ready_since: times(
                &registry,
                "parent_not_ready_since_timestamp_seconds",
                "Since when a parent has not been ready, as its condition says.",
                &["policy", "namespace", "name"],
            )?,
            not_ready_info: gauges(
                &registry,
                "parent_not_ready_info",
                "1 for each parent that is not ready, with its verdict and reason.",
                &["policy", "namespace", "name", "verdict", "reason"],
            )?,
            not_exported: gauge(
                &registry,
                "parents_not_exported",
                "Parents that are not ready but have no series of their own.",
            )?,
            transitions: counters(
                &registry,
                "transitions_total",
                "Conditions written, by the status they turned to.",
                &["policy", "to"],
            )?,
            writes: counters(&registry, "writes_total", "Status writes by outcome.", &["policy", "outcome"])?,
            conflicts: counters(
                &registry,
                "write_conflicts_total",
                "Status writes whose guard failed.",
                &["policy"],
            )?,
            yielding: gauges(
                &registry,
                "parents_yielding",
                "Parents on which another writer keeps overwriting the condition.",
                &["policy"],
            )?,
            last_event: times(
                &registry,
                "watch_last_event_timestamp_seconds",
                "When the server last answered a list or watch of a kind.",
                &["kind"],
            )?,
            restarts: counters(
                &registry,
                "watch_restarts_total",
                "Lists and watches that had to be begun again.",
                &["kind", "cause"],
            )?,
            stale: gauges(
                &registry,
                "watch_stale",
                "1 while a kind can be neither watched nor listed.",
                &["kind"],
            )?,
            drift: counters(
                &registry,
                "drift_total",
                "Changes that a live read found and the watch did not bring.",
                &["kind", "found_by"],
            )?,
            resync_reads: counter(&registry, "resync_reads_total", "Live reads of the periodic pass.")?,
            judged: counter(
                &registry,
                "parents_judged_total",
                "How often the children of a parent were weighed.",
            )?,
            rows: gauge(&registry, "reflector_objects", "Objects held in memory.")?,
            registry,
            export,
        };
        gauges(&metrics.registry, "build_info", "Always 1.", &["version"])?
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        Ok(metrics)
    }

    /// Every series of a policy exists from the start.
    pub(crate) fn policy(&self, policy: &str) {
        for level in Level::ALL {
            self.parents.with_label_values(&[policy, level.word()]);
        }
        for outcome in OUTCOMES {
            self.writes.with_label_values(&[policy, outcome]);
        }
        for status in [Status::True, Status::False, Status::Unknown] {
            self.transitions.with_label_values(&[policy, status.word()]);
        }
        self.conflicts.with_label_values(&[policy]);
        self.yielding.with_label_values(&[policy]);
    }

    /// Every series of a kind exists from the start.
    pub(crate) fn kind(&self, kind: &str) {
        self.stale.with_label_values(&[kind]);
        self.drift.with_label_values(&[kind, "resync"]);
        self.drift.with_label_values(&[kind, "audit"]);
        for cause in Cause::ALL {
            self.restarts.with_label_values(&[kind, cause.label()]);
        }
    }

    /// A kind's task said something.
    pub(crate) fn news(&self, kind: &str, news: &News, now: Time) {
        match news {
            News::Alive | News::Synced => self.last_event.with_label_values(&[kind]).set(seconds(now)),
            News::Trouble(cause, _) => self.restarts.with_label_values(&[kind, cause.label()]).inc(),
            News::Starting | News::Absent | News::Stopped => {}
        }
    }

    /// Where a kind stands.
    pub(crate) fn kind_state(&self, kind: &str, state: KindState) {
        let blind = matches!(state, KindState::Stale | KindState::Forbidden);
        self.stale.with_label_values(&[kind]).set(i64::from(blind));
    }

    /// A write ended.
    pub(crate) fn settled(&self, settled: &Settled, plan: &Plan) {
        for (_, words) in settled.policies.iter().filter_map(|id| plan.policies.get(id)) {
            self.writes.with_label_values(&[&words.name, settled.label]).inc();
            if settled.label == "conflict" {
                self.conflicts.with_label_values(&[&words.name]).inc();
            }
            if let Some(to) = settled.turned_to {
                self.transitions.with_label_values(&[words.name.as_str(), to.word()]).inc();
            }
        }
    }

    /// The watch had lost something.
    pub(crate) fn drift(&self, kind: &str, found_by: &str) {
        self.drift.with_label_values(&[kind, found_by]).inc();
    }

    /// Numbers were gathered.
    pub(crate) fn gathered(&self, snapshot: &Snapshot, counts: Counts) {
        self.judged.inc_by(counts.judged);
        self.rows.set(snapshot.rows as i64);
        for (policy, numbers) in &snapshot.policies {
            for level in Level::ALL {
                let at: u64 =
                    numbers.reasons.iter().filter(|(r, _)| r.level() == level).map(|(_, n)| n).sum();
                self.parents.with_label_values(&[policy.as_str(), level.word()]).set(at as i64);
            }
            self.yielding.with_label_values(&[policy]).set(numbers.yielding as i64);
        }
        self.not_ready_since.reset();
        self.not_ready_info.reset();
        for parent in snapshot.unready.iter().take(self.export) {
            let names = [parent.policy.as_str(), &parent.namespace, &parent.name];
            let [policy, namespace, name] = names;
            let (verdict, reason) = (parent.reason.level().word(), parent.reason.word());
            self.not_ready_info.with_label_values(&[policy, namespace, name, verdict, reason]).set(1);
            if let Some(since) = parent.since {
                self.not_ready_since.with_label_values(&names).set(seconds(since));
            }
        }
        self.not_exported.set(snapshot.unready.len().saturating_sub(self.export) as i64);
    }

    /// The text that is scraped.
    pub(crate) fn text(&self) -> String {
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::error!(%error, "failed to encode metrics");
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1_000.0
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("rollcall")
}

fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntCounterVec> {
    let vec = IntCounterVec::new(opts(name, help), labels)?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
    let vec = IntGaugeVec::new(opts(name, help), labels)?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
}

fn times(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<GaugeVec> {
    let vec = GaugeVec::new(opts(name, help), labels)?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
}

fn counter(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntCounter> {
    let counter = IntCounter::with_opts(opts(name, help))?;
    registry.register(Box::new(counter.clone()))?;
    Ok(counter)
}

fn gauge(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntGauge> {
    let gauge = IntGauge::with_opts(opts(name, help))?;
    registry.register(Box::new(gauge.clone()))?;
    Ok(gauge)
}
