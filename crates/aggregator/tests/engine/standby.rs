//! Standby: nothing is written, and a new leader writes what is missing and nothing else.

use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::ParentReason;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::EngineHarness;
use crate::policy;

#[test]
fn who_stands_by_writes_nothing_and_says_it_all_once_it_leads() {
    let mut w = EngineHarness::with(policy());
    w.stand_by(true);
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(60_000);
    assert!(w.server.log.is_empty(), "{:?}", w.server.log);
    assert_eq!(w.engine.withheld_count(), 1);
    w.stand_by(false);
    w.run(60_000);
    assert_eq!(w.words("db"), ["ChildrenPending", "ChildrenProgressing"]);
    assert_eq!(w.engine.withheld_count(), 0);
}

#[test]
fn who_takes_over_at_rest_writes_nothing() {
    let mut w = well();
    let before = w.server.log.len();
    for _ in 0..5 {
        w.stand_by(true);
        w.run(60_000);
        w.observe("web");
        w.run(60_000);
        assert_eq!(w.engine.withheld_count(), 0);
        w.stand_by(false);
        w.run(60_000);
    }
    assert_eq!(w.server.log.len(), before);
}

#[test]
fn what_moved_while_nobody_led_is_said_once_somebody_does() {
    let mut w = well();
    let before = w.words("db").len();
    w.stand_by(true);
    for level in [Failed, Ready, Failed] {
        w.turn("web", level);
        w.run(20_000);
    }
    w.stand_by(false);
    w.run(2_000);
    assert_eq!(w.words("db")[before..], ["ChildrenFailed"]);
}

#[test]
fn what_moved_while_nobody_led_turns_once_more_for_who_tells_of_it() {
    let mut w = well();
    w.stand_by(true);
    w.turn("web", Failed);
    w.run(20_000);
    let before = w.turns.len();
    w.stand_by(false);
    w.run(20_000);
    let told: Vec<_> = w.turns[before..].iter().map(|(name, from, to)| (name.as_str(), *from, *to)).collect();
    assert_eq!(told, [("db", Some(ParentReason::AllChildrenReady), ParentReason::ChildrenFailed)]);
    // What another leader has said already is no news.
    w.stand_by(true);
    w.run(20_000);
    w.stand_by(false);
    w.run(20_000);
    assert_eq!(w.turns.len(), before + 1);
}

#[test]
fn what_another_leader_writes_is_no_fight() {
    let mut w = well();
    for _ in 0..10 {
        // Another replica leads for a while and writes under the same field manager.
        w.stand_by(true);
        w.turn("web", Failed);
        w.run(20_000);
        let other = crate::render::render(&w, "db").unwrap();
        w.change_parent("db", |parent| parent.status = other);
        w.run(20_000);
        assert_eq!(w.engine.withheld_count(), 0);
        w.turn("web", Ready);
        w.run(20_000);
        assert_eq!(w.engine.withheld_count(), 1, "it has yet to say that");
        w.stand_by(false);
        w.run(20_000);
        assert_eq!(w.says("db"), "AllChildrenReady", "and not a minute later");
    }
}

#[test]
fn a_parent_that_is_gone_is_held_no_more() {
    let mut w = EngineHarness::with(policy());
    w.stand_by(true);
    w.parent("db");
    w.run(20_000);
    assert_eq!(w.engine.withheld_count(), 1);
    w.remove("db");
    assert_eq!(w.engine.withheld_count(), 0);
    w.stand_by(false);
    w.run(20_000);
    assert!(w.server.log.is_empty());
}
