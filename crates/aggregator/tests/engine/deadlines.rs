//! Deadlines of parents that are not ready.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindState};
use readiness::Level::{Progressing, Ready};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::object::ParentState;
use crate::policy;

const MINUTE: u64 = 60_000;

#[test]
fn a_deadline_of_the_whole_parent_is_exceeded_once_and_stays_so_across_a_restart() {
    let mut w = EngineHarness::with(EnginePolicy { deadline: Some(Duration::from_mins(2)), ..policy() });
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(2 * MINUTE - 100);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    w.run(200);
    assert_eq!(w.says("db"), "DeadlineExceeded!");
    w.restart(&[]);
    w.run(MINUTE);
    assert_eq!(w.words("db").last().unwrap(), "DeadlineExceeded!");
    w.turn("web", Ready);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_deadline_counts_from_when_a_parent_stopped_being_ready() {
    for restart in [false, true] {
        let mut w = EngineHarness::with(EnginePolicy { deadline: Some(Duration::from_mins(2)), ..policy() });
        w.parent("db");
        w.child("web", "db", Ready);
        w.run(60 * MINUTE);
        assert_eq!(w.says("db"), "AllChildrenReady");
        w.turn("web", Progressing);
        w.run(MINUTE);
        assert_eq!(w.says("db"), "ChildrenProgressing", "it was ready for an hour");
        if restart {
            w.restart(&[]);
        }
        w.run(MINUTE - 2_000);
        assert_eq!(w.says("db"), "ChildrenProgressing", "restarted: {restart}");
        w.run(4_000);
        assert_eq!(w.says("db"), "DeadlineExceeded!", "restarted: {restart}");
        w.turn("web", Ready);
        w.run(MINUTE);
        w.turn("web", Progressing);
        w.run(MINUTE);
        assert_eq!(w.says("db"), "ChildrenProgressing", "and anew each time");
    }
}

#[test]
fn a_deadline_is_not_passed_by_a_restart_that_finds_an_entry_turned_by_somebody() {
    let mut w = EngineHarness::with(EnginePolicy { deadline: Some(Duration::from_mins(2)), ..policy() });
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(MINUTE);
    w.change_parent("db", |p| {
        for entry in p.status.values_mut() {
            entry.turned = Some(readiness::rollup::ConditionStatus::True);
        }
    });
    w.restart(&[]);
    w.run(MINUTE + 30_000);
    assert_eq!(w.says("db"), "ChildrenProgressing", "nobody knows what the moment beside it is of");
    w.run(MINUTE);
    assert_eq!(w.says("db"), "DeadlineExceeded!");
}

#[test]
fn a_deadline_is_exceeded_also_where_nothing_is_handled_or_can_be_rendered() {
    type Change = fn(&mut ParentState);
    let cases: [(&str, &str, Change); 4] = [
        ("ChildrenPending", "OperatorSilent!", |p| p.evidence = HandledEvidence::NotYet),
        ("ChildrenPending", "OperatorSilent!", |p| p.evidence = HandledEvidence::Unmarked),
        ("OperatorFailed", "OperatorFailed!", |p| p.evidence = HandledEvidence::Failed),
        ("TemplateFailed", "DeadlineExceeded!", |p| p.unrendered = true),
    ];
    for (before, late, change) in cases {
        let deadline = Some(Duration::from_mins(2));
        let mut w =
            EngineHarness::with(EnginePolicy { deadline, pending: Duration::from_mins(10), ..policy() });
        w.parent_so("db", change);
        w.child("web", "db", Ready);
        w.run(2 * MINUTE - 2_000);
        assert_eq!(w.says("db"), before);
        w.run(4_000);
        assert_eq!(w.says("db"), late);
        w.restart(&[]);
        w.run(20 * MINUTE);
        assert_eq!(w.words("db").last().unwrap(), late, "{before}: for good");
        assert_eq!(w.words("db").iter().filter(|word| *word == late).count(), 1, "said once");
        w.change_parent("db", |p| (p.evidence, p.unrendered) = (HandledEvidence::Handled, false));
        w.run(MINUTE);
        assert_eq!(w.says("db"), "AllChildrenReady");
    }
    // The shorter limit applies.
    let deadline = Some(Duration::from_mins(20));
    let mut w = EngineHarness::with(EnginePolicy { deadline, pending: Duration::from_mins(10), ..policy() });
    w.parent_so("db", |p| p.evidence = HandledEvidence::NotYet);
    w.run(30 * MINUTE);
    assert_eq!(w.says("db"), "OperatorSilent!");
}

#[test]
fn an_operator_that_was_waited_for_beyond_the_deadline_is_waited_for_after_a_restart() {
    // The mark that a failure leaves too; and a failure that somebody else's restart forgets.
    for evidence in [HandledEvidence::Unproven, HandledEvidence::Failed] {
        let deadline = Some(Duration::from_mins(5));
        let mut w = EngineHarness::with(EnginePolicy { deadline, ..policy() });
        w.parent("db");
        w.child("web", "db", Ready);
        w.run(MINUTE);
        w.respecify("db", evidence);
        w.run(6 * MINUTE);
        assert!(w.says("db").ends_with('!'), "{}", w.says("db"));
        w.policies.insert(POLICY, policy());
        w.objects.get_mut("db").unwrap().parent.as_mut().unwrap().evidence = HandledEvidence::Unproven;
        w.restart(&[]);
        w.run(10 * MINUTE);
        assert_ne!(w.says("db"), "AllChildrenReady", "{evidence:?}");
    }
}

#[test]
fn a_list_that_takes_longer_than_the_deadline_makes_nobody_late() {
    let deadline = Some(Duration::from_mins(2));
    let mut w = EngineHarness::empty();
    w.policy(POLICY, EnginePolicy { deadline, ..policy() });
    w.sync();
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenPending");
    // What its children are can be seen only now, five seconds before it can be known whether the operator is done.
    w.kind(CHILDREN, KindState::Listing);
    w.child("web", "db", Ready);
    w.run(3 * MINUTE);
    w.kind(CHILDREN, KindState::Synced);
    w.run(MINUTE);
    assert!(!w.words("db").iter().any(|word| word.starts_with("DeadlineExceeded")), "{:?}", w.words("db"));
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn what_was_late_before_a_list_is_late_after_it() {
    let deadline = Some(Duration::from_mins(2));
    let mut w = EngineHarness::with(EnginePolicy { deadline, ..policy() });
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.child("web", "db", Progressing);
    w.run(3 * MINUTE);
    assert_eq!(w.says("db"), "DeadlineExceeded!");
    let words = w.words("db");
    w.kind(CHILDREN, KindState::Listing);
    w.run(MINUTE);
    w.kind(CHILDREN, KindState::Synced);
    w.run(MINUTE);
    w.restart(&[]);
    w.run(MINUTE);
    assert_eq!(w.words("db"), words);
}
