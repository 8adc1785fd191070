//! Time since which an object has not been ready. A ready object stores none, so that it costs nothing.
//!
//! The object's own fields count at first sight, and in final states: deleted, failed permanently. In between, the time
//! of the observed change counts. Ingest has no clock: the loop passes the time to [`Reflector::date_unready`].

use std::time::Duration;

use aggregator::ObjectId;
use readiness::{Assessment, Facts, Level, SinceSource, Time, UnreadySince};

use super::Reflector;
use super::row::{ObjectRow, RowExtras, is_or_becomes_unready};
use crate::plan::Interest;

/// Age up to which an object that is not ready at first sight has never been ready.
const NEVER_READY_WINDOW: Duration = Duration::from_secs(5);
/// Not dated by the loop yet.
pub(super) const SINCE_NOT_DATED: Time = Time(i64::MAX);

impl Reflector {
    /// Dates an object: if it has stopped being ready, it did so at `now`; if it is ready again, the time is removed.
    pub fn date_unready(&self, id: ObjectId, now: Time) {
        self.change_slot(id, |slot| slot.row.as_mut().map(|row| row.date_unready(now)));
    }
}

impl ObjectRow {
    /// Sets the time from the object's own fields. For the verdict of a custom rule the fields record no time.
    pub(super) fn set_since_from_facts(&mut self, interest: &Interest, facts: &Facts) {
        if !self.is_unready() {
            return;
        }
        let says = |(at, assessment): (usize, &Assessment)| {
            let own = interest.assessment_rules.get(at).is_some_and(|lens| lens.rule.is_some());
            let says = is_or_becomes_unready(assessment) && (!own || facts.deleted.is_some());
            says.then(|| readiness::unready_since(interest.judge, facts, &assessment.verdict)).flatten()
        };
        let says = self.all_assessments().enumerate().map(says).collect();
        self.store_since(says);
    }

    /// Marks a new object: if it is not ready, it has been so since the time in its fields, or for longer.
    pub(super) fn mark_first_seen(&mut self) {
        if !self.is_unready() {
            return;
        }
        let first = |(at, assessment): (usize, &Assessment)| {
            let said = self.stored_since(at).cloned();
            said.or_else(|| {
                is_or_becomes_unready(assessment)
                    .then_some(UnreadySince { at: SINCE_NOT_DATED, from: SinceSource::FirstSeen })
            })
        };
        let since = self.all_assessments().enumerate().map(first).collect();
        self.store_since(since);
    }

    /// Inherits the time of an object that was not ready before and is not ready now.
    pub(super) fn inherit_since(&mut self, old: &ObjectRow) {
        if !self.is_unready() {
            return;
        }
        let goes_on = |at: usize| {
            let (says, was) = (self.stored_since(at), old.stored_since(at));
            match (says, was) {
                // The state observed before the end of the grace period was the deletion request.
                (Some(says), Some(was)) if says.from.is_final() && was.from == says.from => {
                    Some(if was.at < says.at { was } else { says })
                }
                (Some(says), _) if says.from.is_final() => Some(says),
                (Some(says), Some(was)) if was.from == SinceSource::FirstSeen && says.at < was.at => {
                    Some(says)
                }
                (_, Some(was)) if !was.from.is_final() => Some(was),
                // The object was ready: the loop dates the change.
                _ => None,
            }
        };
        let since = (0..self.all_assessments().count()).map(|at| goes_on(at).cloned()).collect();
        self.store_since(since);
    }

    fn date_unready(&mut self, now: Time) {
        if !self.is_unready() && self.extras.as_ref().is_none_or(|aside| aside.since.is_empty()) {
            return;
        }
        let created = self.created_at();
        let dated = |(at, assessment): (usize, &Assessment)| {
            if assessment.verdict_at(now).level == Level::Ready || self.links.as_slice().is_empty() {
                return None;
            }
            let Some(since) = self.stored_since(at) else {
                return Some(UnreadySince { at: now, from: SinceSource::Seen });
            };
            if since.at == SINCE_NOT_DATED && now - created < NEVER_READY_WINDOW && created > Time::default()
            {
                return Some(UnreadySince { at: created.min(now), from: SinceSource::Creation });
            }
            // Clocks differ, and a deletion with a grace period carries its end.
            Some(UnreadySince { at: since.at.min(now), ..since.clone() })
        };
        let since = self.all_assessments().enumerate().map(dated).collect();
        self.store_since(since);
    }

    fn store_since(&mut self, since: Vec<Option<UnreadySince>>) {
        let since = if since.iter().all(Option::is_none) { Vec::new() } else { since };
        if self.extras.as_ref().map_or(&[][..], |aside| &aside.since) == since.as_slice() {
            return;
        }
        let before = self.extras.take().map(|aside| *aside).unwrap_or_default();
        self.extras = RowExtras { since, ..before }.into_boxed();
    }
}
