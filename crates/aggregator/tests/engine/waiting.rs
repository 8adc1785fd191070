//! Parents below parents: who waits for whom, and what is counted meanwhile.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindId, KindState, PolicyId};
use readiness::Level::{self, Failed, Progressing, Ready, Stuck, Unknown};
use readiness::rollup::ParentReason;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::conditions::ParentEntry;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

const OTHER: PolicyId = PolicyId(2);
const LEAVES: KindId = KindId(2);

#[test]
fn a_new_generation_is_announced_at_once_however_busy_its_children_are() {
    let mut w = well();
    for level in [Progressing, Ready, Progressing] {
        w.turn("web", level);
        w.run(20);
    }
    w.respecify("db", HandledEvidence::Handled);
    w.run(20);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn an_answer_about_the_generation_before_is_none_about_this_one() {
    let mut w = well();
    w.kind(CHILDREN, KindState::Listing);
    w.respecify("db", HandledEvidence::Handled);
    w.kind(CHILDREN, KindState::Synced);
    assert!(!w.engine.has_evaluated(w.id("db"), POLICY));
    assert_eq!(w.engine.answers_to_write(w.id("db")), []);
    w.run(10);
    assert!(w.engine.has_evaluated(w.id("db"), POLICY));
}

#[test]
fn who_waited_for_a_parent_below_is_evaluated_with_it_although_that_one_says_what_it_said() {
    const EXTRAS: KindId = KindId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(CHILDREN)]));
    w.policy(OTHER, groups(vec![group(EXTRAS)]));
    w.sync();
    w.parent("top");
    w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("own", CHILDREN, Failed, |own| own.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.create("leaf", EXTRAS, Failed, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.run(20_000);
    assert_eq!((w.says("top"), w.says_for("mid", OTHER)), ("ChildrenFailed".into(), "ChildrenFailed".into()));
    w.kinds.insert(EXTRAS, KindState::Listing);
    w.restart(&[]);
    w.run(20_000);
    assert!(!w.engine.has_evaluated(w.id("top"), POLICY), "it waits for mid");
    w.turn("own", Ready);
    w.kind(EXTRAS, KindState::Synced);
    w.run(1_000);
    let answer = w.engine.answer_of(w.id("top"), POLICY).unwrap();
    assert_eq!((answer.ready, answer.total), (1, 2));
}

#[test]
fn a_parent_that_cannot_be_ready_any_more_is_not_counted_as_ready_until_it_is_evaluated() {
    type Change = fn(&mut EngineHarness);
    let changes: [Change; 5] = [
        |w| w.change_parent("mid", |mid| mid.evidence = HandledEvidence::NotYet),
        |w| w.change_parent("mid", |mid| mid.evidence = HandledEvidence::Failed),
        |w| w.change_parent("mid", |mid| mid.evidence = HandledEvidence::GivenUp),
        |w| w.change_parent("mid", |mid| mid.unrendered = true),
        |w| w.respecify("mid", HandledEvidence::Handled),
    ];
    for change in changes {
        let mut w = EngineHarness::with(policy());
        w.parent("top");
        w.parent("mid");
        w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
        w.child("leaf", "mid", Ready);
        w.run(20_000);
        w.observe("leaf");
        w.run(10);
        let ready = |w: &EngineHarness| w.engine.group_tally(w.id("top"), POLICY, 0).count_at(Ready);
        assert_eq!(ready(&w), 1);
        // Mid waits for quiet.
        change(&mut w);
        assert_eq!(ready(&w), 0);
    }
}

/// `db` has a ready child of its own and one below a parent of which nothing is written; Rollcall was restarted a second
/// ago, so that nobody knows yet whether the operator of that one is done.
fn above_a_shadow(leaf: Level) -> EngineHarness {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(CHILDREN)]));
    w.policy(OTHER, EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.parent("db");
    w.parent_so("mid", |mid| (mid.policies, mid.evidence) = (vec![OTHER], HandledEvidence::Silent));
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "db".to_owned())]);
    w.create("leaf", CHILDREN, leaf, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.create("own", CHILDREN, Ready, |own| own.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(60_000);
    w.restart(&[]);
    w.run(1_000);
    w
}

#[test]
fn who_is_above_a_parent_of_which_nothing_is_written_waits_for_its_first_answer() {
    for respecified in [false, true] {
        let mut w = above_a_shadow(Ready);
        let before = w.server.log.len();
        if respecified {
            w.respecify("mid", HandledEvidence::Silent);
        }
        w.observe("own");
        w.run(3_000);
        assert_eq!(
            (w.says("db").as_str(), w.server.log.len()),
            ("AllChildrenReady", before),
            "{respecified}"
        );
        w.run(60_000);
        assert_eq!(
            (w.says("db").as_str(), w.server.log.len()),
            ("AllChildrenReady", before),
            "{respecified}"
        );
    }
}

#[test]
fn who_waited_long_for_one_of_which_nothing_is_written_is_waited_for_while_it_settles() {
    let slow = PolicyId(3);
    for hold in [Duration::ZERO, Duration::from_secs(3)] {
        let mut w = EngineHarness::empty();
        w.policy(POLICY, groups(vec![group(PARENTS)]));
        w.policy(OTHER, EnginePolicy { shadow: true, hold, ..groups(vec![group(PARENTS)]) });
        w.policy(slow, EnginePolicy { shadow: true, hold: Duration::from_mins(1), ..policy() });
        w.sync();
        w.parent("db");
        w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
        w.parent_so("low", |low| low.policies = vec![slow]);
        w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "db".to_owned())]);
        w.change("low", |low| low.owners = vec![(OTHER, 0, "mid".to_owned())]);
        w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(slow, 0, "low".to_owned())]);
        w.run(300_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        let before = w.server.log.len();
        w.restart(&[]);
        w.run(300_000);
        assert_eq!((w.says("db").as_str(), w.server.log.len()), ("AllChildrenReady", before), "{hold:?}");
    }
}

