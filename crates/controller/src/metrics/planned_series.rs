//! Series of policies and kinds, which come and go with the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aggregator::PolicyId;
use inspect::rollout::WaitCause;
use prometheus::{GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec, Result};
use readiness::rollup::ConditionStatus;
use readiness::{Level, Steadiness};
use watcher::ApiFailureCause;

use super::factory::{MetricFactory, MetricSeries};
use super::stale_series::StaleSeries;
use super::units::gauge_value;
use crate::snapshot::StatsSnapshot;

/// Kind whose duration series exist from the start; those of other kinds once a child has completed.
const JOB_KIND: &str = "Job.batch";

/// Buckets from a small parent's settle time to an hour.
pub(super) const READY_BUCKETS: [f64; 12] =
    [1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0];
/// Buckets from a fast migration to a day.
pub(super) const DURATION_BUCKETS: [f64; 11] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0];
/// Buckets from a fast start to an hour. There is a series for each cause that occurs: they are few.
pub(super) const WAIT_BUCKETS: [f64; 6] = [1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0];
/// Outcomes of a write.
pub(super) const WRITE_OUTCOMES: [&str; 12] = [
    "written",
    "conflict",
    "gone",
    "invalid",
    "pruned",
    "shortened",
    "forbidden",
    "throttled",
    "error",
    "timeout",
    "dropped",
    "standby",
];

