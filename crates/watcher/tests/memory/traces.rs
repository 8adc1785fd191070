//! Events about runs that were not observed.

use aggregator::ChildSource;
use readiness::{Level, Time};
use serde_json::{Value, json};
use watcher::plan::{OutcomeRetention, ParentTemplate};
use watcher::reflector::{OutcomeParent, ParentOutcomes, RunEnd, RunTrace};

use crate::harness::{
    FAILED, OutcomeMemoryHarness, READY, UNSEEN, WIDGET, WIDGETS, generated, job, read, tell, trace, uid,
    widget, widgets,
};

fn failed() -> RunEnd {
    RunEnd::Failed("BackoffLimitExceeded".into())
}

/// One run of `migrate` completed successfully and is gone.
fn remembering() -> OutcomeMemoryHarness {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, "Complete"));
    harness.deleted(&job(1, "migrate", 7, "Complete"));
    harness
}

#[test]
fn after_a_run_that_came_and_went_in_an_outage_nobody_knows_how_it_stands() {
    for end in [failed(), RunEnd::Complete, RunEnd::Open] {
        let next = remembering().restarted();
        assert_eq!(next.reflector.outcomes().take_blind_namespaces(), [Box::from("shop")]);
        assert_eq!(tell(&next, &[trace(2, "migrate", 9, end.clone())]), 1);
        next.list(&[]);
        assert_eq!((next.counts(1), next.counts(2)), (None, UNSEEN));
        let memories = next.memories();
        let [outcome] = memories.counting().collect::<Vec<_>>()[..] else { panic!("one run of one thing") };
        assert_eq!((&*outcome.uid, outcome.first_version, outcome.deleted), (&*uid(2), 9, true));
        assert!(!next.reflector.outcomes().apply_evidence(&uid(2), &end), "Events do not say whose it was");
        assert_eq!(next.reflector.outcomes().take_unseen_runs(), [], "and nobody else is asked");
        let again = next.restarted();
        again.list(&[]);
        assert_eq!((again.counts(1), again.counts(2)), (None, UNSEEN), "and after another restart");
        assert_eq!(again.reflector.outcomes().take_unseen_runs(), []);
        again.list(&[job(3, "migrate", 11, "Complete")]);
        assert_eq!((again.counts(2), again.memories().outcomes.len()), (None, 1), "until the next one");
    }
}

#[test]
fn a_person_who_knows_it_may_say_how_it_ended_that_was_heard_of() {
    let next = remembering().restarted();
    tell(&next, &[trace(2, "migrate", 9, failed())]);
    next.list(&[]);
    let mut outcomes = next.memories().outcomes;
    outcomes.last_mut().unwrap().end = RunEnd::Complete;
    next.reflector.outcomes().consider_edit(&outcomes);
    assert_eq!((next.counts(1), next.counts(2)), (None, READY));
    let known = next.memories().outcomes;
    assert_eq!(known.iter().map(|o| o.known_from_events).collect::<Vec<_>>(), [false]);
}

/// A Job without an owner.
fn strangers(n: u32, name: &str, version: u32) -> Value {
    let mut stranger = job(n, name, version, "Failed");
    stranger["metadata"]["ownerReferences"] = json!([]);
    stranger
}

#[test]
fn what_was_heard_of_and_is_seen_to_be_a_strangers_changes_nothing() {
    let stranger = strangers(2, "migrate", 9);
    let heard = || {
        let next = remembering().restarted();
        next.list(&[]);
        tell(&next, &[trace(3, "migrate", 8, failed()), trace(2, "migrate", 9, failed())]);
        assert_eq!((next.counts(1), next.counts(2), next.counts(3)), (None, UNSEEN, None));
        next
    };
    let alive = heard();
    alive.see(&stranger);
    alive.deleted(&stranger);
    let deleted = heard();
    deleted.deleted(&stranger);
    let restarted = heard().restarted();
    restarted.list(std::slice::from_ref(&stranger));
    for harness in [alive, deleted, restarted] {
        assert_eq!((harness.counts(1), harness.counts(2)), (None, None));
        assert_eq!(harness.counts(3), UNSEEN, "the one before it may be the next run all the same");
        assert_eq!(tell(&harness, &[trace(2, "migrate", 9, failed()), trace(3, "migrate", 8, failed())]), 0);
        harness.deleted(&strangers(3, "migrate", 8));
        assert_eq!((harness.counts(1), harness.counts(3)), (READY, None));
        assert_eq!(tell(&harness, &[trace(3, "migrate", 8, failed())]), 0, "it is known by now");
    }
}

