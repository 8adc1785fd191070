//! Evaluations while changes are known that were not observed yet.

use std::time::Duration;

use aggregator::HandledEvidence;
use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::ParentReason;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::POLICY;

#[test]
fn nothing_turns_true_while_changes_are_known_that_were_not_observed() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(20_000);
    w.engine.set_behind(true);
    w.turn("web", Ready);
    let due = w.now;
    let mut drafts = Vec::new();
    for _ in 0..3 {
        w.now = w.now + Duration::from_secs(2);
        w.engine.poll(w.now, &mut drafts);
        assert_eq!(w.reason("db").map(ParentReason::as_str), Some("ChildrenFailed"));
        assert!(w.engine.next_deadline().is_some_and(|at| at <= w.now), "it is tried again at once");
    }
    w.engine.set_behind(false);
    w.run(20_000);
    assert!(w.now > due);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn what_cannot_turn_true_is_said_although_changes_are_known_that_were_not_observed() {
    let mut w = well();
    w.engine.set_behind(true);
    w.turn("web", Failed);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    w.turn("web", Progressing);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn a_first_word_and_a_last_one_are_said_although_changes_are_known_that_were_not_observed() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(20_000);
    w.engine.set_behind(true);
    w.parent("new");
    w.child("of-new", "new", Ready);
    w.turn("web", Ready);
    w.change_parent("db", |p| p.deleting = true);
    w.run(3);
    let wanted: Vec<_> = w.server.flights.iter().map(|flight| flight.wanted[&POLICY].reason).collect();
    assert_eq!(wanted, [ParentReason::Terminating, ParentReason::ChildrenPending]);
}
