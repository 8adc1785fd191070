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

/// This assessment for as long as it may stand for a version that waits since then.
fn limit_standing(assessment: &Assessment, since: Time) -> Assessment {
    let end = (since + STANDING_LIMIT, overdue_verdict());
    let own = assessment.then.as_deref().filter(|then| then.1.reason != Reason::RuleOverdue).cloned();
    let then = own.into_iter().chain([end]).min_by_key(|(at, _)| *at);
    Assessment { verdict: assessment.verdict.clone(), then: then.map(Box::new) }
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
