//! Causes found in the objects that an unready workload owns: they refine its reason and decide when it is stuck.
//!
//! Workload controllers are leaves: the objects they own are not watched. The resync reads them live.

use readiness::{Assessment, CountedUnit, Level, Reason, Steadiness, Verdict};

use super::row::{ObjectRow, RefinedCause, RowExtras};
use super::unready_since::inherit_since;

/// Inherits the unready time and, if the spec is the same, the causes found below the object.
pub(super) fn inherit_from(row: &mut ObjectRow, old: &ObjectRow) {
    inherit_since(row, old);
    if row.is_remembered() {
        return;
    }
    let Some((found, plain)) = old.extras.as_ref().and_then(|aside| aside.refined.as_ref()) else {
        return;
    };
    // If policies were added or removed, the causes found under one rule do not fit another.
    if old.spec_version == row.spec_version && plain.len() == row.all_assessments().count() {
        let stands = |found: &&RefinedCause| !has_more_children(row, old, found);
        let found = found.iter().map(|found| found.as_ref().filter(stands).cloned()).collect();
        apply_refinement(row, found);
    }
}

/// Returns `true` if a workload whose pods were refused now has more of them: the refusal is over or starts again.
/// The next resync decides.
fn has_more_children(row: &ObjectRow, old: &ObjectRow, found: &RefinedCause) -> bool {
    let refused = matches!(found.assessment.verdict.reason, Reason::ReplicaFailure(_));
    let created = |own: &Assessment| match own.verdict.reason {
        Reason::Count(CountedUnit::Created, have, _) => Some(have),
        _ => None,
    };
    let grew = |(was, is): (Option<u32>, Option<u32>)| was.is_some_and(|was| is.is_none_or(|is| is > was));
    let before = plain_assessments(old);
    refused && before.iter().map(created).zip(row.all_assessments().map(created)).any(grew)
}

/// Sets the causes found below an object, for each rule index.
pub(super) fn apply_refinement(row: &mut ObjectRow, found: Vec<Option<RefinedCause>>) {
    let plain = plain_assessments(row);
    if found.iter().all(Option::is_none) || !plain.iter().any(is_explainable) {
        return set_assessments(row, plain, None);
    }
    let through = |rule_index: usize| found.get(rule_index).and_then(Option::as_ref);
    let refined = plain.iter().enumerate().map(|(rule_index, own)| match through(rule_index) {
        Some(found) => explain_with_cause(own, found),
        None => own.clone(),
    });
    let refined = refined.collect();
    set_assessments(row, refined, Some((found, plain)));
}

/// Replaces the object's own verdict by one rule; the causes found below it stay.
pub(super) fn replace_assessment(row: &mut ObjectRow, rule_index: usize, own: Assessment) {
    let mut plain = plain_assessments(row);
    let Some(held) = plain.get_mut(rule_index) else { return };
    *held = own;
    let found = row.extras.as_ref().and_then(|aside| aside.refined.as_ref()).map(|(found, _)| found.clone());
    set_assessments(row, plain, None);
    if let Some(found) = found {
        apply_refinement(row, found);
    }
}

/// Returns the object's own verdicts, without the causes found below it.
pub(super) fn plain_assessments(row: &ObjectRow) -> Vec<Assessment> {
    let kept = row.extras.as_ref().and_then(|aside| aside.refined.as_ref());
    kept.map_or_else(|| row.all_assessments().cloned().collect(), |(_, plain)| plain.clone())
}

fn set_assessments(
    row: &mut ObjectRow,
    assessments: Vec<Assessment>,
    refined: Option<(Vec<Option<RefinedCause>>, Vec<Assessment>)>,
) {
    let mut assessments = assessments.into_iter();
    if let Some(first) = assessments.next() {
        row.assessment = first;
    }
    let before = row.extras.take().map(|aside| *aside).unwrap_or_default();
    row.extras = RowExtras { further_assessments: assessments.collect(), refined, ..before }.into_boxed();
}

fn is_explainable(own: &Assessment) -> bool {
    matches!(own.verdict.level, Level::Progressing | Level::Failed | Level::Stuck)
}

/// Combines the object's own verdict with the cause. A cause may make it stuck, never better and never failed: only its
/// controller reports a workload as failed.
fn explain_with_cause(own: &Assessment, found: &RefinedCause) -> Assessment {
    if !is_explainable(own) {
        return own.clone();
    }
    let with = |own: &Verdict, below: &Verdict| {
        let stuck = below.level == Level::Stuck && own.level == Level::Progressing;
        Verdict {
            level: if stuck { Level::Stuck } else { own.level },
            reason: own.reason.clone().with_cause(&found.name, below.reason.clone()),
            steadiness: if stuck { Steadiness::Unsteady } else { own.steadiness },
        }
    };
    let below = &found.assessment;
    let own_then = own.then.as_deref().map(|(at, then)| (*at, with(then, &below.verdict)));
    let below_then = below.then.as_deref().map(|(at, then)| (*at, with(&own.verdict, then)));
    let then = own_then.into_iter().chain(below_then).min_by_key(|(at, _)| *at);
    Assessment { verdict: with(&own.verdict, &below.verdict), then: then.map(Box::new) }
}
