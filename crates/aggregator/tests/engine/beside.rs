//! What stands beside `Ready`: `Reconciling` while somebody is at work on it, `Stalled` where nobody is any more.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindState};
use readiness::Level::{Failed, Progressing, Ready, Stuck, Suspended, Unknown};
use readiness::rollup::{ChildWeight, ParentReason};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY, weight};
use crate::object::ParentState;
use crate::policy;

/// The reason on `db`, with `~` where it is reconciling and `!` where it is stalled.
fn said(w: &EngineHarness) -> String {
    let entry = &w.objects["db"].parent.as_ref().unwrap().status[&POLICY];
    format!("{}{}", entry.brief(), if entry.reconciling { "~" } else { "" })
}

/// What is said of a parent with one such child and, from `change` on, for twenty seconds or for twenty minutes.
fn said_of(
    child: ChildWeight,
    policy: EnginePolicy,
    minutes: u64,
    change: impl FnOnce(&mut ParentState),
) -> String {
    let mut w = EngineHarness::with(policy);
    w.parent("db");
    w.child("web", "db", child.level());
    w.change("web", |web| web.weights = vec![child]);
    w.run(20_000);
    w.change_parent("db", change);
    w.run(20_000 + minutes * 60_000);
    said(&w)
}

#[test]
fn children_that_are_at_work_are_reconciled_and_those_that_ended_are_not() {
    let table = [
        (weight(Ready), "AllChildrenReady"),
        (weight(Suspended), "ChildrenSuspended"),
        (weight(Progressing), "ChildrenProgressing~"),
        (weight(Unknown), "ChildrenUnknown~"),
        (weight(Failed), "ChildrenFailed~"),
        (ChildWeight::of(Failed).with_terminal(true), "ChildrenFailed!"),
        (weight(Stuck), "ChildrenStuck!"),
    ];
    for (child, expected) in table {
        assert_eq!(said_of(child, policy(), 0, |_| {}), expected, "{child:?}");
    }
}

#[test]
fn an_operator_that_is_silent_or_has_given_up_reconciles_nothing() {
    let by = |evidence, minutes| said_of(weight(Ready), policy(), minutes, |p| p.evidence = evidence);
    assert_eq!(by(HandledEvidence::NotYet, 0), "ChildrenPending~");
    assert_eq!(by(HandledEvidence::NotYet, 20), "OperatorSilent!");
    assert_eq!(by(HandledEvidence::Failed, 20), "OperatorFailed~");
    assert_eq!(by(HandledEvidence::GivenUp, 0), "OperatorFailed!");
    let limited = EnginePolicy { deadline: Some(Duration::from_mins(2)), ..policy() };
    assert_eq!(said_of(weight(Progressing), limited, 20, |_| {}), "DeadlineExceeded!");
    assert_eq!(said_of(weight(Ready), policy(), 20, |p| p.unrendered = true), "TemplateFailed~");
}

#[test]
fn a_parent_that_is_being_deleted_reconciles_nothing_and_is_stalled_once_that_is_stuck() {
    let deleted =
        |stuck_at| said_of(weight(Ready), policy(), 20, |p| (p.deleting, p.stuck_at) = (true, stuck_at));
    assert_eq!(deleted(None), "Terminating");
    assert_eq!(deleted(Some(crate::harness::START + Duration::from_mins(10))), "DeletionStuck!");
}

#[test]
fn what_cannot_be_seen_is_taken_for_work() {
    for (state, expected) in [(KindState::Stale, "WatchStale~"), (KindState::Forbidden, "KindNotVisible~")] {
        let mut w = crate::answers::well();
        w.kind(CHILDREN, state);
        w.run(20_000);
        assert_eq!(said(&w), expected);
    }
}

#[test]
fn a_parent_whose_status_cannot_hold_conditions_is_judged_all_the_same() {
    let mut w = EngineHarness::with(policy());
    w.server.fates = vec![crate::server::WriteFate::Pruned; 100];
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(60_000);
    assert_eq!(w.reason("db"), Some(ParentReason::AllChildrenReady));
    w.observe("db");
    w.run(1_000);
    assert_eq!(w.reason("db"), Some(ParentReason::AllChildrenReady), "also when it is seen again");
    w.turn("web", Failed);
    w.run(60_000);
    assert_eq!(w.reason("db"), Some(ParentReason::ChildrenFailed));
}
