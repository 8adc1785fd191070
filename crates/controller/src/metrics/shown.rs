//! Which series there are of what comes and goes: policies and kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use aggregator::PolicyId;
use readiness::Level;
use readiness::rollup::Status;
use watcher::Cause;

use super::make::Series;
use super::{Metrics, OUTCOMES};

/// The kind whose durations are there from the start; those of others once one of them has ended.
const JOB: &str = "Job.batch";

/// What is done to each of many series.
type Each = fn(&(dyn Series + 'static), &[&str]);

/// Written by the loop alone; read by the kinds' tasks.
#[derive(Default)]
pub(super) struct Shown {
    /// Policies, with the kinds of their children.
    policies: BTreeMap<String, BTreeSet<String>>,
    kinds: BTreeSet<String>,
    /// What policies are called.
    names: BTreeMap<PolicyId, String>,
}

impl Metrics {
    /// Every series of a policy, with the kinds of its children.
    fn of_policy(&self, policy: &str, kinds: &BTreeSet<String>, each: Each) {
        for level in Level::ALL {
            each(&self.parents, &[policy, level.word()]);
            for kind in kinds {
                each(&self.children, &[policy, kind, level.word()]);
            }
        }
        for kind in kinds {
            each(&self.stuck, &[policy, kind]);
        }
        for outcome in OUTCOMES {
            each(&self.writes, &[policy, outcome]);
        }
        for status in [Status::True, Status::False, Status::Unknown] {
            each(&self.transitions, &[policy, status.word()]);
        }
        each(&self.time_to_ready, &[policy]);
        if kinds.contains(JOB) {
            each(&self.child_duration, &[policy, JOB]);
        }
        each(&self.conflicts, &[policy]);
        each(&self.flaps, &[policy]);
        for gauge in [&self.yielding, &self.owned, &self.pruned, &self.undefaulted, &self.disagreements] {
            each(gauge, &[policy]);
        }
    }

    /// Every series of a kind but the moment of its last event, which is not known before there was one.
    fn of_kind(&self, kind: &str, each: Each) {
        each(&self.stale, &[kind]);
        for by in ["resync", "audit"] {
            each(&self.drift, &[kind, by]);
        }
        for cause in Cause::ALL {
            each(&self.restarts, &[kind, cause.label()]);
        }
    }

    /// What is planned has all of its series from the start, and what is planned no more has none.
    pub(crate) fn planned(&self, policies: BTreeMap<String, BTreeSet<String>>, kinds: BTreeSet<String>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for (policy, kinds) in &shown.policies {
            match policies.get(policy) {
                None => {
                    self.of_policy(policy, kinds, <dyn Series>::hide);
                    for kind in kinds {
                        self.child_duration.hide(&[policy, kind]);
                    }
                }
                Some(now) => {
                    for kind in kinds.difference(now) {
                        for level in Level::ALL {
                            self.children.hide(&[policy, kind, level.word()]);
                        }
                        self.stuck.hide(&[policy, kind]);
                        self.child_duration.hide(&[policy, kind]);
                    }
                }
            }
        }
        for kind in shown.kinds.difference(&kinds) {
            self.of_kind(kind, <dyn Series>::hide);
            self.last_event.hide(&[kind]);
        }
        for (policy, kinds) in &policies {
            self.of_policy(policy, kinds, <dyn Series>::show);
        }
        for kind in &kinds {
            self.of_kind(kind, <dyn Series>::show);
        }
        (shown.policies, shown.kinds) = (policies, kinds);
    }

    /// What policies are called.
    pub(crate) fn named(&self, names: BTreeMap<PolicyId, String>) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).names = names;
    }

    /// A child of these policies completed, so long after it began.
    pub(crate) fn child_ended(&self, policies: &BTreeSet<PolicyId>, kind: &str, took: Duration) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for name in policies.iter().filter_map(|id| shown.names.get(id)) {
            self.child_duration.with_label_values(&[name, kind]).observe(took.as_secs_f64());
        }
    }
}
