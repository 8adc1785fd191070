//! A parent that the first list shows at rest is told what it is at once; every other one is told Unknown first.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindId, KindState};
use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::ParentReason;

use crate::ask::HarnessQueries as _;
use crate::conditions::ParentEntry;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

const PENDING: &str = "ChildrenPending";
const READY: &str = "AllChildrenReady";

/// A parent `db` with a ready child `web` that were there ten seconds before everything is listed.
fn unlisted(policy: EnginePolicy) -> EngineHarness {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy);
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(10_000);
    w
}

fn list(w: &mut EngineHarness) {
    w.kind(PARENTS, KindState::Synced);
    w.kind(CHILDREN, KindState::Synced);
}

#[test]
fn what_a_list_shows_at_rest_is_told_once() {
    let mut w = unlisted(policy());
    list(&mut w);
    w.run(90);
    assert_eq!(
        w.says("db"),
        "",
        "each kind has a list of its own: what one shows may be older than the other"
    );
    w.run(60_000);
    assert_eq!(w.words("db"), [READY]);
}

#[test]
fn who_may_still_change_is_told_unknown_first() {
    type Change = fn(&mut EngineHarness);
    let cases: [(&str, Change, &[&str]); 8] = [
        ("a child is young", |w| w.child("late", "db", Ready), &[PENDING, "ChildrenSettling", READY]),
        ("a child is not ready", |w| w.turn("web", Progressing), &[PENDING, "ChildrenProgressing"]),
        ("a child has failed", |w| w.turn("web", Failed), &[PENDING, "ChildrenFailed"]),
        ("no child is there", |w| w.remove("web"), &[PENDING, "ChildrenMissing"]),
        (
            "its operator has not handled it",
            |w| w.change_parent("db", |db| db.evidence = HandledEvidence::NotYet),
            &[PENDING],
        ),
        (
            "its operator reports nothing, and has to settle",
            |w| w.change_parent("db", |db| db.evidence = HandledEvidence::Silent),
            &[PENDING, READY],
        ),
        (
            "it is new",
            |w| {
                list(w);
                w.run(1_000);
                w.server.log.clear();
                w.remove("db");
                w.parent("db");
            },
            &[PENDING, READY],
        ),
        (
            "it changes while its list settles",
            |w| {
                list(w);
                w.run(50);
                w.turn("web", Progressing);
            },
            &[PENDING, "ChildrenProgressing"],
        ),
    ];
    for (what, change, words) in cases {
        let mut w = unlisted(policy());
        change(&mut w);
        list(&mut w);
        w.run(60_000);
        assert_eq!(w.words("db"), words, "{what}");
    }
}

/// The mark of an operator that fails without a trace, which nobody saw begin.
#[test]
fn a_mark_that_proves_nothing_is_taken_as_it_is_found() {
    let mut w = unlisted(policy());
    w.change_parent("db", |db| db.evidence = HandledEvidence::Unproven);
    list(&mut w);
    w.run(60_000);
    assert_eq!(w.words("db"), [READY]);
    w.respecify("db", HandledEvidence::Unproven);
    w.run(60_000);
    assert_eq!(w.words("db")[1..], [PENDING], "no child has moved for it");
}

#[test]
fn whose_operator_reports_nothing_rests_where_its_policy_gives_that_no_time() {
    let mut w = unlisted(EnginePolicy { settle: Duration::ZERO, ..policy() });
    w.change_parent("db", |db| db.evidence = HandledEvidence::Silent);
    list(&mut w);
    w.run(60_000);
    assert_eq!(w.words("db"), [READY]);
}

#[test]
fn what_keeps_a_true_back_is_told_before_it() {
    let held = EnginePolicy { hold: Duration::from_secs(3), ..policy() };
    let proven = EnginePolicy { requires_proof: true, ..policy() };
    for policy in [held, proven] {
        let mut w = unlisted(policy);
        list(&mut w);
        w.run(60_000);
        assert_eq!(w.words("db")[0], PENDING);
    }
}

#[test]
fn who_was_told_something_of_an_older_generation_is_told_unknown_first() {
    for (reason, words) in [
        (ParentReason::AllChildrenReady, &[PENDING, READY][..]),
        (ParentReason::ChildrenFailed, &[PENDING, READY]),
        // A default of the CRD, or what was said before anything could be.
        (ParentReason::ChildrenPending, &[READY]),
    ] {
        let mut w = unlisted(policy());
        let since = w.now;
        w.change("db", |db| {
            db.generation = 2;
            let message = String::new();
            let (about, stalled, reconciling, turned) = (1, false, false, None);
            let entry = ParentEntry { reason, about, stalled, reconciling, message, since, turned };
            db.parent.as_mut().unwrap().status.insert(POLICY, entry);
        });
        list(&mut w);
        w.run(60_000);
        assert_eq!(w.words("db"), words, "{reason:?}");
    }
}

/// A True that was told at once is under way when a child fails: what comes next is what is so, and no first word any more.
#[test]
fn what_changes_while_a_first_true_is_under_way_is_told_after_it() {
    for delay in [5_u64, 60, 150, 400] {
        for moment in (0..500).step_by(10) {
            let mut w = unlisted(policy());
            w.server.delay = Duration::from_millis(delay);
            list(&mut w);
            w.run(moment);
            w.child("late", "db", Progressing);
            w.run(60_000);
            let words = w.words("db");
            let first_true = words.first().is_some_and(|first| first == READY);
            let expected =
                if first_true { [READY, "ChildrenProgressing"] } else { [PENDING, "ChildrenProgressing"] };
            assert_eq!(words, expected, "{delay} ms, {moment} ms");
        }
    }
}

/// Nobody is told of a rollout that this process did not see.
#[test]
fn a_parent_found_at_rest_took_no_time_to_become_ready() {
    let mut w = unlisted(policy());
    list(&mut w);
    w.run(60_000);
    let id = w.id("db");
    assert_eq!(w.engine.take_first_ready(id, POLICY), None);
}

#[test]
fn a_cascade_that_is_found_at_rest_is_told_once_at_every_level() {
    let (apps, app_policy) = (KindId(7), aggregator::PolicyId(2));
    let mut w = unlisted(policy());
    let above = EnginePolicy { kinds: vec![apps, PARENTS], ..groups(vec![group(PARENTS)]) };
    w.policy(app_policy, above);
    w.create("app", apps, Progressing, |app| {
        let state = crate::object::ParentState { policies: vec![app_policy], ..Default::default() };
        app.parent = Some(crate::object::ParentState { evidence: HandledEvidence::Handled, ..state });
    });
    w.change("db", |db| db.owners = vec![(app_policy, 0, "app".to_owned())]);
    w.run(10_000);
    w.kind(apps, KindState::Synced);
    list(&mut w);
    w.run(60_000);
    let told: Vec<_> =
        w.server.log.iter().map(|write| write.after.values().next().unwrap().brief()).collect();
    assert_eq!(told, [READY, READY]);
}
