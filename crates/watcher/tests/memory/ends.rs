//! Outcomes and their effect.

use std::time::Duration;

use readiness::{Level, Time};
use serde_json::json;
use watcher::plan::OutcomeRetention;
use watcher::reflector::{ParentOutcomes, RunEnd};

use crate::world::{FAILED, NOW, OutcomeMemoryHarness, READY, UNSEEN, WIDGET, job, uid};

#[test]
fn a_job_that_ended_counts_as_it_ended_once_it_is_gone() {
    for (ended, expected) in [("Complete", READY), ("Failed", FAILED)] {
        let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
        world.see(&job(1, "migrate", 5, ""));
        world.see(&job(1, "migrate", 6, ended));
        world.deleted(&job(1, "migrate", 7, ended));
        assert_eq!(world.counts(1), expected);
    }
}

#[test]
fn where_nobody_remembers_what_is_gone_is_gone() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Forget);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    assert_eq!(world.counts(1), None);
    assert_eq!(world.memories(), ParentOutcomes::default());
}

#[test]
fn the_deletion_itself_may_be_the_only_sight_of_its_end() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    assert_eq!(world.counts(1), READY);
    world.deleted(&job(2, "seed", 9, "Failed"));
    assert_eq!(world.counts(2), FAILED, "it was never seen alive");
}

#[test]
fn a_job_that_was_deleted_before_its_end_has_no_outcome() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.deleted(&job(1, "migrate", 7, ""));
    assert_eq!(world.counts(1), None);
    assert_eq!(world.memories().outcomes, []);
}

#[test]
fn what_a_list_does_not_have_any_more_ended_unseen_unless_its_end_was_seen() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.see(&job(2, "seed", 6, "Complete"));
    world.list(&[]);
    assert_eq!((world.counts(1), world.counts(2)), (UNSEEN, READY));
    let unseen = world.reflector.outcomes().take_unseen_runs();
    assert_eq!(unseen.iter().map(|u| &*u.name).collect::<Vec<_>>(), ["migrate"]);
}

#[test]
fn evidence_ends_the_doubt_and_changes_no_certainty() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.see(&job(2, "seed", 6, "Failed"));
    world.list(&[]);
    assert!(world.reflector.outcomes().apply_evidence(&uid(1), &RunEnd::Complete));
    assert!(!world.reflector.outcomes().apply_evidence(&uid(2), &RunEnd::Complete));
    assert_eq!((world.counts(1), world.counts(2)), (READY, FAILED));
}

#[test]
fn a_live_read_that_finds_it_gone_does_not_hide_the_end_that_the_watch_brings_later() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, ""));
    let id = world.reflector.find_object(&uid(1)).unwrap();
    world.reflector.apply_live_absence(id, 5);
    assert_eq!(world.counts(1), UNSEEN);
    world.see(&job(1, "migrate", 5, ""));
    assert_eq!(world.counts(1), UNSEEN, "the watch brings what was known");
    world.see(&job(1, "migrate", 6, "Complete"));
    assert_eq!(world.counts(1).map(|(level, _)| level), Some(Level::Ready));
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, ""));
    world.reflector.apply_live_absence(world.reflector.find_object(&uid(1)).unwrap(), 5);
    world.deleted(&job(1, "migrate", 7, ""));
    assert_eq!(world.counts(1), None, "the deletion knows that it had not ended");
}

#[test]
fn a_complete_job_counts_while_it_is_deleted_until_that_takes_too_long() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let mut held = job(1, "migrate", 6, "Complete");
    held["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:10:00Z");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.see(&held);
    let id = world.reflector.find_object(&uid(1)).unwrap();
    let at = |now: Time| world.reflector.read_row(id, |row| row.assessment.verdict_at(now).level).unwrap();
    let deleted = NOW + Duration::from_mins(10);
    assert_eq!(at(deleted + Duration::from_mins(9)), Level::Ready);
    assert_eq!(at(deleted + Duration::from_mins(10)), Level::Stuck);
}

#[test]
fn with_its_parent_an_outcome_is_forgotten() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    _ = world.reflector.outcomes().take_dirty_parents();
    world.reflector.delete_object(&uid(WIDGET), 9);
    let moved: Vec<String> =
        world.reflector.outcomes().take_dirty_parents().into_iter().map(String::from).collect();
    assert_eq!(moved, [uid(WIDGET)], "somebody has to look");
    world.reflector.outcomes().forget_parent(&uid(WIDGET));
    assert_eq!((world.counts(1), world.memories()), (None, ParentOutcomes::default()));
    for gone in world.reflector.take_dirty(usize::MAX) {
        world.reflector.recycle_slot(gone);
    }
    assert!(world.reflector.is_empty());
}
