//! What Events tell of runs that nobody saw.

use aggregator::Source;
use readiness::{Level, Time};
use serde_json::{Value, json};
use watcher::plan::{After, Template};
use watcher::reflector::{End, Memories, Trace, Whose};

use crate::world::{FAILED, JOBS, READY, UNSEEN, WIDGET, WIDGETS, World, job, uid, widget, widgets};

/// A Job of which its Events tell from the beginning on.
fn trace(n: u32, name: &str, version: u64, end: End) -> Trace {
    let (kind, namespace, first) = (JOBS, "shop".into(), Some(Time(1_800_000_000_000)));
    Trace { kind, uid: uid(n).into(), namespace, name: name.into(), first, version, born: true, end }
}

fn failed() -> End {
    End::Failed("BackoffLimitExceeded".into())
}

/// One run of `migrate` ended well and is gone.
fn remembering() -> World {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, "Complete"));
    world.deleted(&job(1, "migrate", 7, "Complete"));
    world
}

/// As the service does it, where nothing of it is there any more.
fn tell(world: &World, traces: &[Trace]) -> usize {
    let gone = world.reflector.unheard("shop", traces);
    world.reflector.supersede("shop", gone)
}

fn generated(n: u32, name: &str, version: u32, ended: &str) -> Value {
    let mut run = job(n, name, version, ended);
    run["metadata"]["generateName"] = json!("backup-");
    run
}

#[test]
fn after_a_run_that_came_and_went_in_an_outage_nobody_knows_how_it_stands() {
    for end in [failed(), End::Complete, End::Open] {
        let next = remembering().restarted();
        assert_eq!(next.reflector.take_blind(), [Box::from("shop")]);
        assert_eq!(tell(&next, &[trace(2, "migrate", 9, end.clone())]), 1);
        next.list(&[]);
        assert_eq!((next.counts(1), next.counts(2)), (None, UNSEEN));
        let [outcome] = &next.memories().outcomes[..] else { panic!("one run of one thing") };
        assert_eq!((&*outcome.uid, outcome.first, outcome.gone), (&*uid(2), 9, true));
        assert!(!next.reflector.evidence(&uid(2), &end), "Events do not say whose it was");
        assert_eq!(next.reflector.take_unseen(), [], "and nobody else is asked");
        let again = next.restarted();
        again.list(&[]);
        assert_eq!((again.counts(1), again.counts(2)), (None, UNSEEN), "and after another restart");
        assert_eq!(again.reflector.take_unseen(), []);
        again.list(&[job(3, "migrate", 11, "Complete")]);
        assert_eq!((again.counts(2), again.memories().outcomes.len()), (None, 1), "until the next one");
    }
}

#[test]
fn a_person_who_knows_it_may_say_how_it_ended_that_was_heard_of() {
    let next = remembering().restarted();
    tell(&next, &[trace(2, "migrate", 9, failed())]);
    next.list(&[]);
    let Memories { whose, mut outcomes } = next.memories();
    outcomes[0].end = End::Complete;
    next.reflector.recall(whose, outcomes);
    assert_eq!(next.counts(2), READY);
    assert!(!next.memories().outcomes[0].heard);
}

#[test]
fn what_was_heard_of_and_is_seen_to_be_a_strangers_changes_nothing() {
    let mut stranger = job(2, "migrate", 9, "Failed");
    stranger["metadata"]["ownerReferences"] = json!([]);
    let heard = || {
        let next = remembering().restarted();
        next.list(&[]);
        tell(&next, &[trace(3, "migrate", 8, failed()), trace(2, "migrate", 9, failed())]);
        assert_eq!((next.counts(1), next.counts(2), next.counts(3)), (None, UNSEEN, None));
        next
    };
    let alive = heard();
    alive.see(&stranger);
    assert_eq!(alive.counts(1), READY);
    alive.deleted(&stranger);
    let deleted = heard();
    deleted.deleted(&stranger);
    for world in [alive, deleted] {
        assert_eq!((world.counts(1), world.counts(2)), (READY, None));
        assert_eq!(tell(&world, &[trace(2, "migrate", 9, failed())]), 0, "it is known by now");
        assert_eq!(tell(&world, &[trace(3, "migrate", 8, failed())]), 1, "the other one is not");
    }
}

