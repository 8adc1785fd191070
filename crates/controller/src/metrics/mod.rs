//! Prometheus metrics. Handles are resolved once; labels come from closed sets, from policies and from kinds.
//!
//! **Invariant:** the number of series depends on policies and kinds, and on at most `export` parents that are not
//! ready; never on the number of objects, nor on their content.

mod access;
mod factory;
mod history_metrics;
#[cfg(feature = "fixtures")]
pub(crate) mod hostile;
mod loop_metrics;
mod parent_series;
mod planned_series;
mod process;
mod rollout_metrics;
mod stale_series;
#[cfg(test)]
mod tests;
mod units;

use std::time::Duration;

use aggregator::{EvaluationCounts, KindState};
use policy::WatchPlan;
use prometheus::{Encoder, Gauge, IntCounter, IntCounterVec, IntGauge, Registry, TextEncoder};
use readiness::Time;

pub(crate) use access::{ListenerMetrics, TokenReviewMetrics};
pub(crate) use history_metrics::HistoryMetrics;
pub(crate) use rollout_metrics::RolloutMetrics;

use access::AccessMetrics;
use factory::MetricFactory;
use loop_metrics::LoopMetrics;
use parent_series::ParentSeries;
use planned_series::PlannedSeries;
use units::{gauge_value, to_seconds};

use crate::kind_tasks::KindEvent;
use crate::parent_writer::SettledWrite;
use crate::snapshot::{NotReadyDetail, NotReadyParent, StatsSnapshot};

/// Outcomes of requests about bindings of listed roles, as in `rollcall_role_bindings_total{outcome}`.
pub(crate) const ROLE_BINDING_OUTCOMES: [&str; 4] = ["created", "deleted", "forbidden", "failed"];

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
    event_loop: LoopMetrics,
    /// Metrics of the task that reads rollouts.
    pub(crate) rollouts: RolloutMetrics,
    /// Connection pools that were given up.
    pub(crate) connections_replaced: IntCounter,
    /// Live reads of the resync.
    pub(crate) resync_reads: IntCounter,
    resync_queue: IntGauge,
    /// 1 while outcomes of Jobs cannot be saved.
    pub(crate) records_failing: IntGauge,
    /// Requests that bind listed ClusterRoles or delete such bindings, by outcome.
    pub(crate) role_bindings: IntCounterVec,
    /// Outcomes of Jobs that were not remembered for lack of room.
    pub(crate) outcomes_dropped: IntCounter,
    leader: IntGauge,
    clock_offset: Gauge,
    /// Series of policies and kinds.
    pub(crate) planned: PlannedSeries,
}

