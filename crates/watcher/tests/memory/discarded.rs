//! Later runs that count no more while an older one still exists.

use watcher::plan::OutcomeRetention;
use watcher::reflector::RunEnd;

use crate::harness::{FAILED, OutcomeMemoryHarness, READY, UNSEEN, generated, tell, trace, uid};

/// A newer run was taken away before it ended, while an older one of the same generated name was still there, which then
/// failed and went.
fn outlived_by_the_older_run() -> OutcomeMemoryHarness {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let newer = generated(2, "backup-zzzzz", 12, "");
    harness.see(&generated(1, "backup-bcdfg", 5, ""));
    harness.see(&newer);
    harness.deleted(&newer);
    // As a list shows it: nothing of it has changed since it was created.
    harness.list(&[generated(1, "backup-bcdfg", 5, "")]);
    harness.see(&generated(1, "backup-bcdfg", 20, "Failed"));
    harness.deleted(&generated(1, "backup-bcdfg", 21, "Failed"));
    harness
}

#[test]
fn a_run_that_was_discarded_unfinished_is_none_that_nobody_saw() {
    let harness = outlived_by_the_older_run();
    let events = [trace(2, "backup-zzzzz", 13, RunEnd::Open)];
    assert_eq!((harness.counts(1), tell(&harness, &events)), (FAILED, 0));
    let next = harness.restarted();
    next.list(&[]);
    assert_eq!((tell(&next, &events), next.counts(1)), (0, FAILED), "nor after a restart");
    let other = [trace(3, "backup-xxxxx", 14, RunEnd::Open)];
    assert_eq!((tell(&next, &other), next.counts(1), next.counts(3)), (1, None, UNSEEN), "another is");
}

#[test]
fn an_older_run_that_goes_before_the_newer_is_superseded_by_it() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let newer = |version, ended| generated(2, "backup-zzzzz", version, ended);
    harness.see(&generated(1, "backup-bcdfg", 5, "Failed"));
    harness.see(&newer(12, ""));
    harness.deleted(&generated(1, "backup-bcdfg", 13, "Failed"));
    assert_eq!((harness.counts(1), harness.memories().outcomes.len()), (None, 1));
    let blind = harness.restarted();
    blind.list(&[newer(12, "")]);
    assert_eq!((blind.counts(1), blind.memories().outcomes.len()), (None, 1));
    harness.see(&newer(14, "Complete"));
    harness.deleted(&newer(15, "Complete"));
    assert_eq!((harness.counts(1), harness.counts(2)), (None, READY));
}

#[test]
fn a_run_that_was_superseded_by_one_that_was_taken_away_is_none_that_nobody_saw() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let run =
        |n: u32, version: u32, ended: &str| generated(n, &format!("backup-bcdf{}", n + 3), version, ended);
    harness.see(&run(1, 5, "Failed"));
    harness.see(&run(2, 12, "Complete"));
    harness.deleted(&run(2, 13, "Complete"));
    harness.see(&run(3, 14, ""));
    let events = [trace(2, "backup-bcdf5", 12, RunEnd::Complete), trace(3, "backup-bcdf6", 14, RunEnd::Open)];
    let next = harness.restarted();
    next.list(&[run(1, 5, "Failed"), run(3, 14, "")]);
    assert_eq!((tell(&next, &events), next.counts(2)), (0, None), "a later one was seen");
    next.deleted(&run(3, 15, ""));
    assert_eq!((tell(&next, &events), next.counts(2)), (0, None), "and taken away");
    next.deleted(&run(1, 16, "Failed"));
    assert_eq!((tell(&next, &events), next.counts(1)), (0, FAILED));
}

#[test]
fn as_many_later_runs_as_a_record_holds_are_known_to_count_no_more() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&generated(1, "backup-bcdfg", 5, ""));
    for n in 2..40 {
        harness.see(&generated(n, &format!("backup-bcd{n}"), 10 * n, ""));
        harness.deleted(&generated(n, &format!("backup-bcd{n}"), 10 * n + 1, ""));
    }
    let known = harness.memories().outcomes;
    let kept: Vec<Box<str>> = (32..40).map(|n| uid(n).into()).collect();
    assert_eq!((known.len(), &known[0].discarded), (1, &kept));
}