#[test]
fn a_run_that_is_told_of_late_counts_once_the_one_after_it_was_a_strangers() {
    let next = remembering().restarted();
    next.list(&[]);
    assert_eq!(tell(&next, &[trace(3, "migrate", 20, failed())]), 1);
    assert_eq!(tell(&next, &[trace(2, "migrate", 10, RunEnd::Complete)]), 1);
    assert_eq!((next.counts(1), next.counts(2), next.counts(3)), (None, None, UNSEEN));
    next.deleted(&strangers(3, "migrate", 21));
    assert_eq!((next.counts(1), next.counts(2), next.counts(3)), (None, UNSEEN, None));
}

#[test]
fn what_is_learnt_of_a_run_below_one_that_was_heard_of_is_not_lost() {
    let mut stranger = generated(2, "backup-zzzzz", 12, "Failed");
    stranger["metadata"]["ownerReferences"] = json!([]);
    for (ended, expected) in [("Complete", READY), ("Failed", FAILED)] {
        let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
        harness.list(&[generated(1, "backup-bcdfg", 5, "")]);
        assert_eq!(tell(&harness, &[trace(2, "backup-zzzzz", 9, failed())]), 1);
        harness.see(&generated(1, "backup-bcdfg", 10, ended));
        harness.list(&[]);
        assert_eq!((harness.counts(1), harness.counts(2)), (None, UNSEEN));
        harness.deleted(&stranger);
        assert_eq!((harness.counts(1), harness.counts(2)), (expected, None));
    }
}

#[test]
fn a_run_below_one_that_was_heard_of_is_of_the_generation_in_which_its_parent_is_first_read() {
    let harness = OutcomeMemoryHarness::blind(OutcomeRetention::RememberGeneration);
    harness.list(&[generated(1, "backup-bcdfg", 5, "Complete")]);
    tell(&harness, &[trace(2, "backup-zzzzz", 9, failed())]);
    harness.widget(3, 1);
    harness.list(&[]);
    let mut stranger = generated(2, "backup-zzzzz", 12, "Failed");
    stranger["metadata"]["ownerReferences"] = json!([]);
    harness.deleted(&stranger);
    assert_eq!(harness.counts(1), READY);
    harness.widget(13, 2);
    assert_eq!(harness.counts(1), None, "an outcome of no generation would count for every one");
}

#[test]
fn of_many_that_were_heard_of_the_last_ones_are_kept_above_the_one_that_was_seen() {
    let next = remembering().restarted();
    next.list(&[]);
    let runs: Vec<_> = (2..30).map(|n| trace(n, "migrate", u64::from(n) + 7, failed())).collect();
    tell(&next, &runs);
    assert_eq!((next.counts(1), next.counts(28), next.counts(29)), (None, None, UNSEEN));
    assert_eq!(next.memories().outcomes.len(), 5);
    assert_eq!(tell(&next, &runs), 0, "what there is no room for is not told of anew");
    for n in (26..30).rev() {
        assert_eq!(next.counts(n), UNSEEN);
        next.deleted(&strangers(n, "migrate", 100 + n));
    }
    assert_eq!((next.counts(1), next.memories().outcomes.len()), (READY, 1));
}

#[test]
fn of_several_runs_in_an_outage_the_last_one_counts() {
    let next = remembering().restarted();
    let runs = [
        trace(4, "migrate", 30, RunEnd::Complete),
        trace(2, "migrate", 10, RunEnd::Complete),
        trace(3, "migrate", 20, failed()),
    ];
    assert_eq!(tell(&next, &runs), 3);
    next.list(&[]);
    assert_eq!((next.counts(2), next.counts(3), next.counts(4)), (None, None, UNSEEN));
    assert_eq!(tell(&next, &runs), 0, "once");
}

