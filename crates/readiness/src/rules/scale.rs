//! Rules for HorizontalPodAutoscaler and PodDisruptionBudget.

use super::count::clamp_count;
use crate::branch::Branch;
use crate::counted_unit::CountedUnit;
use crate::facts::{ConditionFacts, Facts, TruthValue};
use crate::readiness_ruling::ReadinessRuling;
use crate::stale_generation::rule_on_unobserved_generation;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Level, Reason};

/// Judges an autoscaler: ready if it can scale (`AbleToScale`) and knows how far (`ScalingActive`).
pub(super) fn judge_autoscaler<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let s = &f.status;
    if let Some(active) = s.find_condition("ScalingActive").filter(|c| &*c.reason == "ScalingDisabled") {
        return ReadinessRuling::suspended(
            Reason::SaysSuspended(BoundedText::new("scaling disabled")),
            Branch::Condition(active),
        );
    }
    for name in ["AbleToScale", "ScalingActive"] {
        let Some(condition) = s.find_condition(name) else {
            return ReadinessRuling::progressing(
                Reason::NotStarted,
                Branch::Fact("it has no scaling condition yet"),
            );
        };
        if condition.status != TruthValue::True {
            return judge_unable_to_scale(condition, limits);
        }
    }
    ReadinessRuling::ready(
        Reason::Ready,
        Branch::Fact("conditions[AbleToScale] and conditions[ScalingActive] are True"),
    )
}

/// Judges an autoscaler that cannot scale. Metrics are missing while pods start, so only a lasting condition is a
/// failure.
fn judge_unable_to_scale<'a>(condition: &'a ConditionFacts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let text =
        BoundedText::new(if condition.reason.is_empty() { &condition.name } else { &condition.reason });
    let branch = Branch::Condition(condition);
    if condition.reason.starts_with("Invalid") || &*condition.reason == "AmbiguousSelector" {
        return ReadinessRuling::failed(Reason::SaysError(text), branch);
    }
    ReadinessRuling::progressing(Reason::SaysError(text), branch).escalate_after(
        condition.since,
        limits.pending,
        Level::Failed,
    )
}

/// Judges a disruption budget: ready while enough pods are healthy. Allowing no disruption is not a fault.
pub(super) fn judge_disruption_budget(f: &Facts) -> ReadinessRuling<'_> {
    let s = &f.status;
    let (Some(_), Some((healthy, wanted))) = (s.observed, s.healthy) else {
        return rule_on_unobserved_generation(f);
    };
    let allowed = s.find_condition("DisruptionAllowed");
    if let Some(failed) = allowed.filter(|c| &*c.reason == "SyncFailed") {
        return ReadinessRuling::failed(
            Reason::SaysError(BoundedText::new(&failed.reason)),
            Branch::Condition(failed),
        );
    }
    let branch = Branch::Counts("status.currentHealthy", healthy, "status.desiredHealthy", wanted);
    if healthy < wanted {
        return ReadinessRuling::progressing(
            Reason::Count(CountedUnit::Healthy, clamp_count(healthy), clamp_count(wanted)),
            branch,
        );
    }
    ReadinessRuling::ready(Reason::Ready, branch)
}
