//! Records after a restart.

use aggregator::ChildSource;
use readiness::Level;
use serde_json::json;
use watcher::plan::OutcomeRetention;
use watcher::reflector::{ParentOutcomes, RunEnd};

use crate::harness::{FAILED, OutcomeMemoryHarness, READY, UNSEEN, job};

#[test]
fn what_was_written_down_outlives_a_restart_in_whatever_order_things_are_read() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, "Complete"));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    harness.see(&job(2, "seed", 8, ""));
    let ParentOutcomes { parent: whose, outcomes } = harness.memories();
    for records_first in [true, false] {
        let next = OutcomeMemoryHarness::blind(OutcomeRetention::Remember);
        if records_first {
            // The kind of Jobs is not even discovered yet.
            next.reflector.outcomes().recall_record(whose.clone(), outcomes.clone());
        }
        next.reflector.set_interest(next.jobs.clone());
        next.list(&[]);
        next.reflector.outcomes().recall_record(whose.clone(), outcomes.clone());
        next.widget(1, 1);
        assert_eq!((next.counts(1), next.counts(2)), (READY, UNSEEN), "{records_first}");
        assert_eq!(next.reflector.outcomes().take_unseen_runs().len(), 1, "{records_first}");
    }
}

#[test]
fn a_job_that_is_still_there_after_a_restart_counts_as_it_is() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    let next = harness.restarted();
    assert_eq!(next.counts(1), UNSEEN, "nothing is said before Jobs were listed");
    next.list(&[job(1, "migrate", 5, "")]);
    assert_eq!(next.counts(1), Some((Level::Progressing, ChildSource::Owner)));
    next.deleted(&job(1, "migrate", 6, "Complete"));
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_record_is_believed_once_and_later_only_where_nobody_saw() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    harness.see(&job(2, "seed", 5, "Failed"));
    let (known, next) = (harness.memories(), harness.restarted());
    next.list(&[]);
    assert_eq!((next.counts(1), next.counts(2)), (UNSEEN, FAILED));
    let mut changed = known.outcomes;
    for outcome in &mut changed {
        outcome.end = RunEnd::Complete;
    }
    next.reflector.outcomes().recall_record(known.parent, changed);
    assert_eq!((next.counts(1), next.counts(2)), (READY, FAILED));
}

#[test]
fn a_record_of_one_that_is_seen_to_exist_does_not_take_it_for_gone() {
    let run = |n: u32, version: u32, ended: &str| {
        let mut job = job(n, &format!("backup-{n}"), version, ended);
        job["metadata"]["generateName"] = json!("backup-");
        job
    };
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&run(1, 5, ""));
    let record = harness.memories();
    let next = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    next.see(&run(1, 5, ""));
    next.see(&run(2, 6, ""));
    next.deleted(&run(2, 7, ""));
    next.reflector.outcomes().recall_record(record.parent, record.outcomes);
    assert_eq!(next.counts(1), Some((Level::Progressing, ChildSource::Owner)));
    assert!(next.memories().outcomes.iter().all(|outcome| !outcome.deleted));
    next.deleted(&run(1, 9, "Failed"));
    assert_eq!(next.counts(1), FAILED);
}
