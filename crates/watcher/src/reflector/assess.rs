//! Assessment of an object on ingest, by the built-in rules or by a policy's custom rule.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use readiness::{Assessment, Reason, Time};
use rollcall_cel::ObjectJson;
use serde_json::value::RawValue;

use super::judgement_queue::Judgement;
use super::reevaluation::limit_to_renewal;
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

    /// Assesses one object; a panic is confined to this object. Where a custom rule has the word, and is to be evaluated
    /// beside (`defers`), the object awaits it.
    pub(super) fn assess_child(
        &self,
        interest: &Interest,
        child: &ChildObject,
        object: Option<&RawValue>,
        (judged_by, breaker, defers): (&AssessmentRule, Option<&RuleBreaker>, bool),
    ) -> RuleAssessment {
        let judged = catch_unwind(AssertUnwindSafe(|| match &judged_by.rule {
            None if judged_by.remembers_outcome => deleted_outcome(interest, child, judged_by)
                .unwrap_or_else(|| readiness::assess(interest.judge, &child.facts, &judged_by.limits))
                .into(),
            None => readiness::assess(interest.judge, &child.facts, &judged_by.limits).into(),
            Some(rule) => readiness::assess_before_rules(interest.judge, &child.facts, &judged_by.limits)
                .map_or_else(
                    || self.assess_by_rule((rule, breaker, defers), child, object),
                    RuleAssessment::Known,
                ),
        }));
        judged.unwrap_or_else(|_| unknown_assessment(Reason::RuleCrashed).into())
    }

    fn assess_by_rule(
        &self,
        (rule, breaker, defers): (&UserRule, Option<&RuleBreaker>, bool),
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> RuleAssessment {
        let Some(object) = object else { return unknown_assessment(Reason::RuleChanged).into() };
        let of = (&*child.meta.namespace, &*child.meta.uid);
        if breaker.is_some_and(|breaker| !breaker.admits(of, self.now())) {
            return unknown_assessment(Reason::RuleTooSlow).into();
        }
        if defers {
            return RuleAssessment::Awaited;
        }
        self.run_user_rule((rule, breaker), of, &rule_text(rule, child, object)).into()
    }

    /// Evaluates a rule on an object that awaited it.
    pub(super) fn evaluate_judgement(&self, judgement: &Judgement) -> Assessment {
        let (plan, rule_index) = (&judgement.plan, usize::from(judgement.rule_index));
        let rule =
            plan.interest.assessment_rules.get(rule_index).and_then(|judged_by| judged_by.rule.as_ref());
        let breaker = plan.breakers.get(rule_index).and_then(Option::as_deref);
        let Some(rule) = rule else { return unknown_assessment(Reason::RuleChanged) };
        let of = (&*judgement.namespace, &*judgement.uid);
        if breaker.is_some_and(|breaker| !breaker.admits(of, self.now())) {
            return unknown_assessment(Reason::RuleTooSlow);
        }
        let evaluate = || self.run_user_rule((rule, breaker), of, &judgement.text);
        catch_unwind(AssertUnwindSafe(evaluate)).unwrap_or_else(|_| unknown_assessment(Reason::RuleCrashed))
    }

    fn run_user_rule(
        &self,
        (rule, breaker): (&UserRule, Option<&RuleBreaker>),
        of: (&str, &str),
        text: &str,
    ) -> Assessment {
        let now = self.now();
        let (judged, took) = rules::measure_time(|| rule.rule.judge_object(ObjectJson::Text(text), now));
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.user_rule_calls.0.fetch_add(1, Ordering::Relaxed);
        self.user_rule_calls.1.fetch_add(took, Ordering::Relaxed);
        let overran = matches!(judged.assessment.verdict.reason, Reason::RuleLimit(_));
        if breaker.is_some_and(|breaker| breaker.record(of, now, overran)) {
            // The same answer as while it waits: an object that is tried again and again does not change its parent.
            return unknown_assessment(Reason::RuleTooSlow);
        }
        if judged.reads_clock {
            return limit_to_renewal(judged.assessment.verdict, now);
        }
        judged.assessment
    }
}

/// How far the assessment of an object by one rule is.
pub(super) enum RuleAssessment {
    /// It is known.
    Known(Assessment),
    /// The object awaits the rule.
    Awaited,
}

impl From<Assessment> for RuleAssessment {
    fn from(assessment: Assessment) -> RuleAssessment {
        RuleAssessment::Known(assessment)
    }
}

/// The text of an object as its rule reads it.
pub(super) fn rule_text<'t>(rule: &UserRule, child: &ChildObject, object: &'t RawValue) -> Cow<'t, str> {
    let (api_version, kind) = &rule.of;
    text_with_type(object.get(), child, api_version, kind)
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
