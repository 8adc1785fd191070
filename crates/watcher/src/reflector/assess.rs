//! Assessment of an object on ingest, by the built-in rules or by a policy's custom rule.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use readiness::{Assessment, Reason, Time};
use rollcall_cel::ObjectJson;
use serde_json::value::RawValue;

use super::row_store::unknown_assessment;
use super::rule_breaker::RuleBreaker;
use crate::parent::text_with_type;
use crate::plan::{AssessmentRule, Interest, UserRule};
use crate::wire::ChildObject;

/// Assesses objects, and counts what custom rules cost.
#[derive(Default)]
pub(super) struct ObjectAssessor {
    /// Current time as last set by the driver, in milliseconds; custom rules may read it.
    now: AtomicI64,
    /// Number of evaluations of custom rules, and their total duration in nanoseconds.
    user_rule_calls: (AtomicU64, AtomicU64),
}

impl ObjectAssessor {
    /// Sets the current time for custom rules.
    pub(super) fn set_now(&self, now: Time) {
        self.now.store(now.0, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Time {
        Time(self.now.load(Ordering::Relaxed))
    }

    /// Returns the number of evaluations of custom rules and their total duration.
    pub(super) fn user_rule_usage(&self) -> (u64, Duration) {
        let (times, nanoseconds) = &self.user_rule_calls;
        (times.load(Ordering::Relaxed), Duration::from_nanos(nanoseconds.load(Ordering::Relaxed)))
    }

    /// Assesses one object; a panic is confined to this object.
    pub(super) fn assess_child(
        &self,
        interest: &Interest,
        child: &ChildObject,
        object: Option<&RawValue>,
        (judged_by, breaker): (&AssessmentRule, Option<&RuleBreaker>),
    ) -> Assessment {
        let judged = catch_unwind(AssertUnwindSafe(|| match &judged_by.rule {
            None if judged_by.remembers_outcome => deleted_outcome(interest, child, judged_by)
                .unwrap_or_else(|| readiness::assess(interest.judge, &child.facts, &judged_by.limits)),
            None => readiness::assess(interest.judge, &child.facts, &judged_by.limits),
            Some(rule) => readiness::assess_before_rules(interest.judge, &child.facts, &judged_by.limits)
                .unwrap_or_else(|| self.run_user_rule((rule, breaker), child, object)),
        }));
        judged.unwrap_or_else(|_| unknown_assessment(Reason::RuleCrashed))
    }

    fn run_user_rule(
        &self,
        (rule, breaker): (&UserRule, Option<&RuleBreaker>),
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> Assessment {
        let Some(object) = object else { return unknown_assessment(Reason::RuleChanged) };
        let (uid, now) = (&*child.meta.uid, self.now());
        if breaker.is_some_and(|breaker| !breaker.admits(uid, now)) {
            return unknown_assessment(Reason::RuleTooSlow);
        }
        let (api_version, kind) = &rule.of;
        let text = text_with_type(object.get(), child, api_version, kind);
        let (judged, took) = rules::measure_time(|| rule.rule.judge_object(ObjectJson::Text(&text), now));
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.user_rule_calls.0.fetch_add(1, Ordering::Relaxed);
        self.user_rule_calls.1.fetch_add(took, Ordering::Relaxed);
        let overran = matches!(judged.assessment.verdict.reason, Reason::RuleLimit(_));
        if breaker.is_some_and(|breaker| breaker.record(uid, now, overran)) {
            // The same answer as while it waits: an object that is tried again and again does not change its parent.
            return unknown_assessment(Reason::RuleTooSlow);
        }
        judged.assessment
    }
}

/// Outcome of a finished object that is being deleted. Counts until its deletion is stuck.
fn deleted_outcome(
    interest: &Interest,
    child: &ChildObject,
    judged_by: &AssessmentRule,
) -> Option<Assessment> {
    child.facts.deleted?;
    let verdict = readiness::final_outcome(interest.judge, &child.facts)?;
    let deletion = readiness::assess(interest.judge, &child.facts, &judged_by.limits);
    Some(Assessment { verdict, then: deletion.then })
}
