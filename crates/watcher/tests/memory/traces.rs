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
fn a_run_that_came_and_went_in_an_outage_counts_instead_of_the_one_before_it() {
    for (end, expected) in [(failed(), FAILED), (End::Complete, READY), (End::Open, UNSEEN)] {
        let next = remembering().restarted();
        assert_eq!(next.reflector.take_blind(), [Box::from("shop")]);
        assert_eq!(tell(&next, &[trace(2, "migrate", 9, end)]), 1);
        next.list(&[]);
        assert_eq!((next.counts(1), next.counts(2)), (None, expected));
        let [outcome] = &next.memories().outcomes[..] else { panic!("one run of one thing") };
        assert_eq!((&*outcome.uid, outcome.first, outcome.gone), (&*uid(2), 9, true));
        let again = next.restarted();
        again.list(&[]);
        assert_eq!((again.counts(1), again.counts(2)), (None, expected), "and after another restart");
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
    assert_eq!((next.counts(2), next.counts(3), next.counts(4)), (None, None, READY));
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
    assert_eq!((world.counts(1), world.counts(2)), (None, FAILED));
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
    assert_eq!((next.counts(1), next.counts(8)), (None, FAILED));
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
fn a_run_that_nobody_saw_is_taken_for_one_under_the_generation_of_the_one_before_it() {
    let world = World::new(After::RememberGeneration);
    world.see(&job(1, "migrate", 5, "Failed"));
    world.deleted(&job(1, "migrate", 7, "Failed"));
    for (generation, expected) in [(1, READY), (2, None)] {
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
fn what_is_expected_by_name_and_was_never_seen_counts_as_it_was_heard_of() {
    for (end, expected) in [(failed(), FAILED), (End::Complete, READY), (End::Open, UNSEEN)] {
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
        assert_eq!(world.counts(2), expected);
        assert_eq!(tell(&world, &[trace(3, "migrate", 11, failed())]), 1, "the next one");
        assert_eq!((world.counts(2), world.counts(3)), (None, FAILED));
        world.list(&[]);
        assert_eq!(&*world.memories().whose.name, "w");
    }
    let world = expecting(3, After::Remember);
    let runs = [trace(3, "migrate", 11, failed()), trace(2, "migrate", 9, End::Complete)];
    assert_eq!(tell(&world, &runs), 2);
    assert_eq!((world.counts(2), world.counts(3)), (None, FAILED), "the last of several");
}

#[test]
fn a_job_of_the_second_in_which_its_parent_was_created_may_be_older() {
    let world = expecting(1, After::Remember);
    let first = Some(Time(1_799_999_999_000));
    tell(&world, &[Trace { first, ..trace(2, "migrate", 9, End::Complete) }]);
    assert_eq!(world.counts(2), UNSEEN);
}

#[test]
fn what_was_heard_of_stands_for_a_generation_only_where_there_was_no_other() {
    for (generation, expected) in [(1, READY), (2, None)] {
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
