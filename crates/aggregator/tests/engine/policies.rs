//! Policies that change, are deleted, or apply to the same parent.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindId, KindState, PolicyId};
use readiness::Level::{Failed, Progressing, Ready};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::server::WriteFate;
use crate::{group, groups, policy};

const OTHER: PolicyId = PolicyId(2);
const EXTRAS: KindId = KindId(2);

/// `db` under two policies, the second of which has another kind of children.
fn two() -> EngineHarness {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(OTHER, groups(vec![group(EXTRAS)]));
    w.sync();
    w.parent_so("db", |p| p.policies.push(OTHER));
    w.child("web", "db", Ready);
    w.create("disk", EXTRAS, Failed, |disk| disk.owners = vec![(OTHER, 0, "db".to_owned())]);
    w.run(20_000);
    w
}

#[test]
fn two_policies_on_one_parent_speak_side_by_side() {
    let mut w = two();
    assert_eq!((w.says("db"), w.says_for("db", OTHER)), ("AllChildrenReady".into(), "ChildrenFailed".into()));
    let before = w.told("db").len();
    w.turn("disk", Ready);
    w.run(20_000);
    assert_eq!(w.says_for("db", OTHER), "AllChildrenReady");
    assert_eq!(w.told("db").len(), before + 1, "one write has the union of both");
}

#[test]
fn one_write_has_what_both_policies_moved_in_one_turn() {
    let mut w = two();
    let before = w.told("db").len();
    w.turn("web", Failed);
    w.turn("disk", Ready);
    w.run(0);
    assert_eq!(w.server.flights.len(), 1);
    w.run(20_000);
    assert_eq!(w.told("db").len(), before + 1);
}

#[test]
fn a_policy_whose_kinds_are_not_listed_yet_holds_up_no_other() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(OTHER, groups(vec![group(EXTRAS)]));
    w.kind(crate::harness::PARENTS, KindState::Synced);
    w.kind(CHILDREN, KindState::Synced);
    w.parent_so("db", |p| p.policies.push(OTHER));
    w.child("web", "db", Ready);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says_for("db", OTHER)), ("AllChildrenReady".into(), String::new()));
}

#[test]
fn a_policy_that_is_deleted_takes_its_entry_along_and_no_other() {
    let mut w = two();
    w.forget(OTHER);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says_for("db", OTHER)), ("AllChildrenReady".into(), String::new()));
    w.forget(POLICY);
    w.run(20_000);
    assert!(w.objects["db"].parent.as_ref().unwrap().status.is_empty());
    let before = w.server.log.len();
    w.turn("web", Failed);
    w.observe("db");
    w.run(60_000);
    assert_eq!(w.server.log.len(), before, "and that is the end of it");
}

#[test]
fn a_policy_that_is_deleted_while_a_write_is_on_its_way_takes_its_entry_along_all_the_same() {
    for fate in [WriteFate::Lands, WriteFate::Conflict, WriteFate::Unheard(Duration::from_secs(1))] {
        let mut w = two();
        w.server.fates = vec![fate];
        w.turn("disk", Ready);
        w.run(0);
        assert_eq!(w.server.flights.len(), 1);
        w.forget(OTHER);
        w.run(20_000);
        assert_eq!((w.says("db"), w.says_for("db", OTHER)), ("AllChildrenReady".into(), String::new()));
        assert!(w.server.flights.is_empty());
    }
}

#[test]
fn a_policy_that_comes_back_speaks_as_before() {
    let mut w = well();
    w.forget(POLICY);
    w.run(20_000);
    w.policy(POLICY, policy());
    w.change_parent("db", |p| p.policies.push(POLICY));
    w.change("web", |web| web.owners = vec![(POLICY, 0, "db".to_owned())]);
    let before = w.told("db").len();
    w.run(20_000);
    assert_eq!(w.words("db")[before..], ["ChildrenPending", "ChildrenSettling", "AllChildrenReady"]);
}

#[test]
fn a_policy_that_changes_judges_everything_anew_and_writes_what_differs() {
    let mut w = well();
    let before = w.server.log.len();
    w.policy(POLICY, policy());
    w.run(20_000);
    assert_eq!(w.server.log.len(), before);
    let two = EnginePolicy { min: 2, ..policy() };
    w.policy(POLICY, two);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
}

#[test]
fn a_policy_that_now_expects_names_knows_those_that_were_there_before() {
    let mut w = well();
    w.policy(POLICY, EnginePolicy { expects_names: true, ..policy() });
    w.change_parent("db", |p| p.expects = vec![(POLICY, 0, "web".to_owned())]);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.change_parent("db", |p| p.expects.push((POLICY, 0, "api".to_owned())));
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
}

#[test]
fn a_policy_in_the_shadow_judges_and_writes_nothing() {
    let mut w = EngineHarness::with(EnginePolicy { shadow: true, ..policy() });
    w.parent("db");
    w.child("web", "db", Failed);
    w.run(20_000);
    assert_eq!(w.reason("db").unwrap().as_str(), "ChildrenFailed");
    assert!(w.server.log.is_empty());
}

