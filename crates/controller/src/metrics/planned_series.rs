//! Series of policies and kinds, which come and go with the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use aggregator::PolicyId;
use readiness::Level;
use readiness::rollup::ConditionStatus;
use watcher::ApiFailureCause;

use super::factory::MetricSeries;
use super::{Metrics, WRITE_OUTCOMES};

/// Kind whose duration series exist from the start; those of other kinds once a child has completed.
const JOB_KIND: &str = "Job.batch";

/// Operation applied to each of several series.
type SeriesOperation = fn(&(dyn MetricSeries + 'static), &[&str]);

/// Series of the current plan. Written only by the loop, read by the kinds' tasks.
#[derive(Default)]
pub(super) struct PlannedSeries {
    /// Policies, with the kinds of their children.
    policies: BTreeMap<String, BTreeSet<String>>,
    kinds: BTreeSet<String>,
    /// Policies, in force or not.
    existing: BTreeSet<String>,
    /// Names of policies.
    names: BTreeMap<PolicyId, String>,
}

impl Metrics {
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
            &self.pruned,
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
        for by in ["resync", "audit", "recount"] {
            each(&self.drift, &[kind, by]);
        }
        for cause in ApiFailureCause::ALL {
            each(&self.restarts, &[kind, cause.metric_label()]);
        }
    }

    /// Sets the plan: its policies and kinds have all of their series from the start, others are removed.
    pub(crate) fn set_planned(&self, policies: BTreeMap<String, BTreeSet<String>>, kinds: BTreeSet<String>) {
        let mut shown = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        for (policy, kinds) in &shown.policies {
            match policies.get(policy) {
                None => {
                    self.for_each_policy_series(policy, kinds, <dyn MetricSeries>::hide_series);
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
        let mut shown = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).names = names;
    }

    /// Records the run duration of a completed child of these policies.
    pub(crate) fn observe_child_duration(&self, policies: &BTreeSet<PolicyId>, kind: &str, took: Duration) {
        let shown = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        for name in policies.iter().filter_map(|id| shown.names.get(id)) {
            self.child_duration.with_label_values(&[name, kind]).observe(took.as_secs_f64());
        }
    }
}
