//! The roll-up, held against a plain reading of its rules.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use readiness::rollup::{ChildWeight, ConditionStatus, LevelTally, ParentReason, worst_reason};
use readiness::{Level, Steadiness};

fn any_weight() -> impl Strategy<Value = ChildWeight> {
    (prop::sample::select(Level::ALL.to_vec()), any::<bool>()).prop_map(|(level, terminal)| {
        ChildWeight::of(level).with_terminal(terminal && level == Level::Failed)
    })
}

fn any_children() -> impl Strategy<Value = Vec<ChildWeight>> {
    // Few at a time, so that often only one thing holds the parent back.
    prop::collection::vec(any_weight(), 0..6)
}

fn tally_of(children: &[ChildWeight]) -> LevelTally {
    let mut tally = LevelTally::default();
    for child in children {
        tally.add_child(*child);
    }
    tally
}

/// The answer by walking over the children, worst first.
fn expected_reason(children: &[ChildWeight], missing: u32, surplus: bool) -> Option<ParentReason> {
    use Level::{Failed, Missing, Progressing, Ready, Stuck, Suspended, Terminating, Unknown};
    let has = |level: Level| children.iter().any(|child| child.level() == level);
    let in_order = [
        (has(Failed), ParentReason::ChildrenFailed),
        (has(Stuck), ParentReason::ChildrenStuck),
        (has(Missing) || missing != 0, ParentReason::ChildrenMissing),
        (surplus, ParentReason::TooManyChildren),
        (has(Unknown), ParentReason::ChildrenUnknown),
        (has(Progressing), ParentReason::ChildrenProgressing),
        (has(Terminating), ParentReason::ChildrenTerminating),
        (has(Suspended) && !has(Ready), ParentReason::ChildrenSuspended),
    ];
    in_order.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason)
}

proptest! {
    #[test]
    fn the_worst_of_the_children_is_the_answer(
        children in any_children(), missing in 0_u32..3, surplus in any::<bool>()
    ) {
        prop_assert_eq!(
            worst_reason(&tally_of(&children), missing, surplus),
            expected_reason(&children, missing, surplus)
        );
    }

    #[test]
    fn a_tally_counts_what_was_added_and_not_removed(children in any_children(), others in any_children()) {
        let tally = tally_of(&children);
        for level in Level::ALL {
            let at_level = children.iter().filter(|child| child.level() == level).count();
            prop_assert_eq!(tally.count_at(level) as usize, at_level);
        }
        prop_assert_eq!(tally.total_count() as usize, children.len());
        prop_assert_eq!(tally.terminal_count() as usize, children.iter().filter(|child| child.is_terminal()).count());
        let both = tally_of(&[children.clone(), others.clone()].concat());
        prop_assert_eq!(tally.sum_with(&tally_of(&others)), both);
        prop_assert_eq!(both.sum_without(&tally_of(&others)), tally);
        let mut rest = both;
        for child in &others {
            rest.remove_child(*child);
        }
        prop_assert_eq!(rest, tally);
    }
}

#[test]
fn progressing_children_are_counted_by_how_steady_they_are_and_those_taken_for_ready() {
    let progressing = |steadiness| ChildWeight::of(Level::Progressing).with_steadiness(steadiness);
    let children = [
        vec![progressing(Steadiness::Available); 3],
        vec![progressing(Steadiness::Unobserved); 2],
        vec![progressing(Steadiness::Unsteady); 4],
        vec![ChildWeight::of(Level::Ready); 5],
        vec![ChildWeight::of(Level::Failed)],
    ];
    let tally = tally_of(&children.concat());
    for (least, steady) in
        [(Steadiness::Available, 3), (Steadiness::Unobserved, 5), (Steadiness::Unsteady, 9)]
    {
        assert_eq!(tally.steady_count(least), steady, "{least:?}");
        let taken = tally.with_steady_ready(least);
        let counts = [Level::Progressing, Level::Ready, Level::Failed].map(|level| taken.count_at(level));
        assert_eq!(counts, [9 - steady, 5 + steady, 1], "{least:?}");
        assert_eq!((taken.total_count(), taken.steady_count(Steadiness::Unobserved)), (15, 0), "{least:?}");
    }
}

