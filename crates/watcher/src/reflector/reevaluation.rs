//! Verdicts of rules that read the clock: the same object may get another one later, though nothing of it changes.
//!
//! The object is read live at the next full half minute and evaluated again. A verdict that could not be renewed ends, so
//! that no parent rests on it. Full half minutes are the same for all objects: what is evaluated together can be listed.

use std::time::Duration;

use readiness::{Assessment, Level, Reason, Time, Verdict};

/// Time between two evaluations of an object by a rule that reads the clock. 30 s.
const REEVALUATION_PERIOD: Duration = Duration::from_secs(30);

/// Time after the first attempt to renew a verdict at which it ends: that for which a kind may be blind, too. 2 min.
const RENEWAL_LIMIT: Duration = Duration::from_mins(2);

/// The first full half minute after `now`.
fn next_period(now: Time) -> Time {
    let period = i64::try_from(REEVALUATION_PERIOD.as_millis()).unwrap_or(i64::MAX);
    Time(now.0 - now.0.rem_euclid(period)) + REEVALUATION_PERIOD
}

/// A verdict that a rule gave at `now`, by the clock.
pub(super) fn limit_to_renewal(verdict: Verdict, now: Time) -> Assessment {
    let end = (next_period(now) + RENEWAL_LIMIT, Verdict::new(Level::Unknown, Reason::RuleOutOfDate));
    Assessment { verdict, then: Some(Box::new(end)) }
}

/// The verdict is to be renewed, because a rule has read the clock, or there was no room for the object.
pub(super) fn is_renewed(assessment: &Assessment) -> bool {
    assessment.then.as_deref().is_some_and(|then| then.1.reason == Reason::RuleOutOfDate)
}

/// When the first of these verdicts was to be renewed; `None` if the clock has no part in them.
fn due_since<'a>(assessments: impl Iterator<Item = &'a Assessment>) -> Option<Time> {
    let end = |assessment: &Assessment| {
        assessment.then.as_deref().filter(|_| is_renewed(assessment)).map(|then| then.0)
    };
    let first = assessments.filter_map(end).min()?;
    Some(Time(first.0.saturating_sub(i64::try_from(RENEWAL_LIMIT.as_millis()).unwrap_or(i64::MAX))))
}

/// The next moment after `now` at which an object of these verdicts is to be read and evaluated again, if it is at all.
pub(super) fn next_reevaluation<'a>(
    verdicts: impl Iterator<Item = &'a Assessment>,
    now: Time,
) -> Option<Time> {
    due_since(verdicts).map(|_| next_period(now))
}

/// Returns `true` if an object of these verdicts is to be read and evaluated again.
pub(super) fn is_reevaluation_due<'a>(verdicts: impl Iterator<Item = &'a Assessment>, now: Time) -> bool {
    due_since(verdicts).is_some_and(|due| due <= now)
}
