//! A policy goes, and what was said for it leaves many parents.

use std::time::Duration;

use rollcall_core::ReleaseProgress;

use crate::fixture::{PARENTS, WriteOutage};

/// Parents on which a condition of ours stands.
fn carrying(outage: &WriteOutage) -> usize {
    let carries = |parent: &&serde_json::Value| {
        parent["status"]["conditions"].as_array().is_some_and(|list| !list.is_empty())
    };
    outage.parents.values().filter(carries).count()
}

#[test]
fn a_deleted_policy_leaves_its_parents_at_a_pace_and_the_log_is_told() {
    let mut outage = WriteOutage::of_ready_parents();
    assert_eq!(outage.core.take_release_progress(), None);
    let (begun, before) = (outage.now, outage.sent.len());
    outage.delete_policy();
    outage.run_for(Duration::from_secs(10));
    assert_eq!(
        outage.core.take_release_progress().map(|progress| progress.per_second),
        Some(17),
        "2,000 in two minutes"
    );
    let gone = PARENTS - carrying(&outage);
    assert!((160..=190).contains(&gone), "{gone} in ten seconds");
    assert!(outage.busiest_second(begun) <= 17 + 10);
    assert_eq!(outage.core.take_release_progress(), None, "it is told once");
    outage.run_for(Duration::from_secs(112));
    assert_eq!((carrying(&outage), outage.sent.len() - before), (0, PARENTS));
    let done = Some(ReleaseProgress { waiting: 0, per_second: 10 });
    assert_eq!(outage.core.take_release_progress(), done);
}

#[test]
fn a_policy_that_comes_back_meanwhile_keeps_what_it_said_on_the_parents_that_are_left() {
    let mut outage = WriteOutage::of_ready_parents();
    outage.delete_policy();
    outage.run_for(Duration::from_secs(30));
    let left = carrying(&outage);
    assert!((PARENTS / 2..PARENTS - 400).contains(&left), "{left}");
    outage.reasons.clear();
    outage.written.clear();
    outage.apply_policy();
    outage.run_for(Duration::from_mins(5));
    assert_eq!((carrying(&outage), outage.core.write_queue_len()), (PARENTS, 0));
    let released = PARENTS - left;
    assert_eq!(outage.written.len(), released, "nothing is told to those that were not released");
    let said = ["ChildrenPending", "ChildrenSettling", "AllChildrenReady"]
        .map(|said| outage.reasons.iter().filter(|reason| *reason == said).count());
    assert_eq!(
        (said, outage.reasons.len()),
        ([released; 3], 3 * released),
        "and to the others Unknown first"
    );
}
