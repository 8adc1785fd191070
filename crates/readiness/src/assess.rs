//! Assessment of one object: the order in which its rules apply.

use crate::branch::Branch;
use crate::facts::Facts;
use crate::finalizer_holder::FinalizerHold;
use crate::kind::RuleKind;
use crate::readiness_ruling::ReadinessRuling;
use crate::stale_generation::rule_on_stale_generation;
use crate::stuck_limits::StuckLimits;
use crate::{Assessment, Level, Reason, Steadiness, Time, Verdict, custom, rules};

/// Assesses one object by the built-in rules.
pub fn assess(kind: RuleKind, facts: &Facts, limits: &StuckLimits) -> Assessment {
    rule_by_kind(kind, facts, limits).assessment
}

/// Applies the checks that precede every rule, built-in or custom: the object is being deleted, or its status is about
/// another generation.
pub fn assess_before_rules(kind: RuleKind, facts: &Facts, limits: &StuckLimits) -> Option<Assessment> {
    let deleted = facts.deleted.map(|deleted| rule_on_deletion(kind, facts, deleted, limits));
    deleted.or_else(|| rule_on_stale_status(kind, facts)).map(|ruling| ruling.assessment)
}

/// Assesses one object and names the branch of the rule that decided.
pub fn assess_with_branch<'a>(
    kind: RuleKind,
    facts: &'a Facts,
    limits: &StuckLimits,
) -> (Assessment, Branch<'a>) {
    let ruling = rule_by_kind(kind, facts, limits);
    (ruling.assessment, ruling.branch)
}

/// Returns the final outcome of an object that runs to completion, even if it is being deleted or already gone; `None`
/// if it has not finished.
///
/// A Job may be observed for the last time when it already carries its deletion timestamp.
pub fn final_outcome(kind: RuleKind, facts: &Facts) -> Option<Verdict> {
    let verdict = match kind {
        RuleKind::Job => rules::judge_job(facts, &StuckLimits::default()).assessment.verdict,
        RuleKind::Pod => rules::judge_pod(facts, &StuckLimits::default()).assessment.verdict,
        RuleKind::Run => custom::judge_custom(kind, facts).assessment.verdict,
        _ => return None,
    };
    let good = verdict.level == Level::Ready && (verdict.reason == Reason::Complete || kind == RuleKind::Run);
    (good || verdict.is_terminal()).then_some(verdict)
}

/// Applies the rules in order: deletion, observed generation, the `Stalled` and `Reconciling` conditions, the rule of
/// the kind, the limit of its progress.
fn rule_by_kind<'a>(kind: RuleKind, facts: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    if let Some(deleted) = facts.deleted {
        return rule_on_deletion(kind, facts, deleted, limits);
    }
    let ruling = match kind {
        RuleKind::Plain => ReadinessRuling::ready(Reason::Exists, Branch::Fact("it exists")),
        RuleKind::Run | RuleKind::Other => custom::judge_custom(kind, facts),
        _ => rule_on_stale_status(kind, facts)
            .or_else(|| custom::rule_on_abnormal_condition(facts))
            .unwrap_or_else(|| rules::judge_built_in(kind, facts, limits)),
    };
    rules::limit_progress(ruling, kind, facts, limits)
}

/// Rules on a status that is about another generation. A workload that it says to be rolled out and available may only
/// have been scaled.
fn rule_on_stale_status(kind: RuleKind, facts: &Facts) -> Option<ReadinessRuling<'_>> {
    let ruling = rule_on_stale_generation(facts)?;
    let was_available = rules::is_available_workload(kind, facts);
    Some(ruling.with_steadiness(if was_available { Steadiness::Unobserved } else { Steadiness::Unsteady }))
}

fn rule_on_deletion<'a>(
    kind: RuleKind,
    facts: &'a Facts,
    deleted: Time,
    limits: &StuckLimits,
) -> ReadinessRuling<'a> {
    let reason = match facts.finalizers.as_slice() {
        [] if kind == RuleKind::Namespace => {
            rules::remaining_namespace_content(facts).unwrap_or(Reason::Terminating)
        }
        [] => Reason::Terminating,
        held => Reason::Finalizers(Box::new(FinalizerHold::new(deleted, held, &facts.setters))),
    };
    ReadinessRuling::new(Level::Terminating, reason, Branch::Fact("metadata.deletionTimestamp is set"))
        .escalate_after(Some(deleted), limits.terminating, Level::Stuck)
}
