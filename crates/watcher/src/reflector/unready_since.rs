//! Time since which an object has not been ready. A ready object stores none, so that it costs nothing.
//!
//! The object's own fields count at first sight, and in final states: deleted, failed permanently. In between, the time
//! of the observed change counts. Ingest has no clock: the loop passes the time to [`date_unready`].

use std::time::Duration;

use readiness::{Assessment, Facts, Level, SinceSource, Time, UnreadySince};

use super::row::{ObjectRow, RowExtras, SINCE_NOT_DATED, is_or_becomes_unready};
use crate::plan::Interest;

/// Age up to which an object that is not ready at first sight has never been ready.
const NEVER_READY_WINDOW: Duration = Duration::from_secs(5);

/// Sets the time from the object's own fields. For the verdict of a custom rule the fields record no time.
pub(super) fn set_since_from_facts(row: &mut ObjectRow, interest: &Interest, facts: &Facts) {
    if !row.is_unready() {
        return;
    }
    let says = |(at, assessment): (usize, &Assessment)| {
        let own = interest.assessment_rules.get(at).is_some_and(|judged_by| judged_by.rule.is_some());
        let says = is_or_becomes_unready(assessment) && (!own || facts.deleted.is_some());
        says.then(|| readiness::unready_since(interest.judge, facts, &assessment.verdict)).flatten()
    };
    let says = row.all_assessments().enumerate().map(says).collect();
    store_since(row, says);
}

/// Marks a new object: if it is not ready, it has been so since the time in its fields, or for longer.
pub(super) fn mark_first_seen(row: &mut ObjectRow) {
    if !row.is_unready() {
        return;
    }
    let first = |(at, assessment): (usize, &Assessment)| {
        let said = row.stored_since(at).cloned();
        said.or_else(|| {
            is_or_becomes_unready(assessment)
                .then_some(UnreadySince { at: SINCE_NOT_DATED, from: SinceSource::FirstSeen })
        })
    };
    let since = row.all_assessments().enumerate().map(first).collect();
    store_since(row, since);
}

/// Inherits the time of an object that was not ready before and is not ready now.
pub(super) fn inherit_since(row: &mut ObjectRow, old: &ObjectRow) {
    if !row.is_unready() {
        return;
    }
    let goes_on = |at: usize| {
        let (says, was) = (row.stored_since(at), old.stored_since(at));
        match (says, was) {
            // The state observed before the end of the grace period was the deletion request.
            (Some(says), Some(was)) if says.from.is_final() && was.from == says.from => {
                Some(if was.at < says.at { was } else { says })
            }
            (Some(says), _) if says.from.is_final() => Some(says),
            (Some(says), Some(was)) if was.from == SinceSource::FirstSeen && says.at < was.at => Some(says),
            (_, Some(was)) if !was.from.is_final() => Some(was),
            // The object was ready: the loop dates the change.
            _ => None,
        }
    };
    let since = (0..row.all_assessments().count()).map(|at| goes_on(at).cloned()).collect();
    store_since(row, since);
}

/// Dates a row: if it has stopped being ready, it did so at `now`; if it is ready again, the time is removed.
pub(super) fn date_unready(row: &mut ObjectRow, now: Time) {
    if !row.is_unready() && row.extras.as_ref().is_none_or(|aside| aside.since.is_empty()) {
        return;
    }
    let created = row.created_at();
    let dated = |(at, assessment): (usize, &Assessment)| {
        if assessment.verdict_at(now).level == Level::Ready || row.links.as_slice().is_empty() {
            return None;
        }
        let Some(since) = row.stored_since(at) else {
            return Some(UnreadySince { at: now, from: SinceSource::Seen });
        };
        if since.at == SINCE_NOT_DATED && now - created < NEVER_READY_WINDOW && created > Time::default() {
            return Some(UnreadySince { at: created.min(now), from: SinceSource::Creation });
        }
        // Clocks differ, and a deletion with a grace period carries its end.
        Some(UnreadySince { at: since.at.min(now), ..since.clone() })
    };
    let since = row.all_assessments().enumerate().map(dated).collect();
    store_since(row, since);
}

fn store_since(row: &mut ObjectRow, since: Vec<Option<UnreadySince>>) {
    let since = if since.iter().all(Option::is_none) { Vec::new() } else { since };
    if row.extras.as_ref().map_or(&[][..], |aside| &aside.since) == since.as_slice() {
        return;
    }
    let before = row.extras.take().map(|aside| *aside).unwrap_or_default();
    row.extras = RowExtras { since, ..before }.into_boxed();
}
