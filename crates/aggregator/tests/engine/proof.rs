//! Policies that ask for a proof. In these tests it holds once every child is of the parent's generation.

use aggregator::{EnginePolicy, HandledEvidence, ProofRequest};
use readiness::Level::{Failed, Ready};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{EngineHarness, POLICY};
use crate::policy;

const MINUTE: u64 = 60_000;

fn asking() -> EnginePolicy {
    EnginePolicy { requires_proof: true, ..policy() }
}

/// A parent with two ready children whose first generation is proven.
fn proven() -> EngineHarness {
    let mut w = EngineHarness::with(asking());
    w.parent("db");
    w.child("api", "db", Ready);
    w.child("web", "db", Ready);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w
}

#[test]
fn a_generation_that_its_operator_calls_handled_is_not_ready_before_it_is_proven() {
    for evidence in [HandledEvidence::Handled, HandledEvidence::Silent, HandledEvidence::Unproven] {
        let mut w = proven();
        w.respecify("db", evidence);
        w.run(MINUTE);
        assert_eq!(w.says("db"), "ChildrenPending", "{evidence:?}");
        w.change("api", |child| child.generation = 2);
        w.run(MINUTE);
        assert_eq!(w.says("db"), "ChildrenPending", "{evidence:?}: one of two");
        w.change("web", |child| child.generation = 2);
        w.run(MINUTE);
        assert_eq!(w.says("db"), "AllChildrenReady", "{evidence:?}");
    }
}

#[test]
fn what_is_never_proven_is_the_operators_silence_and_never_ready() {
    let mut w = proven();
    w.respecify("db", HandledEvidence::Handled);
    w.run(10 * MINUTE - 100);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(200);
    assert_eq!(w.says("db"), "OperatorSilent!");
    w.restart(&[]);
    w.run(60 * MINUTE);
    assert_eq!(w.says("db"), "OperatorSilent!");
    for child in ["api", "web"] {
        w.change(child, |child| child.generation = 2);
    }
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_proof_does_not_stand_in_for_the_operators_own_word() {
    let mut w = proven();
    w.respecify("db", HandledEvidence::NotYet);
    for child in ["api", "web"] {
        w.change(child, |child| child.generation = 2);
    }
    w.run(MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending", "it is proven, and its operator says that it is at work");
    // It undoes what it did, and then says that it is done.
    w.change("api", |child| child.generation = 1);
    w.run(MINUTE);
    w.change_parent("db", |parent| parent.evidence = HandledEvidence::Handled);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending", "a proof of then is none of now");
    w.change("api", |child| child.generation = 2);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_proof_shows_that_something_moved_where_the_operators_mark_does_not() {
    for evidence in [HandledEvidence::Unproven, HandledEvidence::Masked] {
        let mut w = proven();
        for child in ["api", "web"] {
            w.change(child, |child| child.generation = 2);
        }
        w.run(MINUTE);
        w.respecify("db", evidence);
        w.run(MINUTE);
        assert_eq!(w.says("db"), "AllChildrenReady", "{evidence:?}: the children were there before");
    }
}

#[test]
fn a_proof_is_asked_for_when_something_changes_and_not_otherwise() {
    let mut w = proven();
    w.respecify("db", HandledEvidence::Handled);
    w.run(MINUTE);
    let before = w.asked.len();
    w.run(8 * MINUTE);
    assert_eq!(w.asked.len(), before, "nothing changed");
    for _ in 0..10 {
        w.observe("web");
        w.run(5_000);
    }
    assert_eq!(w.asked.len(), before + 10);
    for child in ["api", "web"] {
        w.change(child, |child| child.generation = 2);
    }
    w.run(MINUTE);
    let before = w.asked.len();
    w.turn("web", Failed);
    w.run(MINUTE);
    w.restart(&[]);
    w.turn("web", Ready);
    w.run(MINUTE);
    assert_eq!((w.says("db").as_str(), w.asked.len()), ("AllChildrenReady", before), "it was handled");
}

#[test]
fn the_children_of_a_proof_are_those_that_count_ready_or_not() {
    let mut w = proven();
    let children = |w: &mut EngineHarness| {
        let parent = w.place("db");
        let children = w.engine.reader().proof_children(parent, POLICY);
        let mut names: Vec<_> = children.filter_map(|(_, child)| w.name(child)).collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(children(&mut w), "api web");
    w.child("job", "db", Failed);
    w.remove("api");
    assert_eq!(children(&mut w), "job web");
    w.respecify("db", HandledEvidence::Handled);
    w.run(MINUTE);
    let parent = w.place("db");
    assert!(w.engine.reader().lacks_proof(parent, POLICY));
    let (targets, _) = w.engine.resync_targets(parent);
    assert_eq!(targets.len(), 2, "what the proof rests on is read again, ready or not");
}

#[test]
fn a_proof_of_an_older_generation_means_nothing() {
    let mut w = proven();
    w.respecify("db", HandledEvidence::Handled);
    w.run(MINUTE);
    let parent = w.place("db");
    let request = ProofRequest { parent, policy: POLICY, generation: 1 };
    let now = w.now;
    w.engine.pending_proofs().record_proof(request, now);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.engine.pending_proofs().record_proof(ProofRequest { generation: 2, ..request }, now);
    w.run(MINUTE);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn parents_above_one_that_awaits_its_proof_are_answered() {
    let mut w = EngineHarness::with(asking());
    w.parent_so("top", |_| {});
    w.parent("mid");
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.child("leaf", "mid", Ready);
    w.run(MINUTE);
    assert_eq!(w.says("top"), "AllChildrenReady");
    w.change("mid", |mid| mid.generation = 2);
    w.change_parent("mid", |mid| mid.evidence = HandledEvidence::Handled);
    w.run(MINUTE);
    assert_eq!((w.says("mid").as_str(), w.says("top").as_str()), ("ChildrenPending", "ChildrenProgressing"));
}
