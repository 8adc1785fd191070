//! Records after a restart.

use aggregator::{ChildSource, LinkTarget};
use readiness::Level;
use serde_json::json;
use watcher::plan::OutcomeRetention;
use watcher::reflector::{ParentOutcomes, RunEnd};

use crate::harness::{FAILED, NOW, OutcomeMemoryHarness, READY, UNSEEN, WIDGET, job, uid};

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
    next.reflector.outcomes().consider_edit(&changed);
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

/// What somebody wrote into the record of a parent: that its Job is complete.
fn forged(harness: &OutcomeMemoryHarness, parent: u32) -> ParentOutcomes {
    let ParentOutcomes { parent: mut whose, mut outcomes } = harness.memories();
    whose.uid = uid(parent).into();
    for outcome in &mut outcomes {
        (outcome.end, outcome.version) = (RunEnd::Complete, 0);
    }
    ParentOutcomes { parent: whose, outcomes }
}

#[test]
fn what_a_job_says_that_exists_counts_whatever_its_record_says() {
    for (ended, level) in [("Failed", Level::Failed), ("", Level::Progressing)] {
        for record_first in [true, false] {
            let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
            harness.see(&job(1, "migrate", 5, ended));
            let record = forged(&harness, WIDGET);
            let next = OutcomeMemoryHarness::blind(OutcomeRetention::Remember);
            next.reflector.set_interest(next.jobs.clone());
            next.widget(1, 1);
            if record_first {
                next.reflector.outcomes().recall_record(record.parent.clone(), record.outcomes.clone());
            }
            next.list(&[job(1, "migrate", 5, ended)]);
            if !record_first {
                next.reflector.outcomes().recall_record(record.parent, record.outcomes);
            }
            assert_eq!(next.counts(1), Some((level, ChildSource::Owner)), "{ended} {record_first}");
        }
    }
}

#[test]
fn an_outcome_of_a_record_counts_for_the_parent_whose_uid_the_record_has_alone() {
    const OTHER: u32 = 2_000;
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, "Failed"));
    let record = forged(&harness, OTHER);
    let next = OutcomeMemoryHarness::blind(OutcomeRetention::Remember);
    next.reflector.set_interest(next.jobs.clone());
    next.widget(1, 1);
    next.list(&[]);
    // It names the parent that there is, by everything but its uid.
    assert_eq!(&*record.parent.name, "w");
    next.reflector.outcomes().recall_record(record.parent, record.outcomes);
    assert_eq!(next.memories().outcomes, []);
    let parent = next.reflector.find_object(&uid(WIDGET)).unwrap();
    let row = next.reflector.find_object(&uid(1)).unwrap();
    let links = next.reflector.with_view(row, NOW, |view| {
        view.unwrap().links.iter().map(aggregator::ChildLink::target).collect::<Vec<_>>()
    });
    assert_eq!(links.len(), 1);
    assert!(!links.contains(&LinkTarget::Object(parent)), "{links:?}");
}
