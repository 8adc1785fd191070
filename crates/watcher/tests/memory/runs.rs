//! The runs that count, and their parents.

use aggregator::ChildSource;
use readiness::Level;
use serde_json::json;
use watcher::plan::{LabelMatchTerm, LabelMatcher, OutcomeRetention};
use watcher::reflector::MAX_PARENT_OUTCOMES;

use crate::world::{FAILED, JOBS, OutcomeMemoryHarness, READY, job, jobs, uid};

#[test]
fn another_run_of_the_same_name_starts_afresh() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    world.see(&job(2, "migrate", 9, ""));
    assert_eq!(world.counts(1), None);
    assert_eq!(world.counts(2), Some((Level::Progressing, ChildSource::Owner)));
    world.deleted(&job(2, "migrate", 11, "Failed"));
    assert_eq!((world.counts(1), world.counts(2)), (None, FAILED));
    assert_eq!(world.memories().outcomes.len(), 1);
}

#[test]
fn generated_names_are_runs_of_one_thing_and_the_newest_counts() {
    let run = |n: u32, version: u32, ended: &str| {
        let mut job = job(n, &format!("migrate-{n}"), version, ended);
        job["metadata"]["generateName"] = json!("migrate-");
        job
    };
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&run(2, 5, "Complete"));
    world.see(&run(1, 6, "Failed"));
    world.deleted(&run(2, 7, "Complete"));
    world.deleted(&run(1, 8, "Failed"));
    assert_eq!((world.counts(2), world.counts(1)), (READY, None), "the older one came later");
    world.see(&run(3, 9, ""));
    assert_eq!(world.counts(2), None);
}

#[test]
fn an_old_complete_does_not_satisfy_a_new_generation_where_the_policy_says_so() {
    for (after, then) in [(OutcomeRetention::Remember, READY), (OutcomeRetention::RememberGeneration, None)] {
        let world = OutcomeMemoryHarness::new(after);
        world.see(&job(1, "migrate", 5, "Complete"));
        world.deleted(&job(1, "migrate", 7, "Complete"));
        assert_eq!(world.counts(1), READY);
        _ = world.reflector.take_dirty(usize::MAX);
        world.widget(8, 2);
        assert_eq!(world.counts(1), then);
        let looked_at = world.reflector.take_dirty(usize::MAX);
        assert!(looked_at.contains(&world.reflector.find_object(&uid(1)).unwrap()), "{looked_at:?}");
        let next = world.restarted();
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
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let mut run = job(1, "nightly", 5, "Complete");
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": uid(9)});
    run["metadata"]["ownerReferences"].as_array_mut().unwrap().push(owner);
    world.see(&run);
    run["metadata"]["resourceVersion"] = json!("6");
    world.deleted(&run);
    assert_eq!((world.counts(1), world.memories().outcomes.len()), (None, 0));
}

#[test]
fn what_a_policy_passes_over_is_not_remembered_by_it() {
    let mut world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    let hook = LabelMatchTerm::In("hook".into(), vec!["yes".into()]);
    world.jobs.child[0].ignore = Some(LabelMatcher { requirements: vec![hook] });
    world.reflector.set_interest(world.jobs.clone());
    let mut hook = job(1, "hook", 5, "Complete");
    hook["metadata"]["labels"] = json!({"hook": "yes"});
    world.see(&job(1, "hook", 4, "Complete"));
    world.see(&hook);
    hook["metadata"]["resourceVersion"] = json!("6");
    world.deleted(&hook);
    assert_eq!((world.counts(1), world.memories().outcomes.len()), (None, 0));
}

#[test]
fn only_so_many_are_remembered_and_what_failed_comes_first() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(0, "first", 1, "Failed"));
    world.deleted(&job(0, "first", 2, "Failed"));
    for n in 1..40 {
        world.see(&job(n, &format!("job-{n}"), 10 * n, "Complete"));
        world.deleted(&job(n, &format!("job-{n}"), 10 * n + 1, "Complete"));
    }
    let counted = (0..40).filter(|n| world.counts(*n).is_some()).count();
    assert_eq!((counted, world.memories().outcomes.len()), (MAX_PARENT_OUTCOMES, MAX_PARENT_OUTCOMES));
    assert_eq!((world.counts(0), world.counts(39), world.counts(1)), (FAILED, READY, None));
    let beyond = world.reflector.outcomes().take_dropped_outcomes();
    assert_eq!((beyond.count, beyond.some.len()), (40 - MAX_PARENT_OUTCOMES as u64, MAX_PARENT_OUTCOMES));
    let (whose, job) = &beyond.some[0];
    assert_eq!((&*whose.name, &*job.name), ("w", "job-1"), "the oldest that ended well");
}

#[test]
fn what_there_is_no_room_for_is_told_of_once() {
    let world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    for n in 0..20 {
        // The last four are running; failed runs come before them.
        let ended = if n < 16 { "Failed" } else { "" };
        world.see(&job(n, &format!("job-{n}"), n + 1, ended));
    }
    assert_eq!(world.reflector.outcomes().take_dropped_outcomes().count, 4);
    world.see(&job(19, "job-19", 50, ""));
    world.list(&(0..20).map(|n| job(n, &format!("job-{n}"), n + 60, "")).collect::<Vec<_>>());
    assert_eq!(world.reflector.outcomes().take_dropped_outcomes().count, 0);
}

#[test]
fn a_policy_that_does_not_remember_any_more_counts_nothing_that_is_gone() {
    let mut world = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    for (after, counts) in [(OutcomeRetention::Forget, None), (OutcomeRetention::Remember, READY)] {
        world.jobs = jobs(after);
        world.reflector.set_interest(world.jobs.clone());
        world.list(&[]);
        assert_eq!(world.counts(1), counts, "{after:?}");
    }
    assert_eq!(world.reflector.forget_kind(JOBS), 1);
    assert_eq!(world.counts(1), None);
}