/// Operation applied to each of several series.
type SeriesOperation = fn(&(dyn MetricSeries + 'static), &[&str]);

/// What the current plan names. Written only by the loop, read by the kinds' tasks.
#[derive(Default)]
struct NamedByPlan {
    /// Policies, with the kinds of their children.
    policies: BTreeMap<String, BTreeSet<String>>,
    kinds: BTreeSet<String>,
    /// Policies, in force or not.
    existing: BTreeSet<String>,
    /// Names of policies.
    names: BTreeMap<PolicyId, String>,
}

/// Metrics whose labels are policies and kinds.
pub(crate) struct PlannedSeries {
    pub(super) parents: IntGaugeVec,
    pub(super) children: IntGaugeVec,
    pub(super) stuck: IntGaugeVec,
    pub(super) available: IntGaugeVec,
    pub(super) transitions: IntCounterVec,
    pub(super) time_to_ready: HistogramVec,
    rollout_waits: HistogramVec,
    pub(super) writes: IntCounterVec,
    pub(super) conflicts: IntCounterVec,
    pub(super) flaps: IntCounterVec,
    pub(super) yielding: IntGaugeVec,
    pub(super) owned: IntGaugeVec,
    owner_disagreements: IntGaugeVec,
    pub(super) pruned: IntGaugeVec,
    pub(super) parents_refused: IntGaugeVec,
    pub(super) undefaulted: IntGaugeVec,
    pub(super) disagreements: IntGaugeVec,
    pub(super) suspended_rules: IntGaugeVec,
    pub(super) last_event: GaugeVec,
    pub(super) restarts: IntCounterVec,
    pub(crate) stale: StaleSeries,
    pub(super) listing: IntGaugeVec,
    pub(super) drift: IntCounterVec,
    refused: IntGaugeVec,
    child_duration: HistogramVec,
    named: Mutex<NamedByPlan>,
}

impl PlannedSeries {
    #[expect(clippy::too_many_lines, reason = "a list, one entry per metric")]
    /// Registers the metrics.
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<PlannedSeries> {
        Ok(PlannedSeries {
            parents: make.gauge_vec("parents", "Parents by policy and verdict.", &["policy", "verdict"])?,
            children: make.gauge_vec(
                "children",
                "Children by policy, kind and verdict; one that counts for two parents counts twice.",
                &["policy", "kind", "verdict"],
            )?,
            stuck: make.gauge_vec(
                "stuck_children",
                "Children that have been pending, without progress or terminating for longer than their limit.",
                &["policy", "kind"],
            )?,
            available: make.gauge_vec(
                "available_children",
                "Children that are not ready, but rolled out and available: their number of replicas changes, or a \
                 disruption within their budget goes on.",
                &["policy", "kind"],
            )?,
            transitions: make.counter_vec(
                "transitions_total",
                "Changes of a condition's status that were written, by the new status.",
                &["policy", "to"],
            )?,
            time_to_ready: make.histogram_vec(
                "time_to_ready_seconds",
                "Time from the first observation of a parent's generation to its first Ready=True, in seconds.",
                &["policy"],
                &READY_BUCKETS,
            )?,
            rollout_waits: make.histogram_vec(
                "rollout_wait_seconds",
                "Time that a rollout spent on a cause, in seconds; the causes of a rollout sum up to its whole.",
                &["policy", "cause"],
                &WAIT_BUCKETS,
            )?,
            child_duration: make.histogram_vec(
                "child_duration_seconds",
                "Run duration of completed children, in seconds: Jobs, and kinds that record start and completion as Jobs do.",
                &["policy", "kind"],
                &DURATION_BUCKETS,
            )?,
            writes: make.counter_vec("writes_total", "Status writes by outcome.", &["policy", "outcome"])?,
            conflicts: make.counter_vec(
                "write_conflicts_total",
                "Status writes rejected because a precondition failed.",
                &["policy"],
            )?,
            flaps: make.counter_vec(
                "finalizer_flaps_total",
                "Finalizers of parents and children that were removed and added again.",
                &["policy"],
            )?,
            yielding: make.gauge_vec(
                "parents_yielding",
                "Parents on which another writer repeatedly overwrites the condition.",
                &["policy"],
            )?,
            owned: make.gauge_vec(
                "parents_owned",
                "Parents whose condition is owned by another field manager, so that nothing is written.",
                &["policy"],
            )?,
            owner_disagreements: make.gauge_vec(
                "parents_owned_disagreeing",
                "Parents whose condition is owned by another field manager, who says True where the children are not ready, or \
                 vice versa.",
                &["policy"],
            )?,
            refused: make.gauge_vec(
                "policy_refused",
                "1 while the spec of the policy is refused; the one that was last accepted stays in force.",
                &["policy"],
            )?,
            pruned: make.gauge_vec(
                "parents_pruned",
                "Parents whose CRD's schema prunes the condition.",
                &["policy"],
            )?,
            parents_refused: make.gauge_vec(
                "parents_refused",
                "Parents on which the API server, or an admission policy or webhook, refuses the condition.",
                &["policy"],
            )?,
            undefaulted: make.gauge_vec(
                "parents_without_default",
                "Parents without status.observedGeneration: their CRD lacks the default of `rollcall crd-defaults`, \
                 and readers that use kstatus may see them ready too early.",
                &["policy"],
            )?,
            disagreements: make.gauge_vec(
                "shadow_disagreements",
                "Parents of a policy in shadow mode whose own condition is True while the policy's answer is not, or vice versa.",
                &["policy"],
            )?,
            suspended_rules: make.gauge_vec(
                "rules_suspended",
                "Rules of a policy that are not evaluated for a while, on some objects or on all, because they \
                 exceeded their limits several times in a row.",
                &["policy"],
            )?,
            last_event: make.float_gauge_vec(
                "watch_last_event_timestamp_seconds",
                "Time of the server's last response to a list or watch of a kind, in seconds since the Unix epoch.",
                &["kind"],
            )?,
            restarts: make.counter_vec(
                "watch_restarts_total",
                "Lists and watches that were restarted, by cause.",
                &["kind", "cause"],
            )?,
            stale: StaleSeries::new(make)?,
            listing: make.gauge_vec(
                "watch_listing",
                "1 while the list of a kind is not complete, else 0.",
                &["kind"],
            )?,
            drift: make.counter_vec(
                "drift_total",
                "Differences found in what the watch delivered, or in what was derived from it; each is mended.",
                &["kind", "found_by"],
            )?,
            named: Mutex::default(),
        })
    }

    fn lock_named(&self) -> MutexGuard<'_, NamedByPlan> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `each` to all series of a policy, with the kinds of its children.
    fn for_each_policy_series(&self, policy: &str, kinds: &BTreeSet<String>, each: SeriesOperation) {
        for level in Level::ALL {
            each(&self.parents, &[policy, level.as_str()]);
            for kind in kinds {
                each(&self.children, &[policy, kind, level.as_str()]);
            }
        }
        for kind in kinds {
            each(&self.stuck, &[policy, kind]);
            each(&self.available, &[policy, kind]);
        }
        for outcome in WRITE_OUTCOMES {
            each(&self.writes, &[policy, outcome]);
        }
        for status in [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown] {
            each(&self.transitions, &[policy, status.as_str()]);
        }
        each(&self.time_to_ready, &[policy]);
        if kinds.contains(JOB_KIND) {
            each(&self.child_duration, &[policy, JOB_KIND]);
        }
        each(&self.conflicts, &[policy]);
        each(&self.flaps, &[policy]);
        for gauge in [
            &self.yielding,
            &self.owned,
            &self.owner_disagreements,
            &self.pruned,
            &self.parents_refused,
            &self.undefaulted,
            &self.disagreements,
            &self.suspended_rules,
        ] {
            each(gauge, &[policy]);
        }
    }

    /// Applies `each` to all series of a kind except the time of its last event, which is unknown before the first one.
    fn for_each_kind_series(&self, kind: &str, each: SeriesOperation) {
        each(&self.stale, &[kind]);
        each(&self.listing, &[kind]);
        for by in ["resync", "audit", "write", "recount"] {
            each(&self.drift, &[kind, by]);
        }
        for cause in ApiFailureCause::ALL {
            each(&self.restarts, &[kind, cause.metric_label()]);
        }
    }

    /// Sets the plan: its policies and kinds have all of their series from the start, others are removed.
    pub(crate) fn set_planned(&self, policies: BTreeMap<String, BTreeSet<String>>, kinds: BTreeSet<String>) {
        let mut shown = self.lock_named();
        for (policy, kinds) in &shown.policies {
            match policies.get(policy) {
                None => {
                    self.for_each_policy_series(policy, kinds, <dyn MetricSeries>::hide_series);
                    for cause in WaitCause::ALL {
                        self.rollout_waits.hide_series(&[policy, cause.label()]);
                    }
                    for kind in kinds {
                        self.child_duration.hide_series(&[policy, kind]);
                    }
                }
                Some(now) => {
                    for kind in kinds.difference(now) {
                        for level in Level::ALL {
                            self.children.hide_series(&[policy, kind, level.as_str()]);
                        }
                        self.stuck.hide_series(&[policy, kind]);
                        self.available.hide_series(&[policy, kind]);
                        self.child_duration.hide_series(&[policy, kind]);
                    }
                }
            }
        }
        for kind in shown.kinds.difference(&kinds) {
            self.for_each_kind_series(kind, <dyn MetricSeries>::hide_series);
            self.last_event.hide_series(&[kind]);
        }
        for (policy, kinds) in &policies {
            self.for_each_policy_series(policy, kinds, <dyn MetricSeries>::show_series);
        }
        for kind in &kinds {
            self.for_each_kind_series(kind, <dyn MetricSeries>::show_series);
        }
        (shown.policies, shown.kinds) = (policies, kinds);
    }

    /// All policies, and whether each is refused.
    pub(crate) fn policies_refused(&self, policies: BTreeMap<String, bool>) {
        let mut shown = self.lock_named();
        for gone in shown.existing.iter().filter(|policy| !policies.contains_key(*policy)) {
            self.refused.hide_series(&[gone]);
        }
        for (policy, refused) in &policies {
            self.refused.with_label_values(&[policy]).set(i64::from(*refused));
        }
        shown.existing = policies.into_keys().collect();
    }

    /// Sets the names of policies.
    pub(crate) fn set_policy_names(&self, names: BTreeMap<PolicyId, String>) {
        self.lock_named().names = names;
    }

    /// Records how long a rollout under a policy waited for a cause.
    pub(crate) fn observe_rollout_wait(&self, policy: &str, cause: WaitCause, took: Duration) {
        // A rollout may be read after its policy has gone.
        let shown = self.lock_named();
        if shown.policies.contains_key(policy) {
            self.rollout_waits.with_label_values(&[policy, cause.label()]).observe(took.as_secs_f64());
        }
    }

    /// Records the run duration of a completed child of these policies.
    pub(crate) fn observe_child_duration(&self, policies: &BTreeSet<PolicyId>, kind: &str, took: Duration) {
        let shown = self.lock_named();
        for name in policies.iter().filter_map(|id| shown.names.get(id)) {
            self.child_duration.with_label_values(&[name, kind]).observe(took.as_secs_f64());
        }
    }

    /// Sets the numbers of each policy; a standby, with no share, exports the same series at 0.
    pub(super) fn record_policies(&self, snapshot: &StatsSnapshot, shares: i64) {
        for (policy, numbers) in &snapshot.policies {
            let policy = policy.as_str();
            for level in Level::ALL {
                let at: u64 =
                    numbers.reasons.iter().filter(|(r, _)| r.child_level() == level).map(|(_, n)| n).sum();
                self.parents.with_label_values(&[policy, level.as_str()]).set(gauge_value(at) * shares);
                for (kind, tally) in &numbers.children {
                    let available = i64::from(tally.steady_count(Steadiness::Available)) * shares;
                    self.available.with_label_values(&[policy, kind]).set(available);
                    let at = i64::from(tally.count_at(level)) * shares;
                    self.children.with_label_values(&[policy, kind, level.as_str()]).set(at);
                    if level == Level::Stuck {
                        self.stuck.with_label_values(&[policy, kind]).set(at);
                    }
                }
            }
            self.yielding
                .with_label_values(&[policy])
                .set(gauge_value(numbers.findings.yielding.values().sum::<u64>()) * shares);
            self.owned
                .with_label_values(&[policy])
                .set(gauge_value(numbers.findings.owned.values().sum::<u64>()) * shares);
            self.owner_disagreements
                .with_label_values(&[policy])
                .set(gauge_value(numbers.findings.owner_disagreeing) * shares);
            self.pruned.with_label_values(&[policy]).set(gauge_value(numbers.findings.pruned) * shares);
            self.parents_refused
                .with_label_values(&[policy])
                .set(gauge_value(numbers.findings.refused) * shares);
            self.undefaulted
                .with_label_values(&[policy])
                .set(gauge_value(numbers.findings.undefaulted) * shares);
            self.disagreements
                .with_label_values(&[policy])
                .set(gauge_value(numbers.findings.disagreeing) * shares);
            self.suspended_rules
                .with_label_values(&[policy])
                .set(gauge_value(numbers.suspended_rules.len()) * shares);
        }
    }
}
