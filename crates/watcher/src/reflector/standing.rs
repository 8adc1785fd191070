//! What stands for an object while its newest version awaits a custom rule.
//!
//! The verdict on the version before stands, for a while. A parent that is ready stays so with it; none becomes so, because
//! its weight says that it is unjudged. After the while the object is Unknown.

use std::time::Duration;

use readiness::rollup::ChildWeight;
use readiness::{Assessment, Level, Reason, Time, Verdict};

use super::refinement::{plain_assessments, replace_assessment};
use super::row::{AwaitedRule, ObjectRow};

/// Longest time for which a verdict stands for a newer version than it was given on.
pub(super) const STANDING_LIMIT: Duration = Duration::from_secs(30);

/// The verdict on an object that its rule has not come to in time.
pub(super) const fn overdue_verdict() -> Verdict {
    Verdict::new(Level::Unknown, Reason::RuleOverdue)
}

/// What this assessment says by then, for as long as it may stand for a version that waits since then. A turn that it foresaw
/// for later was one of the version before: an assessment has room for one turn, and what stands has to end.
fn limit_standing(assessment: &Assessment, since: Time) -> Assessment {
    let is_limit = assessment.then.as_deref().is_some_and(|then| then.1.reason == Reason::RuleOverdue);
    let verdict = if is_limit { &assessment.verdict } else { assessment.verdict_at(since) };
    let end = (since + STANDING_LIMIT, overdue_verdict());
    Assessment { verdict: verdict.clone(), then: Some(Box::new(end)) }
}

/// What stands for an object of which nothing was known before.
pub(super) fn first_standing(now: Time) -> Assessment {
    limit_standing(&Verdict::new(Level::Unknown, Reason::RuleAwaited).into(), now)
}

/// Lets what is known of an object stand for the rules that its new row awaits. `is_of_plan`: the old row was put by the plan
/// of the new one, so that its verdict on the same version is the rule's own.
pub(super) fn inherit_standing(row: &mut ObjectRow, old: &ObjectRow, is_of_plan: bool) {
    let awaited = row.extras.as_ref().map(|aside| aside.awaited.clone()).unwrap_or_default();
    if awaited.is_empty() || old.is_remembered() || old.kind != row.kind {
        return;
    }
    let known = plain_assessments(old);
    for AwaitedRule { rule_index, since } in awaited {
        let Some(standing) = known.get(usize::from(rule_index)) else { continue };
        let waits = old.awaited_since(rule_index);
        if is_of_plan && waits.is_none() && old.version == row.version {
            replace_assessment(row, usize::from(rule_index), standing.clone());
            row.end_awaiting(rule_index);
            continue;
        }
        let since = waits.unwrap_or(since);
        replace_assessment(row, usize::from(rule_index), limit_standing(standing, since));
        row.await_rule_since(rule_index, since);
    }
}

/// Takes in what a rule says of a version of an object, which was taken from the queue then. Returns `true` if that changed
/// anything.
pub(super) fn settle_rule(
    row: &mut ObjectRow,
    (rule_index, version): (u16, u64),
    own: Assessment,
    taken_at: Time,
) -> bool {
    let awaits = row.awaited_since(rule_index).is_some();
    if row.version < version || (row.version > version && !awaits) {
        return false;
    }
    let before = (row.assessment.clone(), row.extras.clone());
    if row.version == version {
        replace_assessment(row, usize::from(rule_index), own);
        row.end_awaiting(rule_index);
    } else {
        // A newer version waits, of which nothing was seen before this one was taken.
        replace_assessment(row, usize::from(rule_index), limit_standing(&own, taken_at));
        row.await_rule_since(rule_index, taken_at);
    }
    before != (row.assessment.clone(), row.extras.clone())
}

/// There is no room to wait for the rule.
pub(super) fn give_up_rule(row: &mut ObjectRow, (rule_index, version): (u16, u64)) -> bool {
    let gives_up = row.version == version && row.awaited_since(rule_index).is_some();
    if gives_up {
        replace_assessment(row, usize::from(rule_index), overdue_verdict().into());
        row.end_awaiting(rule_index);
    }
    gives_up
}

/// Weight of an object by one rule at `now`.
pub(super) fn weigh_by_rule(
    row: &ObjectRow,
    rule_index: usize,
    assessment: &Assessment,
    now: Time,
) -> ChildWeight {
    let verdict = assessment.verdict_at(now);
    let weight = ChildWeight::of(verdict.level)
        .with_terminal(verdict.is_terminal())
        .with_steadiness(verdict.steadiness);
    let awaits =
        || u16::try_from(rule_index).ok().and_then(|rule_index| row.awaited_since(rule_index)).is_some();
    match (verdict.level, &verdict.reason) {
        // It may be anything: as little as one that was ready does it contradict an answer.
        (_, Reason::RuleAwaited) => ChildWeight::of(Level::Ready).unjudged(),
        (Level::Ready | Level::Suspended, _) if awaits() => weight.unjudged(),
        _ => weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_ends_whatever_it_foresaw() {
        let (since, end) = (Time(100_000), Time(130_000));
        let (before, after) = (
            Verdict::new(Level::Progressing, Reason::NotStarted),
            Verdict::new(Level::Stuck, Reason::NotStarted),
        );
        for (turn, stands) in [(50_000, &after), (100_000, &after), (110_000, &before), (500_000, &before)] {
            let known =
                Assessment { verdict: before.clone(), then: Some(Box::new((Time(turn), after.clone()))) };
            let mut standing = limit_standing(&known, since);
            // It waits on, for a newer version.
            for _ in 0..2 {
                assert_eq!(standing.verdict_at(since), stands, "{turn}");
                assert_eq!(standing.verdict_at(Time(129_999)), stands, "{turn}");
                assert_eq!(*standing.verdict_at(end), overdue_verdict(), "{turn}");
                standing = limit_standing(&standing, since);
            }
        }
    }
}
