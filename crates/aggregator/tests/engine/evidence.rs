//! Evidence that an operator has handled a generation, and what stands in for it where it says nothing.

use aggregator::{HandledEvidence, ReportedFailure, SelectorId};
use readiness::Level::{Failed, Ready, Unknown};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::object::StoredObject;
use crate::policy;

const MINUTE: u64 = 60_000;

/// A parent with a ready child, whose operator leaves no marks.
fn silent() -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Ready);
    w.run(60_000);
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w
}

#[test]
fn a_silent_operator_is_believed_once_nothing_moved_for_settle() {
    let mut w = silent();
    w.run(3_000);
    w.child("api", "db", Ready);
    w.run(4_900);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(2_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_child_that_is_specified_anew_or_deleted_moves_the_end_of_settling() {
    let mut w = silent();
    w.child("api", "db", Ready);
    w.run(4_000);
    w.change("web", |web| web.generation += 1);
    w.run(4_000);
    w.remove("api");
    w.run(4_900);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_child_that_is_merely_seen_again_does_not_move_the_end_of_settling() {
    let mut w = silent();
    for _ in 0..5 {
        w.run(1_000);
        w.observe("web");
    }
    w.run(200);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn evidence_to_the_contrary_never_times_out_into_readiness() {
    let mut w = silent();
    w.change_parent("db", |p| p.evidence = HandledEvidence::NotYet);
    w.run(10 * MINUTE - 100);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(200);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.run(60 * MINUTE);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(200);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn where_a_mark_is_expected_its_absence_never_times_out_into_readiness_and_takes_nothing_back() {
    let mut w = silent();
    w.change_parent("db", |p| p.evidence = HandledEvidence::Unmarked);
    w.run(9 * MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(2 * MINUTE);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(200);
    assert_eq!(w.says("db"), "AllChildrenReady");
    // Marks on other objects of the kind are discovered late, or its own mark was removed.
    w.change_parent("db", |p| p.evidence = HandledEvidence::Unmarked);
    w.run(20 * MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.respecify("db", HandledEvidence::Unmarked);
    w.run(5 * MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn where_our_own_word_may_hide_the_operators_quiet_alone_proves_nothing() {
    let mut w = silent();
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.respecify("db", HandledEvidence::Masked);
    w.run(9 * MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.restart(&[]);
    w.run(5 * MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending", "a child that is read for the first time has not moved");
    w.run(6 * MINUTE);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.restart(&[]);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "OperatorSilent!", "however old the generation is");
    // It acts: from then on quiet decides, as for any operator that says nothing.
    w.change("web", |web| web.generation += 1);
    w.run(4_900);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    // What was handled stays so, and nothing is taken for the next one.
    w.change_parent("db", |p| p.evidence = HandledEvidence::Unmarked);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.respecify("db", HandledEvidence::Masked);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn that_a_child_is_scaled_beside_its_operator_is_no_deed_and_no_quiet() {
    let mut w = silent();
    w.run(MINUTE);
    for evidence in [HandledEvidence::Masked, HandledEvidence::Unproven] {
        w.respecify("db", evidence);
        for _ in 0..5 {
            w.run(MINUTE);
            w.change("web", StoredObject::scale);
            assert_eq!(w.says("db"), "ChildrenPending");
        }
        w.change("web", |web| web.generation += 1);
        w.run(10_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
    }
    // Where quiet is all there is, an autoscaler that is busy with a child may be so because of the operator.
    w.respecify("db", HandledEvidence::Silent);
    for _ in 0..10 {
        w.run(4_000);
        w.change("web", StoredObject::scale);
        assert_eq!(w.says("db"), "ChildrenPending");
    }
    w.run(6_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn what_an_operator_did_at_once_may_be_seen_before_the_spec_that_called_for_it() {
    let mut w = silent();
    w.run(MINUTE);
    w.change("web", |web| web.generation += 1);
    w.run(50);
    w.respecify("db", HandledEvidence::Masked);
    w.run(6_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn what_its_operator_failed_to_handle_is_not_ready_until_it_tries_again_and_succeeds() {
    let mut w = silent();
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(1_000);
    w.change_parent("db", |p| p.evidence = HandledEvidence::Failed);
    w.run(1_000);
    assert_eq!(w.says("db"), "OperatorFailed", "another of its handlers is still tried");
    w.change_parent("db", |p| p.evidence = HandledEvidence::GivenUp);
    w.run(1_000);
    assert_eq!(w.says("db"), "OperatorFailed!");
    w.run(60 * MINUTE);
    w.restart(&[]);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "OperatorFailed!");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    // It may fail with what it has handled before.
    w.change_parent("db", |p| p.evidence = HandledEvidence::GivenUp);
    w.run(1_000);
    assert_eq!(w.says("db"), "OperatorFailed!");
}

#[test]
fn a_mark_that_a_failure_leaves_too_is_proven_by_a_child_that_moved() {
    let mut w = silent();
    w.run(MINUTE);
    w.respecify("db", HandledEvidence::Unproven);
    w.run(9 * MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.restart(&[]);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending", "nobody has proven it meanwhile");
    w.change("web", |web| web.generation += 1);
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    // The first generation is proven by its children.
    w.parent_so("new", |p| p.evidence = HandledEvidence::Unproven);
    w.child("api", "new", Ready);
    w.run(MINUTE);
    assert_eq!(w.says("new"), "AllChildrenReady");
}

#[test]
fn a_mark_that_a_failure_leaves_too_is_taken_as_it_is_found_where_nobody_was_waited_for() {
    for (told, handled) in [("TemplateFailed", true), ("ChildrenPending", false)] {
        let mut w = well();
        w.respecify("db", HandledEvidence::NotYet);
        w.run(20_000);
        w.change_parent("db", |p| p.unrendered = handled);
        w.run(20_000);
        assert_eq!(w.says("db"), told);
        let parent = w.objects.get_mut("db").unwrap().parent.as_mut().unwrap();
        (parent.evidence, parent.unrendered) = (HandledEvidence::Unproven, false);
        w.restart(&[]);
        w.run(60_000);
        assert_eq!(w.says("db") == "AllChildrenReady", handled, "{told}");
    }
}

#[test]
fn an_entry_that_somebody_takes_away_is_written_again_as_it_was() {
    let mut w = well();
    let before = w.told("db").len();
    w.change_parent("db", |p| p.status.clear());
    w.run(20_000);
    assert_eq!(w.words("db")[before..], ["AllChildrenReady"]);
}

#[test]
fn a_new_generation_starts_over() {
    let mut w = silent();
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.respecify("db", HandledEvidence::Silent);
    w.run(4_900);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(10 * MINUTE + 100);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(10 * MINUTE - 100);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn a_new_generation_that_a_restart_interrupts_settles_from_then_on() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Unknown);
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.run(60 * MINUTE);
    assert_eq!(w.says("db"), "ChildrenUnknown");
    w.respecify("db", HandledEvidence::Silent);
    w.run(500);
    w.turn("web", Ready);
    w.run(500);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.restart(&[]);
    w.run(4_000);
    assert_eq!(w.says("db"), "ChildrenPending", "the spec is five seconds old, the condition an hour");
    w.run(2_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_limit_is_not_passed_by_a_restart() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Unknown);
    w.parent("db");
    w.run(60 * MINUTE);
    w.respecify("db", HandledEvidence::NotYet);
    w.run(1_000);
    w.restart(&[]);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenPending", "stalled is a word that readers abort on");
}

#[test]
fn a_template_that_failed_is_no_sign_of_the_operator() {
    let mut w = silent();
    w.change_parent("db", |p| p.unrendered = true);
    w.run(1_000);
    assert_eq!(w.says("db"), "TemplateFailed");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(1_000);
    w.restart(&[]);
    w.change_parent("db", |p| (p.unrendered, p.evidence) = (false, HandledEvidence::Silent));
    w.run(4_000);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn a_child_that_is_selected_has_not_moved_because_its_parent_was_read_after_it() {
    for evidence in [HandledEvidence::Masked, HandledEvidence::Unproven] {
        for order in [["web", "db"], ["db", "web"]] {
            let mut w = EngineHarness::with(policy());
            w.parent_so("db", |db| {
                db.evidence = HandledEvidence::Silent;
                db.selects = vec![(POLICY, SelectorId(7))];
            });
            w.create("web", CHILDREN, Ready, |web| web.labels = vec![(POLICY, 0, SelectorId(7))]);
            w.run(MINUTE);
            assert_eq!(w.says("db"), "AllChildrenReady");
            w.respecify("db", evidence);
            w.run(5 * MINUTE);
            assert_eq!(w.says("db"), "ChildrenPending");
            w.restart(&order);
            w.run(MINUTE);
            assert_eq!(w.says("db"), "ChildrenPending", "{evidence:?} {order:?}");
        }
    }
}

#[test]
fn what_its_own_status_says_of_a_failure_counts_whatever_its_children_are() {
    use HandledEvidence::{Handled, Masked, Silent, Unmarked, Unproven};
    use ReportedFailure::{Final, Temporary, Unattributed};
    for (evidence, failure, says) in [
        (Handled, Temporary, "OperatorFailed"),
        (Handled, Final, "OperatorFailed!"),
        (Handled, Unattributed, "OperatorFailed"),
        (Silent, Temporary, "OperatorFailed"),
        (Silent, Final, "OperatorFailed!"),
        (Silent, Unattributed, "OperatorFailed"),
        (Unmarked, Final, "OperatorFailed!"),
        (Unproven, Unattributed, "OperatorFailed"),
        (Masked, Final, "OperatorFailed!"),
    ] {
        let mut w = silent();
        w.change_parent("db", |p| p.evidence = evidence);
        w.run(MINUTE);
        w.change_parent("db", |p| p.reported_failure = failure);
        w.run(MINUTE);
        assert_eq!(w.says("db"), says, "{evidence:?}, {failure:?}");
        w.restart(&[]);
        w.run(MINUTE);
        assert_eq!(w.says("db"), says, "{evidence:?}, {failure:?}, after a restart");
        w.change_parent("db", |p| p.reported_failure = ReportedFailure::None);
        w.run(MINUTE);
        if !matches!(evidence, Unmarked | Masked) {
            assert_eq!(w.says("db"), "AllChildrenReady", "{evidence:?}, {failure:?}, and it is over");
        }
    }
}

#[test]
fn a_true_outlasts_a_failure_that_passes_in_a_moment_and_no_other() {
    use ReportedFailure::{Final, Temporary, Unattributed};
    for (failure, span) in [(Final, 2_000), (Temporary, 10_000), (Unattributed, 10_000)] {
        let mut w = silent();
        w.run(MINUTE);
        let told = w.told("db").len();
        w.change_parent("db", |p| p.reported_failure = failure);
        w.run(span - 100);
        w.change_parent("db", |p| p.reported_failure = ReportedFailure::None);
        w.run(MINUTE);
        assert_eq!(w.told("db").len(), told, "{failure:?} that passes");
        w.change_parent("db", |p| p.reported_failure = failure);
        w.run(span - 100);
        assert_eq!(w.says("db"), "AllChildrenReady", "{failure:?}");
        w.run(200);
        assert!(w.says("db").starts_with("OperatorFailed"), "{failure:?} that lasts");
    }
}

#[test]
fn a_failure_that_is_reported_beside_a_child_that_is_not_ready_is_told_at_once() {
    let mut w = silent();
    w.run(MINUTE);
    w.change_parent("db", |p| p.reported_failure = ReportedFailure::Temporary);
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.turn("web", Failed);
    w.run(200);
    assert_eq!(w.says("db"), "OperatorFailed");
}

#[test]
fn a_failure_that_may_be_of_an_earlier_generation_counts_once_this_one_counts_as_handled() {
    let mut w = silent();
    w.run(MINUTE);
    w.change_parent("db", |p| p.reported_failure = ReportedFailure::Unattributed);
    w.run(MINUTE);
    w.respecify("db", HandledEvidence::Silent);
    w.run(4_900);
    assert_eq!(w.says("db"), "ChildrenPending", "its operator may just be about to mend it");
    w.run(200);
    assert_eq!(w.says("db"), "OperatorFailed");
    w.respecify("db", HandledEvidence::NotYet);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending", "its operator has not turned to this generation");
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(200);
    assert_eq!(w.says("db"), "OperatorFailed");
}

#[test]
fn a_child_that_changes_does_not_hide_the_failure_for_a_while() {
    let mut w = silent();
    w.run(MINUTE);
    w.respecify("db", HandledEvidence::Silent);
    w.change_parent("db", |p| p.reported_failure = ReportedFailure::Unattributed);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "OperatorFailed");
    let told = w.told("db").len();
    w.change("web", |web| web.generation += 1);
    w.run(MINUTE);
    assert_eq!(w.told("db").len(), told, "nothing else was said in between");
}