#[test]
fn runs_before_the_one_that_is_remembered_change_nothing() {
    let next = remembering().restarted();
    next.list(&[]);
    // The Event came late, in the second in which the next run was created.
    assert_eq!(tell(&next, &[trace(9, "migrate", 4, failed()), trace(8, "migrate", 0, failed())]), 0);
    assert_eq!(tell(&next, &[trace(1, "migrate", 6, failed())]), 0, "it is the one that is remembered");
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_watch_that_was_blind_asks_again() {
    let harness = remembering();
    _ = harness.reflector.outcomes().take_blind_namespaces();
    harness.list(&[]);
    assert_eq!(harness.reflector.outcomes().take_blind_namespaces(), [Box::from("shop")]);
    tell(&harness, &[trace(2, "migrate", 9, failed())]);
    assert_eq!((harness.counts(1), harness.counts(2)), (None, UNSEEN));
    let alive = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    alive.list(&[job(1, "migrate", 5, "")]);
    assert_eq!(
        alive.reflector.outcomes().take_blind_namespaces(),
        Vec::<Box<str>>::new(),
        "of one name there is one at a time"
    );
}

#[test]
fn what_is_there_is_for_its_watch_to_tell() {
    let next = remembering().restarted();
    next.list(&[job(2, "migrate", 9, "")]);
    assert_eq!(
        next.reflector.outcomes().unobserved_traces("shop", &[trace(2, "migrate", 9, RunEnd::Complete)]),
        []
    );
    assert_eq!(next.counts(2), Some((Level::Progressing, ChildSource::Owner)));
    // The object's own outcome takes precedence over Events.
    let heard_first = remembering().restarted();
    tell(&heard_first, &[trace(2, "migrate", 9, RunEnd::Complete)]);
    heard_first.list(&[job(2, "migrate", 9, "")]);
    assert_eq!(heard_first.counts(2), Some((Level::Progressing, ChildSource::Owner)));
    heard_first.deleted(&job(2, "migrate", 11, "Failed"));
    assert_eq!(heard_first.counts(2), FAILED);
    // Also if its deletion is all that can be observed.
    for (ended, expected) in [("Failed", FAILED), ("Complete", READY), ("", None)] {
        let heard_first = remembering().restarted();
        heard_first.list(&[]);
        tell(&heard_first, &[trace(2, "migrate", 9, RunEnd::Open)]);
        heard_first.deleted(&job(2, "migrate", 11, ended));
        assert_eq!((heard_first.counts(1), heard_first.counts(2)), (None, expected), "{ended}");
    }
}

#[test]
fn nothing_that_is_told_puts_another_in_the_place_of_what_is_there() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&job(1, "migrate", 5, ""));
    assert_eq!(tell(&harness, &[trace(2, "migrate", 90, RunEnd::Complete)]), 0);
    harness.deleted(&job(1, "migrate", 7, "Failed"));
    assert_eq!((harness.counts(1), harness.counts(2)), (FAILED, None));
}

#[test]
fn generated_names_are_known_by_their_prefix_and_their_beginning() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&generated(1, "backup-bcdfg", 5, "Complete"));
    harness.deleted(&generated(1, "backup-bcdfg", 7, "Complete"));
    let next = harness.restarted();
    next.list(&[]);
    let others = [
        trace(2, "backup-full", 9, failed()),
        trace(3, "backup-bcdfg2", 9, failed()),
        trace(4, "backup-", 9, failed()),
        trace(5, "backup-aeiou", 9, failed()),
        RunTrace { seen_from_creation: false, ..trace(6, "backup-zzzzz", 9, failed()) },
        RunTrace { namespace: "other".into(), ..trace(7, "backup-zzzzz", 9, failed()) },
    ];
    assert_eq!(tell(&next, &others), 0);
    assert_eq!(next.counts(1), READY);
    assert_eq!(tell(&next, &[trace(8, "backup-zzzzz", 9, failed())]), 1);
    assert_eq!((next.counts(1), next.counts(8)), (None, UNSEEN));
}

#[test]
fn one_that_went_while_a_stranger_was_taken_for_its_next_run_is_gone() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&generated(1, "backup-bcdfg", 5, "Complete"));
    harness.list(&[generated(1, "backup-bcdfg", 5, "Complete")]);
    assert_eq!(tell(&harness, &[trace(2, "backup-zzzzz", 9, failed())]), 1);
    assert_eq!((harness.counts(1), harness.counts(2)), (Some((Level::Ready, ChildSource::Owner)), UNSEEN));
    harness.deleted(&generated(1, "backup-bcdfg", 11, "Complete"));
    let mut stranger = generated(2, "backup-zzzzz", 12, "Failed");
    stranger["metadata"]["ownerReferences"] = json!([]);
    harness.deleted(&stranger);
    assert_eq!((harness.counts(1), harness.counts(2)), (READY, None));
}

#[test]
fn where_it_may_be_the_next_run_of_two_parents_neither_is_known() {
    let next = remembering().restarted();
    let ParentOutcomes { parent: whose, mut outcomes } = remembering().memories();
    outcomes[0].uid = uid(50).into();
    next.reflector.outcomes().recall_record(OutcomeParent { uid: uid(WIDGET + 1).into(), ..whose }, outcomes);
    tell(&next, &[trace(2, "migrate", 9, RunEnd::Complete)]);
    next.list(&[]);
    assert_eq!((next.counts(1), next.counts(2)), (None, UNSEEN));
}

