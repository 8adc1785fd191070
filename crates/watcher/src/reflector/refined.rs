//! What was found below a workload that is not ready: it refines why, and tells when to call it stuck.
//!
//! Workload controllers are leaves: what they own is not watched. The periodic pass looks at it, live.

use aggregator::ObjectId;
use readiness::{Assessment, Counted, Level, Reason, Time, Verdict};

use super::row::Row;
use super::{Applied, Reflector};

/// Something below an object that explains why it is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refined {
    /// As `Pod web-0`.
    pub name: Box<str>,
    /// What that one's own rule says.
    pub assessment: Assessment,
}

impl Reflector {
    /// This was found below an object, or nothing that explains anything: through each lens, whose limits differ. It holds
    /// until the next look, until the object is ready, or until its spec changes.
    pub fn refine(&self, id: ObjectId, found: Vec<Option<Refined>>) -> Applied {
        let moved = self.change(id, |slot| {
            let row = slot.row.as_mut()?;
            let before = (row.assessment.clone(), row.aside.clone());
            row.refine(found);
            Some(before != (row.assessment.clone(), row.aside.clone())).map(|moved| (moved, row.version))
        });
        match moved.flatten() {
            Some((true, version)) => {
                self.mark(id);
                Applied::Moved(version)
            }
            Some((false, _)) => Applied::Same,
            None => Applied::Unwanted,
        }
    }
}

impl Row {
    /// Since when it has not been ready goes on. What was found below the object still explains it, where its spec is the
    /// same.
    pub(super) fn inherit(&mut self, old: &Row) {
        self.inherit_since(old);
        if self.is_remembered() {
            return;
        }
        let Some((found, plain)) = old.aside.as_ref().and_then(|aside| aside.refined.as_ref()) else {
            return;
        };
        // Where policies came or went, what was found through one lens is not what another would show.
        if old.generation == self.generation && plain.len() == self.assessments().count() {
            let stands = |found: &&Refined| !self.has_got_more(old, found);
            let found = found.iter().map(|found| found.as_ref().filter(stands).cloned()).collect();
            self.refine(found);
        }
    }

    /// Pods were refused to it, and more of them are there than before: that is over, or begins anew. The next look will tell.
    fn has_got_more(&self, old: &Row, found: &Refined) -> bool {
        let refused = matches!(found.assessment.verdict.reason, Reason::ReplicaFailure(_));
        let created = |own: &Assessment| match own.verdict.reason {
            Reason::Count(Counted::Created, have, _) => Some(have),
            _ => None,
        };
        let grew =
            |(was, is): (Option<u32>, Option<u32>)| was.is_some_and(|was| is.is_none_or(|is| is > was));
        let before = old.plain();
        refused && before.iter().map(created).zip(self.assessments().map(created)).any(grew)
    }

    fn refine(&mut self, found: Vec<Option<Refined>>) {
        let plain = self.plain();
        if found.iter().all(Option::is_none) || !plain.iter().any(explainable) {
            return self.set(plain, None);
        }
        let through = |lens: usize| found.get(lens).and_then(Option::as_ref);
        let refined = plain.iter().enumerate().map(|(lens, own)| match through(lens) {
            Some(found) => explained(own, found),
            None => own.clone(),
        });
        let refined = refined.collect();
        self.set(refined, Some((found, plain)));
    }

    /// Its verdicts as they are without what was found below it.
    fn plain(&self) -> Vec<Assessment> {
        let kept = self.aside.as_ref().and_then(|aside| aside.refined.as_ref());
        kept.map_or_else(|| self.assessments().cloned().collect(), |(_, plain)| plain.clone())
    }

    fn set(
        &mut self,
        assessments: Vec<Assessment>,
        refined: Option<(Vec<Option<Refined>>, Vec<Assessment>)>,
    ) {
        let mut assessments = assessments.into_iter();
        if let Some(first) = assessments.next() {
            self.assessment = first;
        }
        let before = self.aside.take().map(|aside| *aside).unwrap_or_default();
        self.aside = super::row::Aside { beside: assessments.collect(), refined, ..before }.boxed();
    }
}

fn explainable(own: &Assessment) -> bool {
    matches!(own.verdict.level, Level::Progressing | Level::Failed | Level::Stuck)
}

/// The object's own verdict, with the reason behind it. What is below may make it stuck, never better, and never failed:
/// whether a workload has failed is for its controller to say.
fn explained(own: &Assessment, found: &Refined) -> Assessment {
    if !explainable(own) {
        return own.clone();
    }
    let with = |own: &Verdict, below: &Verdict| {
        let stuck = below.level == Level::Stuck && own.level == Level::Progressing;
        Verdict {
            level: if stuck { Level::Stuck } else { own.level },
            reason: own.reason.clone().because(&found.name, below.reason.clone()),
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
