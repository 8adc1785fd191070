//! Job and CronJob: did it end, and how?

use super::count;
use crate::assess::{Limits, Ruling};
use crate::branch::Branch;
use crate::facts::{Condition, Facts};
use crate::reason::Counted;
use crate::text::Text;
use crate::{Level, Reason};

pub(crate) fn job<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    let s = &f.status;
    if let Some(failed) = s.holds("Failed").or_else(|| s.holds("FailureTarget")) {
        return Ruling::failed(Reason::JobFailed(why(failed)), Branch::Condition(failed));
    }
    if let Some(complete) = s.holds("Complete") {
        return Ruling::ready(Reason::Complete, Branch::Condition(complete));
    }
    if let Some(met) = s.holds("SuccessCriteriaMet") {
        return Ruling::progressing(Reason::Finishing, Branch::Condition(met));
    }
    if f.spec.suspended == Some(true) {
        return Ruling::suspended(Reason::Suspended, Branch::Fact("spec.suspend is true"));
    }
    if s.started.is_none() {
        let branch = Branch::Fact("status.startTime is absent");
        return Ruling::progressing(Reason::NotStarted, branch).until(
            f.created,
            limits.pending,
            Level::Stuck,
        );
    }
    let branch = Branch::Fact("neither conditions[Complete] nor conditions[Failed] is True");
    match f.spec.completions {
        Some(wanted) if wanted > 0 => {
            let done = count(s.succeeded.unwrap_or(0));
            Ruling::progressing(Reason::Count(Counted::Completions, done, count(wanted)), branch)
        }
        _ => Ruling::progressing(Reason::Running, branch),
    }
}

fn why(failed: &Condition) -> Text {
    Text::new(if failed.reason.is_empty() { &failed.name } else { &failed.reason })
}

/// A schedule is ready while it runs what it should. What it runs are Jobs, each with a verdict of its own.
pub(super) fn cron_job(f: &Facts) -> Ruling<'_> {
    let s = &f.status;
    if f.spec.suspended == Some(true) {
        return Ruling::suspended(Reason::Suspended, Branch::Fact("spec.suspend is true"));
    }
    let Some(scheduled) = s.last_schedule else {
        return Ruling::ready(Reason::NeverRan, Branch::Fact("status.lastScheduleTime is absent"));
    };
    if s.active.unwrap_or(0) > 0 {
        return Ruling::ready(Reason::Ready, Branch::Fact("status.active lists a run"));
    }
    match s.last_success {
        Some(success) if success >= scheduled => {
            Ruling::ready(Reason::Ready, Branch::Fact("its last run succeeded"))
        }
        _ => Ruling::failed(
            Reason::LastRunFailed,
            Branch::Fact("status.lastSuccessfulTime is before status.lastScheduleTime"),
        ),
    }
}
