//! The runs that count, and their parents.

use aggregator::ChildSource;
use readiness::Level;
use serde_json::json;
use watcher::plan::{LabelMatchTerm, LabelMatcher, OutcomeRetention};
use watcher::reflector::MAX_PARENT_OUTCOMES;

use crate::harness::{FAILED, JOBS, OutcomeMemoryHarness, READY, job, jobs, uid};

#[test]
fn another_run_of_the_same_name_starts_afresh() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, "Complete"));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    harness.see(&job(2, "migrate", 9, ""));
    assert_eq!(harness.counts(1), None);
    assert_eq!(harness.counts(2), Some((Level::Progressing, ChildSource::Owner)));
    harness.deleted(&job(2, "migrate", 11, "Failed"));
    assert_eq!((harness.counts(1), harness.counts(2)), (None, FAILED));
    assert_eq!(harness.memories().outcomes.len(), 1);
}

#[test]
fn generated_names_are_runs_of_one_thing_and_the_newest_counts() {
    // The server makes names from the first 58 bytes of what is asked for.
    for asked in ["migrate-".to_owned(), "migrate".repeat(10)] {
        let run = |n: u32, version: u32, ended: &str| {
            let stem = &asked[..asked.len().min(58)];
            let mut job = job(n, &format!("{stem}{n}"), version, ended);
            job["metadata"]["generateName"] = json!(asked);
            job
        };
        let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
        harness.see(&run(2, 5, "Complete"));
        harness.see(&run(1, 6, "Failed"));
        harness.deleted(&run(2, 7, "Complete"));
        harness.deleted(&run(1, 8, "Failed"));
        assert_eq!((harness.counts(2), harness.counts(1)), (READY, None), "the older one came later");
        harness.see(&run(3, 9, ""));
        assert_eq!(harness.counts(2), None);
    }
}

#[test]
fn what_names_a_parent_of_another_namespace_takes_no_room_of_what_it_remembers() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.widget(2, 1);
    harness.see(&job(1, "migrate", 5, "Complete"));
    for n in 0..2 * u32::try_from(MAX_PARENT_OUTCOMES).unwrap() {
        let mut stranger = job(100 + n, &format!("other-{n}"), 10 + n, "Failed");
        stranger["metadata"]["namespace"] = json!("elsewhere");
        harness.see(&stranger);
    }
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    let memories = harness.memories();
    assert_eq!((&*memories.parent.namespace, memories.outcomes.len()), ("shop", 1));
    assert_eq!(harness.counts(1), READY);
}

#[test]
fn an_old_complete_does_not_satisfy_a_new_generation_where_the_policy_says_so() {
    for (after, then) in [(OutcomeRetention::Remember, READY), (OutcomeRetention::RememberGeneration, None)] {
        let harness = OutcomeMemoryHarness::new(after);
        harness.see(&job(1, "migrate", 5, "Complete"));
        harness.deleted(&job(1, "migrate", 7, "Complete"));
        assert_eq!(harness.counts(1), READY);
        _ = harness.reflector.take_dirty(usize::MAX);
        harness.widget(8, 2);
        assert_eq!(harness.counts(1), then);
        let looked_at = harness.reflector.take_dirty(usize::MAX);
        assert!(looked_at.contains(&harness.reflector.find_object(&uid(1)).unwrap()), "{looked_at:?}");
        let next = harness.restarted();
        next.list(&[]);
        assert_eq!(next.counts(1), READY, "nothing is known of its parent yet");
        _ = next.reflector.take_dirty(usize::MAX);
        next.widget(8, 2);
        assert_eq!(next.counts(1), then, "after a restart");
        let looked_at = next.reflector.take_dirty(usize::MAX);
        assert!(looked_at.contains(&next.reflector.find_object(&uid(1)).unwrap()), "{looked_at:?}");
    }
}

#[test]
fn what_a_schedule_runs_is_never_remembered() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let mut run = job(1, "nightly", 5, "Complete");
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": uid(9)});
    run["metadata"]["ownerReferences"].as_array_mut().unwrap().push(owner);
    harness.see(&run);
    run["metadata"]["resourceVersion"] = json!("6");
    harness.deleted(&run);
    assert_eq!((harness.counts(1), harness.memories().outcomes.len()), (None, 0));
}

#[test]
fn what_a_policy_passes_over_is_not_remembered_by_it() {
    let mut harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let hook = LabelMatchTerm::In("hook".into(), vec!["yes".into()]);
    harness.jobs.child[0].ignore = Some(LabelMatcher { requirements: vec![hook] });
    harness.reflector.set_interest(harness.jobs.clone());
    let mut hook = job(1, "hook", 5, "Complete");
    hook["metadata"]["labels"] = json!({"hook": "yes"});
    harness.see(&job(1, "hook", 4, "Complete"));
    harness.see(&hook);
    hook["metadata"]["resourceVersion"] = json!("6");
    harness.deleted(&hook);
    assert_eq!((harness.counts(1), harness.memories().outcomes.len()), (None, 0));
}

#[test]
fn only_so_many_are_remembered_and_what_failed_comes_first() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(0, "first", 1, "Failed"));
    harness.deleted(&job(0, "first", 2, "Failed"));
    for n in 1..40 {
        harness.see(&job(n, &format!("job-{n}"), 10 * n, "Complete"));
        harness.deleted(&job(n, &format!("job-{n}"), 10 * n + 1, "Complete"));
    }
    let counted = (0..40).filter(|n| harness.counts(*n).is_some()).count();
    assert_eq!((counted, harness.memories().outcomes.len()), (MAX_PARENT_OUTCOMES, MAX_PARENT_OUTCOMES));
    assert_eq!((harness.counts(0), harness.counts(39), harness.counts(1)), (FAILED, READY, None));
    let beyond = harness.reflector.outcomes().take_dropped_outcomes();
    assert_eq!((beyond.count, beyond.some.len()), (40 - MAX_PARENT_OUTCOMES as u64, MAX_PARENT_OUTCOMES));
    let (whose, job) = &beyond.some[0];
    assert_eq!((&*whose.name, &*job.name), ("w", "job-1"), "the oldest that ended well");
}

#[test]
fn what_there_is_no_room_for_is_told_of_once() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    for n in 0..20 {
        // The last four are running; failed runs come before them.
        let ended = if n < 16 { "Failed" } else { "" };
        harness.see(&job(n, &format!("job-{n}"), n + 1, ended));
    }
    assert_eq!(harness.reflector.outcomes().take_dropped_outcomes().count, 4);
    harness.see(&job(19, "job-19", 50, ""));
    harness.list(&(0..20).map(|n| job(n, &format!("job-{n}"), n + 60, "")).collect::<Vec<_>>());
    assert_eq!(harness.reflector.outcomes().take_dropped_outcomes().count, 0);
}

#[test]
fn a_policy_that_does_not_remember_any_more_counts_nothing_that_is_gone() {
    let mut harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, "Complete"));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    for (after, counts) in [(OutcomeRetention::Forget, None), (OutcomeRetention::Remember, READY)] {
        harness.jobs = jobs(after);
        harness.reflector.set_interest(harness.jobs.clone());
        harness.list(&[]);
        assert_eq!(harness.counts(1), counts, "{after:?}");
    }
    assert_eq!(harness.reflector.forget_kind(JOBS), 1);
    assert_eq!(harness.counts(1), None);
}