#[test]
fn who_is_above_a_parent_whose_policy_in_shadow_comes_after_it_waits_for_its_first_answer() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, EnginePolicy { settle: Duration::ZERO, ..groups(vec![group(PARENTS)]) });
    w.parent("db");
    w.parent_so("mid", |mid| (mid.policies, mid.evidence) = (vec![OTHER], HandledEvidence::Silent));
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "db".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    // The task of a kind may bring its objects before the loop has the plan.
    w.policy(OTHER, EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.run(60_000);
    assert_eq!(w.words("db"), ["ChildrenPending", "AllChildrenReady"]);
}

#[test]
fn what_a_parent_says_makes_nothing_ready_above_before_the_loop_knows_its_policy() {
    let replaced = PolicyId(3);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, EnginePolicy { settle: Duration::ZERO, ..groups(vec![group(PARENTS)]) });
    w.policy(OTHER, policy());
    w.sync();
    w.parent("db");
    w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "db".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.run(60_000);
    w.turn("leaf", Failed);
    w.run(10_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    // A write from before lands, and the task of the kind reads by a plan that has not reached the loop.
    w.change("leaf", |leaf| leaf.owners = vec![(replaced, 0, "mid".to_owned())]);
    w.change_parent("mid", |mid| {
        let said = ParentEntry { reason: ParentReason::AllChildrenReady, ..mid.status[&OTHER].clone() };
        (mid.policies, mid.status) = (vec![replaced], [(replaced, said)].into());
    });
    w.run(2_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn who_waited_is_evaluated_although_the_one_below_counts_as_it_did() {
    for leaf in [Progressing, Unknown] {
        let mut w = above_a_shadow(leaf);
        w.turn("own", Failed);
        w.run(1_000);
        w.turn("own", Stuck);
        w.run(60_000);
        assert_eq!(w.says("db"), "ChildrenStuck!", "{leaf}");
    }
}

#[test]
fn nobody_waits_for_a_parent_of_which_nothing_is_written_that_appears_when_all_is_listed() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(CHILDREN)]));
    w.policy(OTHER, EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.parent("db");
    w.create("own", CHILDREN, Ready, |own| own.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(60_000);
    w.parent_so("mid", |mid| (mid.policies, mid.evidence) = (vec![OTHER], HandledEvidence::Silent));
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "db".to_owned())]);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenProgressing", "the operator of mid is not known to be done");
    w.turn("own", Failed);
    w.run(100);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn a_first_word_and_a_last_one_wait_for_nobody_below() {
    const EXTRAS: KindId = KindId(2);
    type Change = fn(&mut EngineHarness);
    let changes: [(Change, &str); 2] = [
        (|w| w.respecify("top", HandledEvidence::Handled), "ChildrenPending"),
        (|w| w.change_parent("top", |top| top.deleting = true), "Terminating"),
    ];
    for (change, says) in changes {
        let mut w = EngineHarness::empty();
        w.policy(POLICY, groups(vec![group(PARENTS)]));
        w.policy(OTHER, groups(vec![group(EXTRAS)]));
        w.sync();
        w.parent("top");
        w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
        w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
        w.create("leaf", EXTRAS, Failed, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
        w.run(20_000);
        w.kind(EXTRAS, KindState::Listing);
        w.restart(&[]);
        w.run(20_000);
        assert_eq!(w.says("top"), "ChildrenFailed");
        change(&mut w);
        w.run(1_000);
        assert_eq!(w.says("top"), says);
    }
}

/// `top` has a child of its own and `mid`, which has a leaf under another policy; both children are ready.
fn above_a_leaf() -> EngineHarness {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(CHILDREN)]));
    w.policy(OTHER, groups(vec![group(LEAVES)]));
    w.sync();
    w.parent("top");
    w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", LEAVES, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.create("own", CHILDREN, Ready, |own| own.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(60_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    w
}