impl Metrics {
    /// Registers everything; at most `export` parents that are not ready get series of their own.
    pub(crate) fn new(export: usize) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let make = MetricFactory(&registry);
        make.gauge_vec("build_info", "Always 1.", &["version"])?
            .with_label_values(&[crate::build_info::VERSION])
            .set(1);
        let role_bindings = make.counter_vec(
            "role_bindings_total",
            "Bindings of ClusterRoles that --grant-roles lists: created, deleted, and requests that were forbidden or failed.",
            &["outcome"],
        )?;
        for outcome in ROLE_BINDING_OUTCOMES {
            role_bindings.with_label_values(&[outcome]);
        }
        let access = AccessMetrics::new(&make)?;
        access.init_series();
        Ok(Metrics {
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
            access,
            events: make.counter_vec("events_total", "Kubernetes Events by outcome.", &["outcome"])?,
            history: HistoryMetrics::new(&make)?,
            event_loop: LoopMetrics::new(&make)?,
            rollouts: RolloutMetrics::new(&make)?,
            connections_replaced: make.counter(
                "connection_pool_replacements_total",
                "Connection pools that were given up because they did not answer while a new connection did.",
            )?,
            resync_reads: make.counter("resync_reads_total", "Live reads of the periodic resync.")?,
            resync_queue: make
                .gauge("resync_queue_length", "Live reads of the periodic resync that wait to be sent.")?,
            records_failing: make
                .gauge("records_failing", "1 while outcomes of Jobs cannot be saved in ReadinessRecords.")?,
            role_bindings,
            outcomes_dropped: make.counter(
                "outcomes_dropped_total",
                "Outcomes of Jobs that are not remembered because their parent has too many.",
            )?,
            leader: make.gauge("leader", "1 while this replica writes, 0 while it is a standby.")?,
            clock_offset: make.float_gauge(
                "clock_offset_seconds",
                "Offset of the API server's clock from this machine's, in seconds; 0 while they agree to within two seconds.",
            )?,
            planned: PlannedSeries::new(&make)?,
            registry,
        })
    }

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

    /// Records an event of a kind's task.
    pub(crate) fn record_kind_event(&self, kind: &str, event: &KindEvent, now: Time) {
        match event {
            KindEvent::Alive | KindEvent::Synced => {
                self.planned.last_event.with_label_values(&[kind]).set(to_seconds(now));
            }
            KindEvent::Failure(cause, _) => {
                self.planned.restarts.with_label_values(&[kind, cause.metric_label()]).inc();
            }
            KindEvent::Starting
            | KindEvent::Listing
            | KindEvent::Absent
            | KindEvent::Stopped
            | KindEvent::RuleChanged(_) => {}
        }
    }

    /// Sets the state of a kind.
    pub(crate) fn set_kind_state(&self, kind: &str, state: KindState) {
        let blind = matches!(state, KindState::Stale | KindState::Forbidden);
        self.planned.stale.set_planned(kind, blind);
        let is_listing = state == KindState::Listing;
        self.planned.listing.with_label_values(&[kind]).set(i64::from(is_listing));
    }

    /// Records the result of a write. `called` is the time since the event that caused it, if one did.
    pub(crate) fn record_write(&self, settled: &SettledWrite, called: Option<Duration>, plan: &WatchPlan) {
        for (_, words) in settled.policies.iter().filter_map(|id| plan.policies.get(id)) {
            self.planned.writes.with_label_values(&[words.name.as_str(), settled.label]).inc();
            if settled.label == "conflict" {
                self.planned.conflicts.with_label_values(&[&words.name]).inc();
            }
            if let Some(to) = settled.status_transition {
                self.planned.transitions.with_label_values(&[words.name.as_str(), to.as_str()]).inc();
            }
        }
        if let Some(called) = called.filter(|_| settled.status_transition.is_some()) {
            self.event_loop.observe_written_event(called);
        }
    }

    /// Records the first readiness of a generation, with the time since it was first observed.
    pub(crate) fn observe_first_ready(&self, policy: &str, after: Duration) {
        self.planned.time_to_ready.with_label_values(&[policy]).observe(after.as_secs_f64());
    }

    /// Counts finalizers that were added again.
    pub(crate) fn count_flaps(&self, policy: &str, times: u64) {
        self.planned.flaps.with_label_values(&[policy]).inc_by(times);
    }

    /// Counts differences in what is held of a kind, by who found them.
    pub(crate) fn count_drift(&self, kind: &str, found_by: &str, differences: u64) {
        self.planned.drift.with_label_values(&[kind, found_by]).inc_by(differences);
    }

    /// Records the start of a turn, with the number of objects waiting.
    pub(crate) fn begin_turn(&self, dirty: usize) {
        self.event_loop.begin_turn(dirty);
    }

    /// Sets the number of parents waiting to be written.
    pub(crate) fn set_write_queue(&self, waiting: usize) {
        self.event_loop.set_write_queue(waiting);
    }

    /// Sets the number of live reads of the resync that wait.
    pub(crate) fn set_resync_queue(&self, waiting: usize) {
        self.resync_queue.set(gauge_value(waiting));
    }

    /// Sets the offset of the server's clock, in seconds.
    pub(crate) fn set_clock_offset(&self, seconds: f64) {
        self.clock_offset.set(seconds);
    }

    /// Sets the leadership of this replica.
    pub(crate) fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Number of parents that are not ready and have series of their own.
    pub(crate) fn named_parents(&self) -> usize {
        self.parent_series.named_parents()
    }

    /// Records a snapshot. `story` returns the details of a parent with series of its own, and is called for no other.
    /// A standby exports the same series at 0, so that a sum over all replicas counts each once.
    pub(crate) fn record_snapshot(
        &self,
        snapshot: &StatsSnapshot,
        counts: EvaluationCounts,
        story: impl Fn(&NotReadyParent) -> NotReadyDetail,
    ) {
        self.event_loop.record_snapshot(snapshot, counts);
        let shares = self.leader.get();
        self.planned.record_policies(snapshot, shares);
        self.parent_series.record_snapshot((shares > 0).then_some(snapshot), story);
    }
}
