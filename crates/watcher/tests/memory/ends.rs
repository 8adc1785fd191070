//! Outcomes and their effect.

use std::time::Duration;

use readiness::{Level, Time};
use serde_json::json;
use watcher::plan::OutcomeRetention;
use watcher::reflector::{ParentOutcomes, RunEnd};

use crate::harness::{FAILED, NOW, OutcomeMemoryHarness, READY, UNSEEN, WIDGET, job, uid};

#[test]
fn a_job_that_ended_counts_as_it_ended_once_it_is_gone() {
    for (ended, expected) in [("Complete", READY), ("Failed", FAILED)] {
        let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
        harness.see(&job(1, "migrate", 5, ""));
        harness.see(&job(1, "migrate", 6, ended));
        harness.deleted(&job(1, "migrate", 7, ended));
        assert_eq!(harness.counts(1), expected);
    }
}

#[test]
fn where_nobody_remembers_what_is_gone_is_gone() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Forget);
    harness.see(&job(1, "migrate", 5, "Complete"));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    assert_eq!(harness.counts(1), None);
    assert_eq!(harness.memories(), ParentOutcomes::default());
}

#[test]
fn the_deletion_itself_may_be_the_only_sight_of_its_end() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    assert_eq!(harness.counts(1), READY);
    harness.deleted(&job(2, "seed", 9, "Failed"));
    assert_eq!(harness.counts(2), FAILED, "it was never seen alive");
}

#[test]
fn a_job_that_was_deleted_before_its_end_has_no_outcome() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    harness.deleted(&job(1, "migrate", 7, ""));
    assert_eq!(harness.counts(1), None);
    assert_eq!(harness.memories().outcomes, []);
}

#[test]
fn what_a_list_does_not_have_any_more_ended_unseen_unless_its_end_was_seen() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    harness.see(&job(2, "seed", 6, "Complete"));
    harness.list(&[]);
    assert_eq!((harness.counts(1), harness.counts(2)), (UNSEEN, READY));
    let unseen = harness.reflector.outcomes().take_unseen_runs();
    assert_eq!(unseen.iter().map(|u| &*u.name).collect::<Vec<_>>(), ["migrate"]);
}

#[test]
fn evidence_ends_the_doubt_and_changes_no_certainty() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    harness.see(&job(2, "seed", 6, "Failed"));
    harness.list(&[]);
    assert!(harness.reflector.outcomes().apply_evidence(&uid(1), &RunEnd::Complete));
    assert!(!harness.reflector.outcomes().apply_evidence(&uid(2), &RunEnd::Complete));
    assert_eq!((harness.counts(1), harness.counts(2)), (READY, FAILED));
}

#[test]
fn a_live_read_that_finds_it_gone_does_not_hide_the_end_that_the_watch_brings_later() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    let id = harness.reflector.find_object(&uid(1)).unwrap();
    harness.reflector.apply_live_absence(id, 5);
    assert_eq!(harness.counts(1), UNSEEN);
    harness.see(&job(1, "migrate", 5, ""));
    assert_eq!(harness.counts(1), UNSEEN, "the watch brings what was known");
    harness.see(&job(1, "migrate", 6, "Complete"));
    assert_eq!(harness.counts(1).map(|(level, _)| level), Some(Level::Ready));
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    harness.reflector.apply_live_absence(harness.reflector.find_object(&uid(1)).unwrap(), 5);
    harness.deleted(&job(1, "migrate", 7, ""));
    assert_eq!(harness.counts(1), None, "the deletion knows that it had not ended");
}

#[test]
fn a_complete_job_counts_while_it_is_deleted_until_that_takes_too_long() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let mut held = job(1, "migrate", 6, "Complete");
    held["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:10:00Z");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    harness.see(&held);
    let id = harness.reflector.find_object(&uid(1)).unwrap();
    let at = |now: Time| harness.reflector.read_row(id, |row| row.assessment.verdict_at(now).level).unwrap();
    let deleted = NOW + Duration::from_mins(10);
    assert_eq!(at(deleted + Duration::from_mins(9)), Level::Ready);
    assert_eq!(at(deleted + Duration::from_mins(10)), Level::Stuck);
}

#[test]
fn with_its_parent_an_outcome_is_forgotten() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, "Complete"));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    _ = harness.reflector.outcomes().take_dirty_parents();
    harness.reflector.delete_object(&uid(WIDGET), 9);
    let moved: Vec<String> =
        harness.reflector.outcomes().take_dirty_parents().into_iter().map(String::from).collect();
    assert_eq!(moved, [uid(WIDGET)], "somebody has to look");
    harness.reflector.outcomes().forget_parent(&uid(WIDGET));
    assert_eq!((harness.counts(1), harness.memories()), (None, ParentOutcomes::default()));
    for gone in harness.reflector.take_dirty(usize::MAX) {
        harness.reflector.recycle_slot(gone);
    }
    assert!(harness.reflector.is_empty());
}