#[test]
fn of_several_runs_in_an_outage_the_last_one_counts() {
    let next = remembering().restarted();
    let runs = [
        trace(4, "migrate", 30, End::Complete),
        trace(2, "migrate", 10, End::Complete),
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
    // Its Event came late, in the second in which the next one was created.
    assert_eq!(tell(&next, &[trace(9, "migrate", 4, failed()), trace(8, "migrate", 0, failed())]), 0);
    assert_eq!(tell(&next, &[trace(1, "migrate", 6, failed())]), 0, "it is the one that is remembered");
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_watch_that_was_blind_asks_again() {
    let world = remembering();
    _ = world.reflector.take_blind();
    world.list(&[]);
    assert_eq!(world.reflector.take_blind(), [Box::from("shop")]);
    tell(&world, &[trace(2, "migrate", 9, failed())]);
    assert_eq!((world.counts(1), world.counts(2)), (None, UNSEEN));
    let alive = World::new(After::Remember);
    alive.list(&[job(1, "migrate", 5, "")]);
    assert_eq!(alive.reflector.take_blind(), Vec::<Box<str>>::new(), "of one name there is one at a time");
}

#[test]
fn what_is_there_is_for_its_watch_to_tell() {
    let next = remembering().restarted();
    next.list(&[job(2, "migrate", 9, "")]);
    assert_eq!(next.reflector.unheard("shop", &[trace(2, "migrate", 9, End::Complete)]), []);
    assert_eq!(next.counts(2), Some((Level::Progressing, Source::Owner)));
    // What it says itself is better than what was heard of it.
    let heard_first = remembering().restarted();
    tell(&heard_first, &[trace(2, "migrate", 9, End::Complete)]);
    heard_first.list(&[job(2, "migrate", 9, "")]);
    assert_eq!(heard_first.counts(2), Some((Level::Progressing, Source::Owner)));
    heard_first.deleted(&job(2, "migrate", 11, "Failed"));
    assert_eq!(heard_first.counts(2), FAILED);
    // Also where there is nothing of it to be seen but that it is deleted.
    for (ended, expected) in [("Failed", FAILED), ("Complete", READY), ("", None)] {
        let heard_first = remembering().restarted();
        heard_first.list(&[]);
        tell(&heard_first, &[trace(2, "migrate", 9, End::Open)]);
        heard_first.deleted(&job(2, "migrate", 11, ended));
        assert_eq!((heard_first.counts(1), heard_first.counts(2)), (None, expected), "{ended}");
    }
}

#[test]
fn nothing_that_is_told_puts_another_in_the_place_of_what_is_there() {
    let world = World::new(After::Remember);
    world.see(&job(1, "migrate", 5, ""));
    assert_eq!(tell(&world, &[trace(2, "migrate", 90, End::Complete)]), 0);
    world.deleted(&job(1, "migrate", 7, "Failed"));
    assert_eq!((world.counts(1), world.counts(2)), (FAILED, None));
}

#[test]
fn generated_names_are_known_by_their_prefix_and_their_beginning() {
    let world = World::new(After::Remember);
    world.see(&generated(1, "backup-bcdfg", 5, "Complete"));
    world.deleted(&generated(1, "backup-bcdfg", 7, "Complete"));
    let next = world.restarted();
    next.list(&[]);
    let others = [
        trace(2, "backup-full", 9, failed()),
        trace(3, "backup-bcdfg2", 9, failed()),
        trace(4, "backup-", 9, failed()),
        trace(5, "backup-aeiou", 9, failed()),
        Trace { born: false, ..trace(6, "backup-zzzzz", 9, failed()) },
        Trace { namespace: "other".into(), ..trace(7, "backup-zzzzz", 9, failed()) },
    ];
    assert_eq!(tell(&next, &others), 0);
    assert_eq!(next.counts(1), READY);
    assert_eq!(tell(&next, &[trace(8, "backup-zzzzz", 9, failed())]), 1);
    assert_eq!((next.counts(1), next.counts(8)), (None, UNSEEN));
}

#[test]
fn one_that_went_while_a_stranger_was_taken_for_its_next_run_is_gone() {
    let world = World::new(After::Remember);
    world.see(&generated(1, "backup-bcdfg", 5, "Complete"));
    world.list(&[generated(1, "backup-bcdfg", 5, "Complete")]);
    assert_eq!(tell(&world, &[trace(2, "backup-zzzzz", 9, failed())]), 1);
    assert_eq!((world.counts(1), world.counts(2)), (Some((Level::Ready, Source::Owner)), UNSEEN));
    world.deleted(&generated(1, "backup-bcdfg", 11, "Complete"));
    let mut stranger = generated(2, "backup-zzzzz", 12, "Failed");
    stranger["metadata"]["ownerReferences"] = json!([]);
    world.deleted(&stranger);
    assert_eq!((world.counts(1), world.counts(2)), (READY, None));
}

#[test]
fn where_it_may_be_the_next_run_of_two_parents_neither_is_known() {
    let next = remembering().restarted();
    let Memories { whose, mut outcomes } = remembering().memories();
    outcomes[0].uid = uid(50).into();
    next.reflector.recall(Whose { uid: uid(WIDGET + 1).into(), ..whose }, outcomes);
    tell(&next, &[trace(2, "migrate", 9, End::Complete)]);
    next.list(&[]);
    assert_eq!((next.counts(1), next.counts(2)), (None, UNSEEN));
}

#[test]
fn what_is_known_to_be_of_one_parent_is_no_run_of_another() {
    let world = World::new(After::Remember);
    world.see(&generated(1, "backup-bcdfg", 5, "Complete"));
    world.deleted(&generated(1, "backup-bcdfg", 7, "Complete"));
    let next = world.restarted();
    let Memories { whose, mut outcomes } = world.memories();
    (outcomes[0].uid, outcomes[0].name, outcomes[0].first) = (uid(50).into(), "backup-zzzzz".into(), 9);
    next.reflector.recall(Whose { uid: uid(WIDGET + 1).into(), ..whose }, outcomes);
    assert_eq!(tell(&next, &[trace(50, "backup-zzzzz", 9, failed())]), 0);
    next.list(&[]);
    assert_eq!(next.counts(1), READY);
}

#[test]
fn a_run_that_nobody_saw_is_taken_for_one_under_the_generation_of_the_one_before_it() {
    let world = World::new(After::RememberGeneration);
    world.see(&job(1, "migrate", 5, "Failed"));
    world.deleted(&job(1, "migrate", 7, "Failed"));
    for (generation, expected) in [(1, UNSEEN), (2, None)] {
        let next = world.restarted();
        tell(&next, &[trace(2, "migrate", 9, End::Complete)]);
        next.list(&[]);
        next.widget(8, generation);
        assert_eq!(next.counts(2), expected, "generation {generation}");
    }
}

/// Widgets that expect a Job by the name of `migrate`; one that was created a second before the first trace, at least.
fn expecting(generation: u32, after: After) -> World {
    let world = World::blind(after);
    world.list(&[]);
    let mut interest = widgets();
    interest.parent[0].names = vec![(0, vec![Template::parse("migrate").unwrap()])];
    let mut parent = widget(1, generation);
    parent["metadata"]["creationTimestamp"] = json!("2027-01-15T07:59:59Z");
    world.reflector.begin(WIDGETS, None);
    world.parent(&parent, &interest);
    world.reflector.finish(WIDGETS, None);
    world
}

#[test]
fn of_what_is_expected_by_name_and_was_never_seen_it_is_known_that_it_was() {
    for end in [failed(), End::Complete, End::Open] {
        let world = expecting(3, After::Remember);
        assert_eq!(world.reflector.take_blind(), [Box::from("shop")]);
        assert!(world.reflector.runs("shop").may_have("migrate"));
        let before = Trace { first: Some(Time(1_799_999_998_000)), ..trace(1, "migrate", 3, failed()) };
        assert_eq!(
            tell(&world, &[before, trace(5, "seed", 4, failed())]),
            0,
            "before it was, or of another name"
        );
        assert_eq!(tell(&world, &[trace(2, "migrate", 9, end)]), 1);
        assert_eq!(world.counts(2), UNSEEN);
        assert_eq!(tell(&world, &[trace(3, "migrate", 11, failed())]), 1, "the next one");
        assert_eq!((world.counts(2), world.counts(3)), (None, UNSEEN));
        world.list(&[]);
        assert_eq!(&*world.memories().whose.name, "w");
    }
    let world = expecting(3, After::Remember);
    let runs = [trace(3, "migrate", 11, failed()), trace(2, "migrate", 9, End::Complete)];
    assert_eq!(tell(&world, &runs), 2);
    assert_eq!((world.counts(2), world.counts(3)), (None, UNSEEN), "the last of several");
}

#[test]
fn what_was_heard_of_stands_for_a_generation_only_where_there_was_no_other() {
    for (generation, expected) in [(1, UNSEEN), (2, None)] {
        let world = expecting(generation, After::RememberGeneration);
        tell(&world, &[trace(2, "migrate", 9, End::Complete)]);
        assert_eq!(world.counts(2), expected, "generation {generation}");
    }
    let forgetful = expecting(1, After::Forget);
    assert_eq!(forgetful.reflector.take_blind(), Vec::<Box<str>>::new());
}

#[test]
fn without_versions_only_whole_seconds_tell_which_came_later() {
    let world = remembering();
    let Memories { whose, mut outcomes } = world.memories();
    (outcomes[0].first, outcomes[0].created) = (0, Some(Time(1_800_000_000_900)));
    for (first, expected) in [(1_800_000_000_999, READY), (1_800_000_001_000, None)] {
        let next = World::blind(After::Remember);
        next.reflector.recall(whose.clone(), outcomes.clone());
        next.list(&[]);
        tell(&next, &[Trace { first: Some(Time(first)), ..trace(2, "migrate", 9, failed()) }]);
        assert_eq!(next.counts(1), expected, "{first}");
    }
}
