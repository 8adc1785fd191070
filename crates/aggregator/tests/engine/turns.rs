//! Transitions: each is reported once, with the previous reason.

use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::ParentReason;

use crate::driver::EngineDriver as _;
use crate::harness::EngineHarness;
use crate::policy;

/// Returns the transitions of `db` since the last call, as text.
fn turns(w: &mut EngineHarness) -> Vec<String> {
    let word = |reason: Option<ParentReason>| reason.map_or("nothing", ParentReason::as_str);
    let of_db = w.turns.drain(..).filter(|(name, _, _)| name == "db");
    of_db.map(|(_, from, to)| format!("{} → {}", word(from), to.as_str())).collect()
}

fn begun(shadow: bool) -> EngineHarness {
    let mut w = EngineHarness::with(aggregator::EnginePolicy { shadow, ..policy() });
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(60_000);
    w
}

#[test]
fn each_turn_is_told_once_with_what_was_said_before() {
    let mut w = begun(false);
    assert_eq!(turns(&mut w), ["nothing → ChildrenPending", "ChildrenPending → ChildrenProgressing"]);
    w.turn("web", Failed);
    w.run(60_000);
    w.turn("web", Ready);
    w.run(60_000);
    assert_eq!(turns(&mut w), ["ChildrenProgressing → ChildrenFailed", "ChildrenFailed → AllChildrenReady"]);
    w.run(600_000);
    assert!(turns(&mut w).is_empty());
}

#[test]
fn a_flicker_inside_one_debounce_is_no_turn() {
    let mut w = begun(false);
    w.turn("web", Ready);
    w.run(60_000);
    turns(&mut w);
    w.child("api", "db", Ready);
    w.run(50);
    w.turn("web", Failed);
    w.turn("web", Ready);
    w.run(60_000);
    assert!(!turns(&mut w).iter().any(|turn| turn.contains("ChildrenFailed")));
}

#[test]
fn in_shadow_they_are_told_too_though_nothing_is_written() {
    let mut w = begun(true);
    turns(&mut w);
    w.turn("web", Failed);
    w.run(60_000);
    assert_eq!(turns(&mut w), ["ChildrenProgressing → ChildrenFailed"]);
    assert!(w.server.log.is_empty());
}

#[test]
fn a_restart_at_rest_is_no_turn_because_the_parent_itself_says_what_was_said() {
    let mut w = begun(false);
    turns(&mut w);
    w.restart(&[]);
    w.run(60_000);
    assert!(turns(&mut w).is_empty());
    w.turn("web", Failed);
    w.restart(&[]);
    w.run(60_000);
    assert_eq!(turns(&mut w), ["ChildrenProgressing → ChildrenFailed"]);
}

#[test]
fn a_new_generation_is_a_turn_and_so_is_a_parent_that_came_again() {
    let mut w = begun(false);
    w.turn("web", Ready);
    w.run(60_000);
    turns(&mut w);
    w.respecify("db", aggregator::HandledEvidence::NotYet);
    w.run(60_000);
    assert_eq!(turns(&mut w), ["AllChildrenReady → ChildrenPending"]);
    w.remove("db");
    w.run(60_000);
    w.parent("db");
    w.run(60_000);
    assert_eq!(turns(&mut w).first().map(String::as_str), Some("nothing → ChildrenPending"));
}