#[test]
fn who_is_above_a_parent_whose_children_are_listed_again_waits_for_that_list() {
    let mut w = above_a_leaf();
    w.turn("own", Failed);
    w.run(20_000);
    let before = w.told("top").len();
    w.kind(LEAVES, KindState::Listing);
    w.turn("own", Ready);
    w.run(20_000);
    assert_eq!(w.told("top").len(), before, "neither that it is ready nor that mid is not");
    w.kind(LEAVES, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.words("top")[before..], ["AllChildrenReady"]);
}

#[test]
fn who_is_above_a_parent_that_only_waits_for_quiet_does_not_wait_whatever_is_listed_elsewhere() {
    const ELSEWHERE: (PolicyId, KindId) = (PolicyId(3), KindId(3));
    let mut w = above_a_leaf();
    w.policy(ELSEWHERE.0, groups(vec![group(ELSEWHERE.1)]));
    w.run(60_000);
    w.observe("leaf");
    w.run(10);
    w.turn("leaf", Progressing);
    assert_eq!(w.engine.debounced_count(), 1);
    w.server.delay = std::time::Duration::ZERO;
    w.turn("own", Failed);
    w.run(0);
    assert_eq!(w.says("top"), "ChildrenFailed");
}

#[test]
fn nobody_waits_for_long_for_a_parent_below_that_never_settles() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(LEAVES)]));
    w.policy(OTHER, EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.parent("top");
    w.parent_so("mid", |mid| (mid.policies, mid.evidence) = (vec![OTHER], HandledEvidence::Silent));
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.create("disk", LEAVES, Ready, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(60_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    w.restart(&[]);
    w.turn("disk", Failed);
    for round in 0..10 {
        // Within the settle time there is always another one.
        w.run(2_000);
        let name = format!("leaf-{round}");
        w.create(&name, CHILDREN, Ready, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    }
    assert_eq!(w.says("top"), "ChildrenFailed", "{:?}", w.words("top"));
}