#[test]
fn what_is_known_to_be_of_one_parent_is_no_run_of_another() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::Remember);
    harness.see(&generated(1, "backup-bcdfg", 5, "Complete"));
    harness.deleted(&generated(1, "backup-bcdfg", 7, "Complete"));
    let next = harness.restarted();
    let ParentOutcomes { parent: whose, mut outcomes } = harness.memories();
    (outcomes[0].uid, outcomes[0].name, outcomes[0].first_version) =
        (uid(50).into(), "backup-zzzzz".into(), 9);
    next.reflector.outcomes().recall_record(OutcomeParent { uid: uid(WIDGET + 1).into(), ..whose }, outcomes);
    assert_eq!(tell(&next, &[trace(50, "backup-zzzzz", 9, failed())]), 0);
    next.list(&[]);
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_run_that_nobody_saw_is_taken_for_one_under_the_generation_of_the_one_before_it() {
    let harness = OutcomeMemoryHarness::new(OutcomeRetention::RememberGeneration);
    harness.see(&job(1, "migrate", 5, "Failed"));
    harness.deleted(&job(1, "migrate", 7, "Failed"));
    for (generation, expected) in [(1, UNSEEN), (2, None)] {
        let next = harness.restarted();
        tell(&next, &[trace(2, "migrate", 9, RunEnd::Complete)]);
        next.list(&[]);
        next.widget(8, generation);
        assert_eq!(next.counts(2), expected, "generation {generation}");
    }
}

/// Widgets that expect a Job named `migrate`; one of them was created at least a second before the first trace.
fn expecting(generation: u32, after: OutcomeRetention) -> OutcomeMemoryHarness {
    let harness = OutcomeMemoryHarness::blind(after);
    harness.list(&[]);
    let mut interest = widgets();
    interest.parent[0].names = vec![(0, vec![ParentTemplate::parse("migrate").unwrap()])];
    let mut parent = widget(1, generation);
    parent["metadata"]["creationTimestamp"] = json!("2027-01-15T07:59:59Z");
    harness.reflector.set_interest(interest);
    let pass = harness.reflector.begin_list(WIDGETS, None);
    let parent = read(&parent);
    harness.reflector.apply_listed(&pass, &parent.child, Some(&parent.text));
    harness.reflector.finish_list(&pass).unwrap();
    harness
}

#[test]
fn of_what_is_expected_by_name_and_was_never_seen_it_is_known_that_it_was() {
    for end in [failed(), RunEnd::Complete, RunEnd::Open] {
        let harness = expecting(3, OutcomeRetention::Remember);
        assert_eq!(harness.reflector.outcomes().take_blind_namespaces(), [Box::from("shop")]);
        assert!(harness.reflector.outcomes().runs_in_namespace("shop").may_have_run("migrate"));
        let before =
            RunTrace { first_seen: Some(Time(1_799_999_998_000)), ..trace(1, "migrate", 3, failed()) };
        assert_eq!(
            tell(&harness, &[before, trace(5, "seed", 4, failed())]),
            0,
            "before it was, or of another name"
        );
        assert_eq!(tell(&harness, &[trace(2, "migrate", 9, end)]), 1);
        assert_eq!(harness.counts(2), UNSEEN);
        assert_eq!(tell(&harness, &[trace(3, "migrate", 11, failed())]), 1, "the next one");
        assert_eq!((harness.counts(2), harness.counts(3)), (None, UNSEEN));
        harness.list(&[]);
        assert_eq!(&*harness.memories().parent.name, "w");
    }
    let harness = expecting(3, OutcomeRetention::Remember);
    let runs = [trace(3, "migrate", 11, failed()), trace(2, "migrate", 9, RunEnd::Complete)];
    assert_eq!(tell(&harness, &runs), 2);
    assert_eq!((harness.counts(2), harness.counts(3)), (None, UNSEEN), "the last of several");
}

#[test]
fn what_was_heard_of_stands_for_a_generation_only_where_there_was_no_other() {
    for (generation, expected) in [(1, UNSEEN), (2, None)] {
        let harness = expecting(generation, OutcomeRetention::RememberGeneration);
        tell(&harness, &[trace(2, "migrate", 9, RunEnd::Complete)]);
        assert_eq!(harness.counts(2), expected, "generation {generation}");
    }
    let forgetful = expecting(1, OutcomeRetention::Forget);
    assert_eq!(forgetful.reflector.outcomes().take_blind_namespaces(), Vec::<Box<str>>::new());
}

#[test]
fn without_versions_only_whole_seconds_tell_which_came_later() {
    let harness = remembering();
    let ParentOutcomes { parent: whose, mut outcomes } = harness.memories();
    (outcomes[0].first_version, outcomes[0].created) = (0, Some(Time(1_800_000_000_900)));
    for (first, expected) in [(1_800_000_000_999, READY), (1_800_000_001_000, None)] {
        let next = OutcomeMemoryHarness::blind(OutcomeRetention::Remember);
        next.reflector.outcomes().recall_record(whose.clone(), outcomes.clone());
        next.list(&[]);
        tell(&next, &[RunTrace { first_seen: Some(Time(first)), ..trace(2, "migrate", 9, failed()) }]);
        assert_eq!(next.counts(1), expected, "{first}");
    }
}
