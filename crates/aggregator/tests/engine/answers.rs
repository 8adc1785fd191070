//! First answers, levels of children, and how True waits.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindState};
use readiness::Level::{Failed, Progressing, Ready, Suspended, Terminating, Unknown};
use readiness::rollup::{ChildWeight, ParentReason};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, weight};
use crate::policy;
use crate::server::WriteFate;

#[test]
fn first_word_is_unknown() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Ready);
    w.run(60_000);
    w.parent("db");
    w.run(60_000);
    assert_eq!(w.words("db"), ["ChildrenPending", "AllChildrenReady"]);
    w.respecify("db", HandledEvidence::Handled);
    w.run(60_000);
    assert_eq!(w.words("db")[2..], ["ChildrenPending", "AllChildrenReady"]);
}

/// Each kind has a watch of its own: completion by the operator may be observed before the objects that it created.
#[test]
fn what_was_created_before_the_operator_said_so_may_be_heard_of_after_that() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(60_000);
    w.respecify("db", HandledEvidence::NotYet);
    w.run(60_000);
    let before = w.words("db").len();
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(50);
    w.child("job", "db", Progressing);
    w.run(60_000);
    assert_eq!(w.words("db")[before..], ["ChildrenProgressing"]);
}

#[test]
fn the_first_word_is_awaited_however_long_its_write_takes() {
    let mut w = EngineHarness::with(policy());
    w.server.fates = vec![WriteFate::Retry(Duration::from_secs(2)); 6];
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(30_000);
    assert_eq!(w.says("db"), "");
    w.run(60_000);
    assert_eq!(w.words("db"), ["ChildrenPending", "AllChildrenReady"]);
}

#[test]
fn an_entry_without_a_reason_of_ours_is_no_first_word() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Ready);
    w.run(60_000);
    w.parent_so("db", |_| {});
    let (id, mut view) = (w.id("db"), aggregator::ParentView::default());
    view.generation = 1;
    view.evidence = HandledEvidence::Handled;
    view.answers = [aggregator::AnswerView {
        policy: crate::harness::POLICY,
        is_about_generation: true,
        ..aggregator::AnswerView::default()
    }]
    .into();
    let shown =
        aggregator::ObjectView { weights: &[weight(Unknown)], parent: Some(&view), ..Default::default() };
    w.engine.observe_object(w.now, id, Some(&shown));
    w.engine.poll(w.now, &mut Vec::new());
    assert_eq!(w.reason("db").map(ParentReason::as_str), Some("ChildrenPending"));
}

#[test]
fn nothing_is_said_before_everything_was_seen() {
    let mut w = EngineHarness::empty();
    w.policy(crate::harness::POLICY, policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(10_000);
    w.kind(crate::harness::PARENTS, KindState::Synced);
    w.run(10_000);
    assert!(w.server.log.is_empty());
    w.kind(CHILDREN, KindState::Synced);
    w.run(10_000);
    assert_eq!(w.words("db"), ["AllChildrenReady"], "it was at rest");
}

#[test]
fn what_is_relisted_is_not_judged_meanwhile() {
    let mut w = well();
    w.kind(CHILDREN, KindState::Listing);
    w.turn("web", Failed);
    w.run(10_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.kind(CHILDREN, KindState::Synced);
    w.run(100);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn true_waits_until_the_last_child_has_settled_and_held() {
    let mut w = EngineHarness::with(EnginePolicy { hold: Duration::from_secs(3), ..policy() });
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(8_000);
    assert_eq!(w.says("db"), "ChildrenSettling");
    w.run(200);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.turn("web", Progressing);
    w.run(1_500);
    w.turn("web", Ready);
    w.run(2_900);
    assert_eq!(w.says("db"), "ChildrenSettling");
    w.run(200);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_flicker_that_is_over_before_anybody_is_told_restarts_the_hold() {
    let mut w = EngineHarness::with(EnginePolicy { hold: Duration::from_secs(3), ..policy() });
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(20_000);
    w.turn("web", Ready);
    w.run(50);
    assert_eq!(w.says("db"), "ChildrenSettling");
    w.turn("web", Progressing);
    w.run(10);
    w.turn("web", Ready);
    w.run(2_980);
    assert_eq!(w.says("db"), "ChildrenSettling", "it has not been well for as long as the policy asks");
    w.run(200);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_ready_child_that_joins_does_not_turn_a_ready_parent() {
    let mut w = well();
    let before = w.told("db").len();
    w.child("api", "db", Ready);
    w.run(20_000);
    assert_eq!(w.words("db")[before..], ["AllChildrenReady"], "that there are two now");
}

#[test]
fn every_level_of_a_child_has_its_reason() {
    use readiness::Level::{Missing, Stuck};
    for (level, reason) in [
        (Failed, "ChildrenFailed"),
        (Stuck, "ChildrenStuck!"),
        (Missing, "ChildrenMissing"),
        (Unknown, "ChildrenUnknown"),
        (Progressing, "ChildrenProgressing"),
        (Terminating, "ChildrenTerminating"),
        (Suspended, "AllChildrenReady"),
    ] {
        let mut w = well();
        w.child("api", "db", level);
        w.run(20_000);
        assert_eq!(w.says("db"), reason, "{level}");
    }
}

#[test]
fn a_terminal_failure_stalls_and_another_does_not() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(2_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    w.change("web", |web| web.weights = vec![ChildWeight::of(Failed).with_terminal(true)]);
    w.run(2_000);
    assert_eq!(w.says("db"), "ChildrenFailed!");
}

#[test]
fn a_verdict_that_changes_by_itself_is_asked_for_again_in_time() {
    let mut w = well();
    w.change("web", |web| {
        web.weights = vec![weight(Progressing)];
        web.then = Some((crate::harness::START + Duration::from_secs(60), weight(Failed)));
    });
    w.run(2_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn a_true_that_could_not_be_written_is_not_written_once_it_is_in_doubt() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(5_000);
    w.server.fates = vec![WriteFate::Retry(Duration::from_millis(500))];
    w.run(500);
    assert_eq!(
        (w.reason("db").unwrap().as_str(), w.says("db").as_str()),
        ("AllChildrenReady", "ChildrenSettling")
    );
    let refused = w.engine.next_deadline().unwrap() - w.now;
    w.run(u64::try_from(refused.as_millis()).unwrap() - 20);
    w.turn("web", Failed);
    w.run(5_000);
    assert!(!w.words("db").contains(&"AllChildrenReady".to_owned()), "{:?}", w.told("db"));
}

/// A ready parent with one child.
pub(crate) fn well() -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(20_000);
    assert_eq!(w.words("db").last().unwrap(), "AllChildrenReady");
    w
}
