//! Interim assessment of an object whose newest version awaits a custom rule.
//!
//! The verdict on the previous version stays in force for at most [`INTERIM_LIMIT`]. A parent that is ready stays ready with
//! it; no parent becomes ready, because the weight of the object says that it is unjudged. After the limit the object is Unknown.

use std::time::Duration;

use readiness::rollup::ChildWeight;
use readiness::{Assessment, Level, Reason, Time, Verdict};

use super::reevaluation::{is_renewed, limit_to_renewal};
use super::refinement::{plain_assessments, replace_assessment};
use super::row::{AwaitedRule, ObjectRow};

/// Longest time for which a verdict stands for a newer version than it was given on.
pub(super) const INTERIM_LIMIT: Duration = Duration::from_secs(30);

/// The verdict on an object that its rule has not come to in time.
pub(super) const fn overdue_verdict() -> Verdict {
    Verdict::new(Level::Unknown, Reason::RuleOverdue)
}

/// The verdict of this assessment at `since`, until [`INTERIM_LIMIT`] after it, for a version that waits since then. A turn that
/// the assessment foresaw for later belongs to the previous version: an assessment has room for one turn, which ends the
/// interim.
fn limit_interim(assessment: &Assessment, since: Time) -> Assessment {
    let is_limit = assessment.then.as_deref().is_some_and(|then| then.1.reason == Reason::RuleOverdue);
    let verdict = if is_limit { &assessment.verdict } else { assessment.verdict_at(since) };
    let end = (since + INTERIM_LIMIT, overdue_verdict());
    Assessment { verdict: verdict.clone(), then: Some(Box::new(end)) }
}

/// Interim assessment of an object that was not known before.
pub(super) fn first_interim(now: Time) -> Assessment {
    limit_interim(&Verdict::new(Level::Unknown, Reason::RuleAwaited).into(), now)
}

/// Copies the assessments of the old row, as interim ones, for the rules that the new row awaits. `is_of_plan`: the old row
/// was put by the plan of the new one, so that its verdict on the same version is the rule's own.
pub(super) fn inherit_interim(row: &mut ObjectRow, old: &ObjectRow, is_of_plan: bool) {
    let awaited = row.extras.as_ref().map(|aside| aside.awaited.clone()).unwrap_or_default();
    if awaited.is_empty() || old.is_remembered() || old.kind != row.kind {
        return;
    }
    let known = plain_assessments(old);
    for AwaitedRule { rule_index, since } in awaited {
        let Some(held) = known.get(usize::from(rule_index)) else { continue };
        let waits = old.awaited_since(rule_index);
        if is_of_plan && waits.is_none() && old.version == row.version {
            replace_assessment(row, usize::from(rule_index), held.clone());
            row.end_awaiting(rule_index);
            continue;
        }
        let since = waits.unwrap_or(since);
        replace_assessment(row, usize::from(rule_index), limit_interim(held, since));
        row.await_rule_since(rule_index, since);
    }
}

/// Stores the assessment by a rule of a version of an object that was taken from the queue at `taken_at`. Returns `true` if
/// that changed anything.
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
        replace_assessment(row, usize::from(rule_index), limit_interim(&own, taken_at));
        row.await_rule_since(rule_index, taken_at);
    }
    before != (row.assessment.clone(), row.extras.clone())
}

/// Those of the rules that an object awaits which have to be evaluated: where it is read again because some found no room, the
/// verdicts of the others stand.
pub(super) fn rules_to_evaluate(row: &ObjectRow, mut awaited: Vec<u16>) -> Vec<u16> {
    let known = plain_assessments(row);
    let is_given_up = |held: &Assessment| held.verdict.reason == Reason::RuleOverdue && is_renewed(held);
    if known.iter().any(is_given_up) {
        let stands =
            |rule_index: u16| known.get(usize::from(rule_index)).is_some_and(|held| !is_renewed(held));
        awaited.retain(|rule_index| row.awaited_since(*rule_index).is_some() || !stands(*rule_index));
    }
    awaited
}

/// Marks an object overdue for which the queue of the rule has no room, until it is read again: as one of which a rule has read
/// the clock, because nothing else would bring it once there is room. Returns `true` if that changed anything.
pub(super) fn give_up_rule(row: &mut ObjectRow, (rule_index, version): (u16, u64), now: Time) -> bool {
    let gives_up = row.version == version && row.awaited_since(rule_index).is_some();
    if gives_up {
        replace_assessment(row, usize::from(rule_index), limit_to_renewal(overdue_verdict(), now));
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
            let mut interim = limit_interim(&known, since);
            // It waits on, for a newer version.
            for _ in 0..2 {
                assert_eq!(interim.verdict_at(since), stands, "{turn}");
                assert_eq!(interim.verdict_at(Time(129_999)), stands, "{turn}");
                assert_eq!(*interim.verdict_at(end), overdue_verdict(), "{turn}");
                interim = limit_interim(&interim, since);
            }
        }
    }
}
