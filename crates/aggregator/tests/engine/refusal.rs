//! Of a policy that is refused and was never accepted nothing is said, but what says True is taken back after a while.

use aggregator::{Acceptance, EnginePolicy, HandledEvidence, PolicyId};
use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::{ConditionStatus, ParentReason};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

/// All that is known of such a policy: nothing about children.
fn refused(acceptance: Acceptance) -> EnginePolicy {
    EnginePolicy { acceptance, ..groups(Vec::new()) }
}

#[test]
fn what_stands_stays_and_true_is_taken_back_after_a_while() {
    let mut w = EngineHarness::with(policy());
    for (parent, child, level) in [("db", "web", Ready), ("sick", "job", Failed)] {
        w.parent(parent);
        w.child(child, parent, level);
    }
    w.run(20_000);
    assert_eq!((w.says("db"), w.says("sick")), ("AllChildrenReady".to_owned(), "ChildrenFailed".to_owned()));
    let before = w.server.log.len();
    w.policies.insert(POLICY, refused(Acceptance::Refused));
    w.restart(&[]);
    w.run(600_000);
    assert_eq!(w.server.log.len(), before, "it is left as it is");

    w.policy(POLICY, refused(Acceptance::RefusedForLong));
    w.run(10_000);
    assert_eq!((w.says("db"), w.says("sick")), ("PolicyRefused".to_owned(), "ChildrenFailed".to_owned()));
    let before = w.server.log.len();
    w.restart(&[]);
    w.run(600_000);
    assert_eq!(w.server.log.len(), before, "nothing is said twice");

    w.policy(POLICY, policy());
    w.sync();
    w.run(20_000);
    assert_eq!((w.says("db"), w.says("sick")), ("AllChildrenReady".to_owned(), "ChildrenFailed".to_owned()));
}

#[test]
fn a_generation_that_nothing_was_told_of_but_the_refusal_is_awaited_once_the_policy_is_accepted() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(20_000);
    w.policy(POLICY, refused(Acceptance::RefusedForLong));
    w.run(10_000);
    w.respecify("db", HandledEvidence::Masked);
    w.run(10_000);
    assert_eq!(w.says("db"), "PolicyRefused");
    w.policies.insert(POLICY, policy());
    w.restart(&[]);
    w.run(600_000);
    assert!(
        !w.words("db")
            .iter()
            .rev()
            .take_while(|word| *word != "PolicyRefused")
            .any(|word| word == "AllChildrenReady"),
        "{:?}",
        w.words("db")
    );
}

#[test]
fn nobody_waits_for_another_word_of_a_refused_policy() {
    const OTHER: PolicyId = PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(CHILDREN)]));
    w.policy(OTHER, policy());
    w.sync();
    w.parent("top");
    w.child("own", "top", Ready);
    w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.change("own", |own| own.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.create("leaf", CHILDREN, Progressing, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenProgressing");
    w.policies.insert(OTHER, refused(Acceptance::Refused));
    w.restart(&[]);
    w.turn("own", Failed);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed");
    assert_eq!(w.says_for("mid", OTHER), "ChildrenProgressing");
    w.turn("own", Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenProgressing", "by what mid says");
}

#[test]
fn who_waited_for_a_word_of_a_policy_waits_no_more_once_that_is_refused() {
    const OTHER: PolicyId = PolicyId(2);
    const EXTRAS: aggregator::KindId = aggregator::KindId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(CHILDREN)]));
    w.policy(OTHER, groups(vec![group(EXTRAS)]));
    w.sync();
    w.parent("top");
    w.create("own", CHILDREN, Failed, |own| own.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.parent_so("mid", |mid| mid.policies = vec![OTHER]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", EXTRAS, Progressing, |leaf| leaf.owners = vec![(OTHER, 0, "mid".to_owned())]);
    w.run(20_000);
    w.kinds.insert(EXTRAS, aggregator::KindState::Listing);
    w.restart(&[]);
    w.turn("own", Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed", "it waits for mid");
    w.policy(OTHER, refused(Acceptance::Refused));
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenProgressing", "by what mid says");
}

#[test]
fn a_policy_is_accepted_until_it_is_said_to_be_refused() {
    let mut w = EngineHarness::empty();
    for (acceptance, accepted) in
        [(Acceptance::Accepted, true), (Acceptance::Refused, false), (Acceptance::RefusedForLong, false)]
    {
        w.policy(POLICY, refused(acceptance));
        assert_eq!(w.engine.is_accepted(POLICY), accepted, "{acceptance:?}");
    }
    w.forget(POLICY);
    assert!(w.engine.is_accepted(POLICY), "nothing is known of one that is gone");
}

#[test]
fn what_a_deleted_policy_left_behind_goes_although_another_one_is_refused() {
    const OTHER: PolicyId = PolicyId(2);
    let mut w = EngineHarness::with(policy());
    w.policy(OTHER, policy());
    w.sync();
    w.parent_so("db", |db| db.policies = vec![POLICY, OTHER]);
    w.create("web", CHILDREN, Failed, |web| {
        web.owners = vec![(POLICY, 0, "db".to_owned()), (OTHER, 0, "db".to_owned())];
    });
    w.run(20_000);
    assert_eq!((w.says("db"), w.says_for("db", OTHER)), ("ChildrenFailed".into(), "ChildrenFailed".into()));
    // The next process finds one of them deleted, and the other refused.
    w.policies.remove(&POLICY);
    w.policies.insert(OTHER, refused(Acceptance::Refused));
    w.objects.get_mut("db").unwrap().parent.as_mut().unwrap().policies = vec![OTHER];
    w.objects.get_mut("web").unwrap().owners.clear();
    w.restart(&[]);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says_for("db", OTHER)), (String::new(), "ChildrenFailed".into()));
}

#[test]
fn what_somebody_turned_is_taken_back_like_what_says_true() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Failed);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    w.policies.insert(POLICY, refused(Acceptance::RefusedForLong));
    let status = &mut w.objects.get_mut("db").unwrap().parent.as_mut().unwrap().status;
    status.get_mut(&POLICY).unwrap().turned = Some(ConditionStatus::True);
    w.restart(&[]);
    w.run(20_000);
    assert_eq!(w.says("db"), "PolicyRefused");
}

#[test]
fn what_stood_under_a_refused_policy_is_known_no_more_once_it_is_taken_away() {
    for is_restarted in [false, true] {
        let mut w = EngineHarness::with(policy());
        w.parent("db");
        w.child("web", "db", Failed);
        w.run(20_000);
        assert_eq!(w.says("db"), "ChildrenFailed");
        w.policies.insert(POLICY, refused(Acceptance::Refused));
        w.restart(&[]);
        w.run(1_000);
        assert_eq!(w.reason("db"), Some(ParentReason::ChildrenFailed));
        w.change_parent("db", |db| db.status.clear());
        if is_restarted {
            w.restart(&[]);
        }
        w.run(1_000);
        assert_eq!(w.reason("db"), None, "restarted: {is_restarted}");
    }
}

#[test]
fn a_true_on_a_parent_that_is_deleted_under_a_refused_policy_is_taken_back_too() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(20_000);
    w.policies.insert(POLICY, refused(Acceptance::Refused));
    w.restart(&[]);
    w.change_parent("db", |db| db.deleting = true);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady", "it is left as it is");
    w.policy(POLICY, refused(Acceptance::RefusedForLong));
    w.run(10_000);
    assert_eq!(w.says("db"), "Terminating");
    let before = w.server.log.len();
    w.restart(&[]);
    w.run(600_000);
    assert_eq!(w.server.log.len(), before, "nothing is said twice");
}
