//! A deleted and re-created object is a new object.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence};
use readiness::Level::{Failed, Progressing, Ready};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::EngineHarness;
use crate::policy;
use crate::server::WriteFate;

#[test]
fn a_parent_that_was_recreated_hears_the_first_word_again() {
    let mut w = well();
    w.remove("db");
    w.parent("db");
    let before = w.told("db").len();
    w.run(20_000);
    assert_eq!(w.words("db")[before..], ["ChildrenPending", "AllChildrenReady"]);
}

#[test]
fn a_write_meant_for_the_old_one_does_not_land_on_the_new_one() {
    for fate in
        [WriteFate::Lands, WriteFate::Conflict, WriteFate::Retry(Duration::from_secs(9)), WriteFate::Pruned]
    {
        let mut w = well();
        w.server.delay = Duration::from_secs(1);
        w.turn("web", Failed);
        w.run(10);
        assert_eq!(w.server.flights.len(), 1);
        w.server.flights[0].fate = fate;
        w.remove("db");
        w.parent("db");
        w.turn("web", Ready);
        w.server.delay = Duration::from_millis(1_500);
        w.run(500);
        assert_eq!(w.server.flights.len(), 2, "the new one is told something while that is on its way");
        let before = w.told("db").len();
        w.run(700);
        assert_eq!(w.server.flights.len(), 1, "{fate:?}: and not twice, whatever became of the old write");
        w.run(20_000);
        assert_eq!(w.words("db")[before..], ["ChildrenPending", "AllChildrenReady"], "{fate:?}");
        assert!(w.engine.evaluation_states().all(|state| state.unwritten.is_none()));
    }
}

#[test]
fn what_became_of_a_write_to_the_old_one_is_nothing_to_the_new_one_whichever_is_heard_first() {
    for fate in [WriteFate::Conflict, WriteFate::Retry(Duration::from_secs(9)), WriteFate::Pruned] {
        let mut w = well();
        w.server.delay = Duration::from_secs(5);
        w.turn("web", Failed);
        w.run(10);
        w.server.flights[0].fate = fate;
        w.remove("db");
        w.parent("db");
        w.turn("web", Ready);
        w.server.delay = Duration::from_millis(5);
        let before = w.told("db").len();
        w.run(4_000);
        assert_eq!(w.server.flights.len(), 1, "that write is still on its way");
        assert_eq!(
            w.words("db")[before..],
            ["ChildrenPending", "AllChildrenReady"],
            "{fate:?}: and in nobody's way"
        );
        w.turn("web", Progressing);
        w.run(2_000);
        assert_eq!(
            w.words("db")[before + 2..],
            ["ChildrenProgressing"],
            "{fate:?}: nor is what became of it"
        );
        assert!(w.engine.evaluation_states().all(|state| state.unwritten.is_none()), "{fate:?}");
    }
}

#[test]
fn what_was_known_of_the_old_one_is_not_held_against_the_new_one() {
    let mut w = EngineHarness::with(EnginePolicy { deadline: Some(Duration::from_mins(3)), ..policy() });
    w.parent_so("db", |p| p.evidence = HandledEvidence::NotYet);
    w.child("web", "db", Progressing);
    w.run(11 * 60_000);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.remove("db");
    w.parent_so("db", |p| p.evidence = HandledEvidence::NotYet);
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenPending", "its limits begin with it");
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenProgressing", "and so does its deadline");
}

#[test]
fn a_fight_over_the_old_one_is_none_over_the_new_one() {
    let mut w = well();
    for _ in 0..4 {
        w.change_parent("db", |p| {
            for entry in p.status.values_mut() {
                entry.reason = readiness::rollup::ParentReason::ChildrenFailed;
            }
        });
        w.run(500);
    }
    assert!(w.engine.evaluation_states().all(|state| state.yielding));
    w.remove("db");
    w.parent("db");
    w.run(20_000);
    assert!(w.engine.evaluation_states().all(|state| !state.yielding));
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_child_that_was_recreated_is_counted_once_as_it_is_now() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(2_000);
    w.remove("web");
    w.child("web", "db", Ready);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    assert_eq!(w.engine.group_tally(w.id("db"), crate::harness::POLICY, 0).total_count(), 1);
}

#[test]
fn a_verdict_that_was_to_change_does_not_change_the_successor() {
    let mut w = well();
    w.change("web", |web| web.then = Some((w_at(60_000), crate::harness::weight(Failed))));
    w.remove("web");
    w.child("web", "db", Ready);
    w.run(5 * 60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

fn w_at(millis: u64) -> readiness::Time {
    crate::harness::START + Duration::from_millis(millis)
}

#[test]
fn whoever_is_given_the_place_of_another_has_nothing_of_it() {
    let mut w = well();
    let place = w.id("db");
    w.remove("web");
    w.remove("db");
    w.parent("cache");
    assert_eq!(w.id("cache"), place, "a place is given anew");
    w.child("of-cache", "cache", Ready);
    w.run(20_000);
    assert_eq!(w.words("cache"), ["ChildrenPending", "ChildrenSettling", "AllChildrenReady"]);
    assert_eq!(w.engine.evaluation_states().count(), 1);
}
