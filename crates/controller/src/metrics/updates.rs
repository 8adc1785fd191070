//! Recording of events in metrics, called by the loop and the tasks.

use std::time::Duration;

use aggregator::{EvaluationCounts, KindState};
use readiness::{Level, Steadiness, Time};

use super::Metrics;
use super::units::{gauge_value, to_seconds};
use crate::kind_tasks::KindEvent;
use crate::parent_writer::SettledWrite;
use crate::snapshot::{NotReadyDetail, NotReadyParent, StatsSnapshot};
use policy::WatchPlan;

impl Metrics {
    /// Records an event of a kind's task.
    pub(crate) fn record_kind_event(&self, kind: &str, news: &KindEvent, now: Time) {
        match news {
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
        self.planned.stale.with_label_values(&[kind]).set(i64::from(blind));
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
            self.event_to_write.observe(called.as_secs_f64());
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
        self.turns.inc();
        self.dirty.set(gauge_value(dirty));
    }

    /// Sets the number of parents waiting to be written.
    pub(crate) fn set_write_queue(&self, waiting: usize) {
        self.write_queue.set(gauge_value(waiting));
    }

    /// Sets the offset of the server's clock, in seconds.
    pub(crate) fn set_clock_offset(&self, seconds: f64) {
        self.clock_offset.set(seconds);
    }

    /// Sets the leadership of this replica.
    pub(crate) fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Records a snapshot. `story` returns the details of a parent with series of its own, and is called for no other.
    /// A standby exports the same series at 0, so that a sum over all replicas counts each once.
    pub(crate) fn record_snapshot(
        &self,
        snapshot: &StatsSnapshot,
        counts: EvaluationCounts,
        story: impl Fn(&NotReadyParent) -> NotReadyDetail,
    ) {
        self.judged.inc_by(counts.evaluations);
        self.moved.inc_by(counts.changed_answers);
        self.damped_flips.inc_by(counts.saved_flips);
        self.rows.set(gauge_value(snapshot.rows));
        self.bytes.set(gauge_value(snapshot.bytes));
        let (times, took) = snapshot.user_rule_usage;
        self.rule_calls.inc_by(times.saturating_sub(self.rule_calls.get()));
        self.rule_time.inc_by((took.as_secs_f64() - self.rule_time.get()).max(0.0));
        self.resync_parents.set(gauge_value(snapshot.resynced));
        self.debounced.set(gauge_value(snapshot.debounced));
        let shares = self.leader.get();
        for (policy, numbers) in &snapshot.policies {
            let policy = policy.as_str();
            for level in Level::ALL {
                let at: u64 =
                    numbers.reasons.iter().filter(|(r, _)| r.child_level() == level).map(|(_, n)| n).sum();
                self.planned
                    .parents
                    .with_label_values(&[policy, level.as_str()])
                    .set(gauge_value(at) * shares);
                for (kind, tally) in &numbers.children {
                    let available = i64::from(tally.steady_count(Steadiness::Available)) * shares;
                    self.planned.available.with_label_values(&[policy, kind]).set(available);
                    let at = i64::from(tally.count_at(level)) * shares;
                    self.planned.children.with_label_values(&[policy, kind, level.as_str()]).set(at);
                    if level == Level::Stuck {
                        self.planned.stuck.with_label_values(&[policy, kind]).set(at);
                    }
                }
            }
            self.planned
                .yielding
                .with_label_values(&[policy])
                .set(gauge_value(numbers.yielding.values().sum::<u64>()) * shares);
            self.planned
                .owned
                .with_label_values(&[policy])
                .set(gauge_value(numbers.owned.values().sum::<u64>()) * shares);
            self.planned.pruned.with_label_values(&[policy]).set(gauge_value(numbers.pruned) * shares);
            self.planned
                .undefaulted
                .with_label_values(&[policy])
                .set(gauge_value(numbers.undefaulted) * shares);
            self.planned
                .disagreements
                .with_label_values(&[policy])
                .set(gauge_value(numbers.disagreeing) * shares);
            self.planned
                .suspended_rules
                .with_label_values(&[policy])
                .set(gauge_value(numbers.suspended_rules.len()) * shares);
        }
        self.parent_series.record_snapshot((shares > 0).then_some(snapshot), story);
    }
}