#[test]
fn children_that_await_their_rule_are_counted_and_those_taken_for_unknown() {
    use Level::{Progressing, Ready, Suspended, Unknown};
    let of = ChildWeight::of;
    let children =
        [of(Ready), of(Ready).unjudged(), of(Suspended).unjudged(), of(Suspended), of(Progressing)];
    let tally = tally_of(&children);
    assert_eq!((tally.unjudged_count(), tally.count_at(Ready), tally.count_at(Suspended)), (2, 2, 2));
    let taken = tally.with_unjudged_unknown();
    assert_eq!([Ready, Suspended, Unknown, Progressing].map(|level| taken.count_at(level)), [0, 2, 2, 1]);
    assert_eq!((taken.total_count(), taken.unjudged_count()), (5, 0));
    let suspended = tally_of(&[of(Suspended).unjudged(), of(Suspended)]).with_unjudged_unknown();
    assert_eq!([Suspended, Unknown].map(|level| suspended.count_at(level)), [1, 1]);
    assert_eq!(tally.sum_with(&tally).unjudged_count(), 4);
    let mut rest = tally;
    rest.remove_child(of(Ready).unjudged());
    assert_eq!((rest.unjudged_count(), rest.count_at(Ready)), (1, 1));
    let judged = tally_of(&[of(Ready), of(Suspended)]);
    assert_eq!(judged.with_unjudged_unknown(), judged);
}

#[test]
fn each_answer_has_its_word_its_status_and_its_level() {
    use ConditionStatus::{False, True, Unknown};
    use Level::{Failed, Progressing, Ready, Stuck, Suspended, Terminating};
    let table = [
        ("AllChildrenReady", True, Ready),
        ("ChildrenPending", Unknown, Progressing),
        ("ChildrenSettling", False, Progressing),
        ("ChildrenProgressing", False, Progressing),
        ("ChildrenTerminating", False, Progressing),
        ("ChildrenFailed", False, Failed),
        ("ChildrenStuck", False, Stuck),
        ("ChildrenMissing", False, Progressing),
        ("TooManyChildren", False, Progressing),
        ("ChildrenUnknown", Unknown, Level::Unknown),
        ("ChildrenSuspended", False, Suspended),
        ("OperatorSilent", Unknown, Level::Unknown),
        ("OperatorFailed", False, Failed),
        ("KindNotVisible", Unknown, Level::Unknown),
        ("WatchStale", Unknown, Level::Unknown),
        ("RuleChanged", Unknown, Level::Unknown),
        ("PolicyRefused", Unknown, Level::Unknown),
        ("TemplateFailed", Unknown, Level::Unknown),
        ("Terminating", False, Terminating),
        ("DeletionStuck", False, Stuck),
        ("DeadlineExceeded", False, Failed),
    ];
    let said =
        ParentReason::ALL.map(|reason| (reason.as_str(), reason.condition_status(), reason.child_level()));
    assert_eq!(said, table);
    for reason in ParentReason::ALL {
        assert_eq!(ParentReason::parse_reason(reason.as_str()), Some(reason));
    }
    assert_eq!(said.iter().map(|(word, ..)| word).collect::<BTreeSet<_>>().len(), said.len());
    assert_eq!(ParentReason::parse_reason("Ready"), None);
    assert_eq!([True, False, Unknown].map(ConditionStatus::as_str), ["True", "False", "Unknown"]);
}

#[test]
fn levels_are_in_order_of_severity_and_keep_to_their_column() {
    let words = Level::ALL.map(Level::as_str);
    assert_eq!(
        words,
        ["Failed", "Stuck", "Missing", "Unknown", "Progressing", "Terminating", "Suspended", "Ready"]
    );
    assert!(Level::ALL.is_sorted());
    assert_eq!(format!("{:>8}|", Level::Ready), "   Ready|");
}