#[test]
fn a_policy_in_the_shadow_that_comes_after_its_objects_judges_them_all_the_same() {
    let mut w = EngineHarness::empty();
    // The task of a kind may bring its objects before the loop has the plan.
    w.parent("db");
    w.child("web", "db", Ready);
    w.policy(POLICY, EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.run(20_000);
    assert_eq!(w.reason("db").unwrap().as_str(), "AllChildrenReady");
    assert!(w.server.log.is_empty());
}

#[test]
fn who_counts_a_parent_in_the_shadow_is_left_alone_by_a_restart_that_finds_it_before_its_policy() {
    let shadow = || EnginePolicy { shadow: true, ..policy() };
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS)]));
    w.policy(OTHER, shadow());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |mid| (mid.policies, mid.evidence) = (vec![OTHER], HandledEvidence::Silent));
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.run(60_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    let before = w.server.log.len();
    w.policies.clear();
    w.restart(&[]);
    w.policy(POLICY, groups(vec![group(PARENTS)]));
    w.policy(OTHER, shadow());
    w.sync();
    w.run(60_000);
    assert_eq!(w.server.log.len(), before, "{:?}", w.words("top"));
}

#[test]
fn a_new_generation_starts_over_in_the_shadow_too() {
    let limits = EnginePolicy { hold: Duration::from_secs(30), grace: Duration::from_mins(5), ..policy() };
    for unwritten in [false, true] {
        let mut w = EngineHarness::with(EnginePolicy { shadow: unwritten, ..limits.clone() });
        w.parent("db");
        w.child("web", "db", Ready);
        w.run(60_000);
        assert_eq!(w.reason("db").unwrap().as_str(), "AllChildrenReady");
        // Its operator has handled it by the time it is seen.
        w.respecify("db", HandledEvidence::Handled);
        w.run(5_000);
        assert_ne!(
            w.reason("db").unwrap().as_str(),
            "AllChildrenReady",
            "it is held back; shadow: {unwritten}"
        );
        w.run(60_000);
        assert_eq!(w.reason("db").unwrap().as_str(), "AllChildrenReady");
        w.turn("web", Progressing);
        w.run(5_000);
        assert_eq!(w.reason("db").unwrap().as_str(), "AllChildrenReady", "it has grace");
        w.respecify("db", HandledEvidence::Handled);
        w.run(5_000);
        assert_eq!(w.reason("db").unwrap().as_str(), "ChildrenProgressing", "shadow: {unwritten}");
    }
}

#[test]
fn a_condition_of_somebody_else_is_judged_and_left_alone() {
    let mut w = EngineHarness::with(policy());
    w.parent_so("db", |p| p.owned = true);
    w.child("web", "db", Failed);
    w.run(20_000);
    assert_eq!(w.reason("db").unwrap().as_str(), "ChildrenFailed");
    assert!(w.server.log.is_empty());
    w.change_parent("db", |p| p.owned = false);
    w.run(20_000);
    assert_eq!(w.words("db"), ["ChildrenPending", "ChildrenFailed"]);
}

#[test]
fn policies_answer_each_for_its_own_generation() {
    let mut w = two();
    w.respecify("db", HandledEvidence::Handled);
    let before = w.told("db").len();
    w.run(20_000);
    let after = &w.server.log[before].after;
    assert!(after.values().all(|e| e.about == 2 && e.brief() == "ChildrenPending"), "{after:?}");
}

#[test]
fn policies_of_a_parent_come_in_one_order_whatever_was_seen_first() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(OTHER, groups(vec![group(EXTRAS)]));
    w.sync();
    w.create("disk", EXTRAS, Failed, |disk| disk.owners = vec![(OTHER, 0, "db".to_owned())]);
    w.parent("db");
    assert_eq!(w.engine.policies_of(w.id("db")).collect::<Vec<_>>(), [POLICY], "the other does not apply");
    w.change_parent("db", |p| p.policies.push(OTHER));
    assert_eq!(w.engine.policies_of(w.id("db")).collect::<Vec<_>>(), [POLICY, OTHER]);
}

#[test]
fn no_limit_applies_to_what_is_recorded_nowhere_so_that_a_restart_takes_nothing_back() {
    let mut over_parents = groups(vec![group(crate::harness::PARENTS)]);
    over_parents.settle = Duration::ZERO;
    let mut limited = groups(vec![group(EXTRAS)]);
    (limited.deadline, limited.pending) = (Some(Duration::from_mins(1)), Duration::from_secs(30));
    let mut w = EngineHarness::empty();
    w.policy(POLICY, over_parents);
    w.policy(OTHER, limited);
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| (p.policies, p.owned) = (vec![OTHER], true));
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.run(300_000);
    assert_eq!(w.says("top"), "ChildrenProgressing");
    let before = w.server.log.len();
    w.restart(&[]);
    w.run(300_000);
    assert_eq!((w.says("top").as_str(), w.server.log.len()), ("ChildrenProgressing", before));
}

#[test]
fn what_one_policy_has_to_say_does_not_wait_for_the_quiet_of_another() {
    let mut w = two();
    w.turn("disk", Ready);
    w.run(20_000);
    w.turn("web", Failed);
    w.run(200);
    w.turn("web", Ready);
    w.run(2_000);
    assert_eq!(
        (w.says("db"), w.says_for("db", OTHER)),
        ("AllChildrenReady".into(), "AllChildrenReady".into())
    );
    // The first policy waits for quiet, and its answer is in doubt.
    w.observe("web");
    w.run(110);
    w.turn("web", readiness::Level::Progressing);
    assert_eq!(w.engine.debounced_count(), 1);
    let at = w.millis();
    w.turn("disk", Failed);
    w.server.delay = Duration::ZERO;
    w.run(0);
    assert_eq!(w.server.log.last().map(|written| written.at), Some(at));
    assert_eq!(
        (w.says("db"), w.says_for("db", OTHER)),
        ("ChildrenProgressing".into(), "ChildrenFailed".into())
    );
}
