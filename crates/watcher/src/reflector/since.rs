//! Since when an object has not been ready. What is ready keeps no moment, so that it costs nothing.
//!
//! The object's own word counts at first sight, and where it is the last one: deleted, failed for good. Between, it counts
//! when it was seen to stop being ready. The door knows no clock: [`Reflector::date`] is told the time by the loop.

use std::time::Duration;

use aggregator::ObjectId;
use readiness::{Assessment, Facts, Level, Moment, Since, Time};

use super::Reflector;
use super::row::{Aside, Row, unready};
use crate::plan::Interest;

/// What was not ready when it was first seen, so soon after its creation, has never been.
const NEW: Duration = Duration::from_secs(5);
/// Not known before the loop looks.
pub(super) const OPEN: Time = Time(i64::MAX);

impl Reflector {
    /// It is `now`: what stopped being ready did so now, and what is ready again keeps no moment.
    pub fn date(&self, id: ObjectId, now: Time) {
        self.change(id, |slot| slot.row.as_mut().map(|row| row.date(now)));
    }
}

impl Row {
    /// What the object says itself. Of what a rule of a user decided, its fields tell no time.
    pub(super) fn say_since(&mut self, interest: &Interest, facts: &Facts) {
        if !self.is_unready() {
            return;
        }
        let says = |(at, assessment): (usize, &Assessment)| {
            let own = interest.lenses.get(at).is_some_and(|lens| lens.rule.is_some());
            let says = unready(assessment) && (!own || facts.deleted.is_some());
            says.then(|| readiness::since(interest.judge, facts, &assessment.verdict)).flatten()
        };
        let says = self.assessments().enumerate().map(says).collect();
        self.keep(says);
    }

    /// It was not there before: whatever is not ready has not been ready for as long as it says, or longer.
    pub(super) fn is_first_seen(&mut self) {
        if !self.is_unready() {
            return;
        }
        let first = |(at, assessment): (usize, &Assessment)| {
            let said = self.kept_since(at as u8).cloned();
            said.or_else(|| unready(assessment).then_some(Since { at: OPEN, from: Moment::FirstSeen }))
        };
        let since = self.assessments().enumerate().map(first).collect();
        self.keep(since);
    }

    /// What was not ready before and is not now has not been all the while.
    pub(super) fn inherit_since(&mut self, old: &Row) {
        if !self.is_unready() {
            return;
        }
        let goes_on = |at: usize| {
            let (says, was) = (self.kept_since(at as u8), old.kept_since(at as u8));
            match (says, was) {
                // What was seen before the end of its grace period was the request.
                (Some(says), Some(was)) if says.from.is_final() && was.from == says.from => {
                    Some(if was.at < says.at { was } else { says })
                }
                (Some(says), _) if says.from.is_final() => Some(says),
                (Some(says), Some(was)) if was.from == Moment::FirstSeen && says.at < was.at => Some(says),
                (_, Some(was)) if !was.from.is_final() => Some(was),
                // It was ready: the loop says when it stopped.
                _ => None,
            }
        };
        let since = (0..self.assessments().count()).map(|at| goes_on(at).cloned()).collect();
        self.keep(since);
    }

    fn date(&mut self, now: Time) {
        if !self.is_unready() && self.aside.as_ref().is_none_or(|aside| aside.since.is_empty()) {
            return;
        }
        let created = self.created();
        let dated = |(at, assessment): (usize, &Assessment)| {
            if assessment.at(now).level == Level::Ready || self.links.as_slice().is_empty() {
                return None;
            }
            let Some(since) = self.kept_since(at as u8) else {
                return Some(Since { at: now, from: Moment::Seen });
            };
            if since.at == OPEN && now - created < NEW && created > Time::default() {
                return Some(Since { at: created.min(now), from: Moment::Creation });
            }
            // Clocks differ, and a deletion with a grace period names its end.
            Some(Since { at: since.at.min(now), ..since.clone() })
        };
        let since = self.assessments().enumerate().map(dated).collect();
        self.keep(since);
    }

    fn keep(&mut self, since: Vec<Option<Since>>) {
        let since = if since.iter().all(Option::is_none) { Vec::new() } else { since };
        if self.aside.as_ref().map_or(&[][..], |aside| &aside.since) == since.as_slice() {
            return;
        }
        let before = self.aside.take().map(|aside| *aside).unwrap_or_default();
        self.aside = Aside { since, ..before }.boxed();
    }
}
