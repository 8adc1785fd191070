//! HorizontalPodAutoscaler and PodDisruptionBudget: do they do their work?

use super::count;
use crate::assess::{Limits, Ruling, unobserved};
use crate::branch::Branch;
use crate::facts::{Condition, Facts, Truth};
use crate::reason::Counted;
use crate::text::Text;
use crate::{Level, Reason};

/// It scales if it may (`AbleToScale`) and knows how far (`ScalingActive`).
pub(super) fn autoscaler<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    let s = &f.status;
    if let Some(active) = s.condition("ScalingActive").filter(|c| &*c.reason == "ScalingDisabled") {
        return Ruling::suspended(
            Reason::SaysSuspended(Text::new("scaling disabled")),
            Branch::Condition(active),
        );
    }
    for name in ["AbleToScale", "ScalingActive"] {
        let Some(condition) = s.condition(name) else {
            return Ruling::progressing(Reason::NotStarted, Branch::Fact("it has no opinion on scaling yet"));
        };
        if condition.status != Truth::True {
            return unable(condition, limits);
        }
    }
    Ruling::ready(
        Reason::Ready,
        Branch::Fact("conditions[AbleToScale] and conditions[ScalingActive] are True"),
    )
}

/// Metrics are missing while pods start, so only what lasts is a failure.
fn unable<'a>(condition: &'a Condition, limits: &Limits) -> Ruling<'a> {
    let text = Text::new(if condition.reason.is_empty() { &condition.name } else { &condition.reason });
    let branch = Branch::Condition(condition);
    if condition.reason.starts_with("Invalid") || &*condition.reason == "AmbiguousSelector" {
        return Ruling::failed(Reason::SaysError(text), branch);
    }
    Ruling::progressing(Reason::SaysError(text), branch).until(condition.since, limits.pending, Level::Failed)
}

/// It protects what it is meant to protect while enough pods are healthy; that none may be spared is no fault.
pub(super) fn budget(f: &Facts) -> Ruling<'_> {
    let s = &f.status;
    let (Some(_), Some((healthy, wanted))) = (s.observed, s.healthy) else { return unobserved(f) };
    let allowed = s.condition("DisruptionAllowed");
    if let Some(failed) = allowed.filter(|c| &*c.reason == "SyncFailed") {
        return Ruling::failed(Reason::SaysError(Text::new(&failed.reason)), Branch::Condition(failed));
    }
    let branch = Branch::Counts("status.currentHealthy", healthy, "status.desiredHealthy", wanted);
    if healthy < wanted {
        return Ruling::progressing(Reason::Count(Counted::Healthy, count(healthy), count(wanted)), branch);
    }
    Ruling::ready(Reason::Ready, branch)
}
