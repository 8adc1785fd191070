//! Rules for Job and CronJob: completion and its result.

use super::count::clamp_count;
use crate::branch::Branch;
use crate::counted_unit::CountedUnit;
use crate::facts::{ConditionFacts, Facts};
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Level, Reason};

pub(crate) fn judge_job<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let s = &f.status;
    if let Some(failed) = s.find_true_condition("Failed").or_else(|| s.find_true_condition("FailureTarget")) {
        return ReadinessRuling::failed(Reason::JobFailed(failure_text(failed)), Branch::Condition(failed));
    }
    if let Some(complete) = s.find_true_condition("Complete") {
        return ReadinessRuling::ready(Reason::Complete, Branch::Condition(complete));
    }
    if let Some(met) = s.find_true_condition("SuccessCriteriaMet") {
        return ReadinessRuling::progressing(Reason::Finishing, Branch::Condition(met));
    }
    if f.spec.suspended == Some(true) {
        return ReadinessRuling::suspended(Reason::Suspended, Branch::Fact("spec.suspend is true"));
    }
    if s.started.is_none() {
        let branch = Branch::Fact("status.startTime is absent");
        // A Job that waits in a queue is created long before it is to start.
        return ReadinessRuling::progressing(Reason::NotStarted, branch).escalate_after(
            f.created.max(f.changed),
            limits.pending,
            Level::Stuck,
        );
    }
    let branch = Branch::Fact("neither conditions[Complete] nor conditions[Failed] is True");
    match f.spec.completions {
        Some(wanted) if wanted > 0 => {
            let done = clamp_count(s.succeeded.unwrap_or(0));
            ReadinessRuling::progressing(
                Reason::Count(CountedUnit::Completions, done, clamp_count(wanted)),
                branch,
            )
        }
        _ => ReadinessRuling::progressing(Reason::Running, branch),
    }
}

fn failure_text(failed: &ConditionFacts) -> BoundedText {
    BoundedText::new(if failed.reason.is_empty() { &failed.name } else { &failed.reason })
}

/// Judges a CronJob: ready while it runs its schedule. Its Jobs have verdicts of their own.
pub(super) fn judge_cron_job(f: &Facts) -> ReadinessRuling<'_> {
    let s = &f.status;
    if f.spec.suspended == Some(true) {
        return ReadinessRuling::suspended(Reason::Suspended, Branch::Fact("spec.suspend is true"));
    }
    let Some(scheduled) = s.last_schedule else {
        return ReadinessRuling::ready(Reason::NeverRan, Branch::Fact("status.lastScheduleTime is absent"));
    };
    if s.active.unwrap_or(0) > 0 {
        return ReadinessRuling::ready(Reason::Ready, Branch::Fact("status.active lists a run"));
    }
    match s.last_success {
        Some(success) if success >= scheduled => {
            ReadinessRuling::ready(Reason::Ready, Branch::Fact("its last run succeeded"))
        }
        _ => ReadinessRuling::failed(
            Reason::LastRunFailed,
            Branch::Fact("status.lastSuccessfulTime is before status.lastScheduleTime"),
        ),
    }
}
