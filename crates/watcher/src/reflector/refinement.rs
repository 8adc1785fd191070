//! Causes found in the objects that an unready workload owns: they refine its reason and decide when it is stuck.
//!
//! Workload controllers are leaves: the objects they own are not watched. The resync reads them live.

use std::sync::Arc;

use aggregator::ObjectId;
use readiness::{Assessment, CountedUnit, Level, Reason, Time, Verdict};

use super::row::ObjectRow;
use super::{ApplyOutcome, Reflector};
use crate::plan::Interest;

/// An owned object that explains why its owner is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefinedCause {
    /// Such as `Pod web-0`.
    pub name: Box<str>,
    /// Assessment of that object by its own rule.
    pub assessment: Assessment,
}

impl Reflector {
    /// Applies the causes found below an object, or their absence, for each rule index, because limits differ. They
    /// hold until the next resync, until the object is ready, or until its spec changes. The lenses are those of `interest`: where
    /// its kind is judged by another one now, nothing is to be told.
    pub fn refine(
        &self,
        id: ObjectId,
        interest: &Arc<Interest>,
        found: Vec<Option<RefinedCause>>,
    ) -> ApplyOutcome {
        let plan = self.planned(interest.id).filter(|plan| Arc::ptr_eq(&plan.interest, interest));
        let Some(plan) = plan else { return ApplyOutcome::Refused };
        let moved = self.change_slot(id, |slot| {
            let row = slot.row.as_mut().filter(|row| row.kind == interest.id && plan.holds())?;
            let before = (row.assessment.clone(), row.extras.clone());
            row.apply_refinement(found);
            Some(before != (row.assessment.clone(), row.extras.clone())).map(|moved| (moved, row.version))
        });
        match moved.flatten() {
            Some((true, version)) => {
                self.mark_dirty(id);
                ApplyOutcome::Moved(version)
            }
            Some((false, _)) => ApplyOutcome::Same,
            None => ApplyOutcome::Unwanted,
        }
    }
}

impl ObjectRow {
    /// Inherits the unready time and, if the spec is the same, the causes found below the object.
    pub(super) fn inherit_from(&mut self, old: &ObjectRow) {
        self.inherit_since(old);
        if self.is_remembered() {
            return;
        }
        let Some((found, plain)) = old.extras.as_ref().and_then(|aside| aside.refined.as_ref()) else {
            return;
        };
        // If policies were added or removed, the causes found under one rule do not fit another.
        if old.generation == self.generation && plain.len() == self.all_assessments().count() {
            let stands = |found: &&RefinedCause| !self.has_more_children(old, found);
            let found = found.iter().map(|found| found.as_ref().filter(stands).cloned()).collect();
            self.apply_refinement(found);
        }
    }

    /// Returns `true` if a workload whose pods were refused now has more of them: the refusal is over or starts again.
    /// The next resync decides.
    fn has_more_children(&self, old: &ObjectRow, found: &RefinedCause) -> bool {
        let refused = matches!(found.assessment.verdict.reason, Reason::ReplicaFailure(_));
        let created = |own: &Assessment| match own.verdict.reason {
            Reason::Count(CountedUnit::Created, have, _) => Some(have),
            _ => None,
        };
        let grew =
            |(was, is): (Option<u32>, Option<u32>)| was.is_some_and(|was| is.is_none_or(|is| is > was));
        let before = old.plain_assessments();
        refused && before.iter().map(created).zip(self.all_assessments().map(created)).any(grew)
    }

    fn apply_refinement(&mut self, found: Vec<Option<RefinedCause>>) {
        let plain = self.plain_assessments();
        if found.iter().all(Option::is_none) || !plain.iter().any(is_explainable) {
            return self.set_assessments(plain, None);
        }
        let through = |lens: usize| found.get(lens).and_then(Option::as_ref);
        let refined = plain.iter().enumerate().map(|(lens, own)| match through(lens) {
            Some(found) => explain_with_cause(own, found),
            None => own.clone(),
        });
        let refined = refined.collect();
        self.set_assessments(refined, Some((found, plain)));
    }

    /// Returns the object's own verdicts, without the causes found below it.
    fn plain_assessments(&self) -> Vec<Assessment> {
        let kept = self.extras.as_ref().and_then(|aside| aside.refined.as_ref());
        kept.map_or_else(|| self.all_assessments().cloned().collect(), |(_, plain)| plain.clone())
    }

    fn set_assessments(
        &mut self,
        assessments: Vec<Assessment>,
        refined: Option<(Vec<Option<RefinedCause>>, Vec<Assessment>)>,
    ) {
        let mut assessments = assessments.into_iter();
        if let Some(first) = assessments.next() {
            self.assessment = first;
        }
        let before = self.extras.take().map(|aside| *aside).unwrap_or_default();
        self.extras = super::row::RowExtras { further_assessments: assessments.collect(), refined, ..before }
            .into_boxed();
    }
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
        }
    };
    let below = &found.assessment;
    let then: Option<(Time, Verdict)> = match (own.then.as_deref(), below.then.as_deref()) {
        (Some((at, then)), _) => Some((*at, with(then, &below.verdict))),
        (None, Some((at, then))) => Some((*at, with(&own.verdict, then))),
        (None, None) => None,
    };
    Assessment { verdict: with(&own.verdict, &below.verdict), then: then.map(Box::new) }
}
