//! Rest: what nothing can change any more is not evaluated, and nothing is waited for.

use std::time::Duration;

use aggregator::{ChildGroup, EnginePolicy, HandledEvidence, KindId, KindState, PolicyId};
use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::ParentReason;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

/// Number of evaluations since the last call.
fn evaluations(w: &mut EngineHarness) -> u64 {
    w.engine.take_counts().evaluations
}

#[test]
fn a_limit_that_is_over_is_evaluated_once() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.run(9 * 60_000);
    evaluations(&mut w);
    w.run(2 * 60_000);
    assert_eq!(w.says("db"), "ChildrenMissing!");
    assert_eq!(evaluations(&mut w), 2, "when it was over, and when that was written");
    w.run(60 * 60_000);
    assert_eq!(evaluations(&mut w), 0);
}

#[test]
fn two_limits_that_are_over_at_once_are_told_once() {
    let limit = Duration::from_mins(2);
    let mut w = EngineHarness::with(EnginePolicy { deadline: Some(limit), pending: limit, ..policy() });
    w.parent_so("db", |p| p.evidence = HandledEvidence::NotYet);
    w.run(60_000);
    evaluations(&mut w);
    w.run(2 * 60_000);
    assert_eq!(w.says("db"), "OperatorSilent!");
    assert_eq!(evaluations(&mut w), 2, "when it was over, and when that was written");
    w.run(60 * 60_000);
    assert_eq!(evaluations(&mut w), 0);
}

#[test]
fn a_deadline_that_is_over_ends_no_other_wait() {
    let mut w = EngineHarness::with(EnginePolicy { deadline: Some(Duration::from_secs(2)), ..policy() });
    w.child("web", "db", Ready);
    w.run(60_000);
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.run(4_000);
    assert_eq!(w.says("db"), "DeadlineExceeded!");
    w.run(4_000);
    assert_eq!(w.says("db"), "AllChildrenReady", "its operator counts as done after five seconds");
}

#[test]
fn what_time_was_to_change_is_not_evaluated_for_it_once_something_else_has_changed_it() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Ready);
    w.run(60_000);
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.run(2_000);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.change_parent("db", |p| p.evidence = HandledEvidence::NotYet);
    w.turn("web", Failed);
    w.change_parent("db", |p| p.evidence = HandledEvidence::GivenUp);
    w.run(1_000);
    assert_eq!(w.says("db"), "OperatorFailed!");
    evaluations(&mut w);
    w.run(60 * 60_000);
    assert_eq!(evaluations(&mut w), 0);
}

#[test]
fn of_parents_that_are_gone_nothing_is_waited_for() {
    type Stir = fn(&mut EngineHarness);
    let cases: [(&str, Stir); 4] = [
        ("nothing", |_| {}),
        ("a debounce", |w| {
            w.turn("web", Failed);
            w.run(10);
            w.child("api", "db", Progressing);
        }),
        ("a limit", |w| w.remove("web")),
        ("a conflict", |w| {
            w.change_parent("db", |p| p.status.get_mut(&POLICY).unwrap().stalled ^= true);
        }),
    ];
    for (what, stir) in cases {
        let mut w = well();
        stir(&mut w);
        w.run(20);
        for name in ["web", "api", "db"] {
            w.remove(name);
        }
        w.run(0);
        assert_eq!(w.engine.next_deadline(), None, "{what}");
        evaluations(&mut w);
        w.run(60 * 60_000);
        assert_eq!(evaluations(&mut w), 0, "{what}");
    }
}

#[test]
fn an_exhaustion_that_others_ended_is_not_waited_for() {
    let mut w = EngineHarness::with(policy());
    w.server.moved_by_writes = true;
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(60_000);
    assert!(w.engine.evaluation_states().all(|held| held.yielding));
    w.server.moved_by_writes = false;
    w.turn("web", Failed);
    w.run(2_000);
    w.turn("web", Ready);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    let passes = w.passes.len();
    while w.engine.unready_parent_count() > 0 {
        w.run(1_000);
    }
    assert!(w.passes.len() >= passes);
    assert_eq!(w.engine.next_deadline(), None);
}

#[test]
fn a_verdict_that_changes_now_has_changed() {
    let mut w = well();
    let (now, id) = (w.now, w.id("web"));
    let weights = [crate::harness::weight(Ready)];
    let view = aggregator::ObjectView {
        kind: CHILDREN,
        weights: &weights,
        spec_mark: aggregator::SpecMark { generation: 1, wanted_by_operator: 1 },
        recheck: Some(now),
        ..aggregator::ObjectView::default()
    };
    w.engine.observe_object(now, id, Some(&view));
    assert_eq!(w.engine.take_due_recheck(now), None);
}

#[test]
fn a_verdict_that_is_not_to_change_any_more_is_not_asked_for_again() {
    let mut w = well();
    w.run(60_000);
    let at = w.now + Duration::from_mins(1);
    w.change("web", |web| web.then = Some((at, crate::harness::weight(Failed))));
    w.run(1_000);
    assert_eq!(w.engine.next_deadline(), Some(at));
    w.change("web", |web| web.then = None);
    w.run(1_000);
    assert_eq!(w.engine.next_deadline(), None);
}

#[test]
fn what_was_taken_back_is_not_evaluated_again_while_the_list_is_awaited() {
    let mut w = well();
    w.kind(CHILDREN, KindState::Listing);
    w.engine.withdraw_changed_rule(w.now, POLICY, CHILDREN);
    w.run(20_000);
    assert_eq!(w.says("db"), "RuleChanged");
    evaluations(&mut w);
    w.observe("web");
    w.run(20_000);
    assert_eq!(evaluations(&mut w), 0);
}

#[test]
fn a_parent_that_is_being_deleted_is_not_evaluated_while_a_list_is_awaited() {
    let mut w = well();
    w.kind(CHILDREN, KindState::Listing);
    w.change_parent("db", |p| p.deleting = true);
    w.run(20_000);
    evaluations(&mut w);
    w.turn("web", Failed);
    w.run(20_000);
    assert_eq!((w.says("db").as_str(), evaluations(&mut w)), ("AllChildrenReady", 0));
}

#[test]
fn a_parent_that_says_its_end_is_drafted_no_more_also_where_a_policy_writes_nothing_on_it() {
    const SHADOW: PolicyId = PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(SHADOW, EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.parent_so("db", |p| p.policies.push(SHADOW));
    w.child("web", "db", Ready);
    w.run(20_000);
    assert!(w.engine.confirm_draft(w.id("db"), w.now));
    w.change_parent("db", |p| p.deleting = true);
    w.run(20_000);
    assert_eq!(w.says("db"), "Terminating");
    assert!(!w.engine.confirm_draft(w.id("db"), w.now));
}

#[test]
fn a_parent_that_is_changed_while_it_is_being_deleted_says_its_end_of_what_it_is_now() {
    let mut w = well();
    w.change_parent("db", |p| p.deleting = true);
    w.run(20_000);
    w.change("db", |db| db.generation += 1);
    w.run(20_000);
    let db = &w.objects["db"];
    let said = &db.parent.as_ref().unwrap().status[&POLICY];
    assert_eq!((said.reason, said.about), (ParentReason::Terminating, db.generation));
    assert!(!w.engine.confirm_draft(w.id("db"), w.now), "and no more after that");
}

#[test]
fn what_a_policy_said_of_a_parent_that_is_being_deleted_leaves_when_it_turns_to_shadow_mode() {
    const OTHER: PolicyId = PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(OTHER, policy());
    w.sync();
    w.parent_so("db", |p| p.policies.push(OTHER));
    w.child("web", "db", Ready);
    w.run(20_000);
    w.change_parent("db", |p| p.deleting = true);
    w.run(20_000);
    let says = |w: &EngineHarness| -> Vec<PolicyId> {
        w.objects["db"].parent.as_ref().unwrap().status.keys().copied().collect()
    };
    assert_eq!(says(&w), [POLICY, OTHER]);
    w.policy(OTHER, EnginePolicy { shadow: true, ..policy() });
    w.observe("db");
    w.run(20_000);
    assert_eq!(says(&w), [POLICY]);
}

#[test]
fn a_policy_that_begins_to_write_says_the_end_of_a_parent_that_has_said_it_for_others() {
    const OTHER: PolicyId = PolicyId(2);
    let shadow = EnginePolicy { shadow: true, ..policy() };
    // The task of a kind may bring its objects before the loop has the plan.
    for before in [None, Some(shadow)] {
        let mut w = EngineHarness::with(policy());
        if let Some(shadow) = &before {
            w.policy(OTHER, shadow.clone());
        }
        w.parent_so("db", |p| p.policies.push(OTHER));
        w.run(20_000);
        w.change_parent("db", |p| p.deleting = true);
        w.run(20_000);
        assert_eq!(w.says("db"), "Terminating");
        w.policy(OTHER, policy());
        w.sync();
        w.run(20_000);
        let said = &w.objects["db"].parent.as_ref().unwrap().status;
        assert_eq!(said.get(&OTHER).map(|said| said.reason), Some(ParentReason::Terminating), "{before:?}");
        assert!(!w.engine.confirm_draft(w.id("db"), w.now), "and no more after that");
    }
}

#[test]
fn a_debounce_that_time_overtook_evaluates_nothing() {
    let mut w = EngineHarness::with(EnginePolicy { shadow: true, ..policy() });
    w.parent("db");
    w.run(60_000);
    assert_eq!(w.reason("db").map(ParentReason::as_str), Some("ChildrenMissing"));
    // The limit is over ten minutes after the first evaluation.
    w.run(9 * 60_000 - 50);
    w.observe("db");
    w.run(0);
    w.observe("db");
    assert_eq!(w.engine.debounced_count(), 1);
    evaluations(&mut w);
    w.run(60);
    assert_eq!((w.engine.debounced_count(), evaluations(&mut w)), (0, 1));
    w.run(10_000);
    assert_eq!(evaluations(&mut w), 0);
}

#[test]
fn whoever_waits_for_nobody_is_not_evaluated_because_another_waits() {
    const EXTRAS: KindId = KindId(2);
    let (over_extras, over_leaves) = (PolicyId(2), PolicyId(3));
    let mut w = EngineHarness::empty();
    let own = ChildGroup { min: 0, ..group(CHILDREN) };
    w.policy(POLICY, groups(vec![group(PARENTS), own]));
    w.policy(over_extras, groups(vec![group(EXTRAS)]));
    w.policy(over_leaves, policy());
    w.sync();
    for (top, mid, policy, leaf, kind) in
        [("a", "mid-a", over_extras, "extra", EXTRAS), ("b", "mid-b", over_leaves, "leaf", CHILDREN)]
    {
        w.parent(top);
        w.parent_so(mid, |p| p.policies = vec![policy]);
        w.change(mid, |mid| mid.owners = vec![(POLICY, 0, top.to_owned())]);
        w.create(leaf, kind, Ready, |leaf| leaf.owners = vec![(policy, 0, mid.to_owned())]);
    }
    w.create("own", CHILDREN, Failed, |own| own.owners = vec![(POLICY, 1, "a".to_owned())]);
    w.run(20_000);
    w.kinds.insert(EXTRAS, KindState::Listing);
    w.restart(&[]);
    w.turn("own", Ready);
    w.run(20_000);
    assert_eq!((w.says("a"), w.says("b")), ("ChildrenFailed".into(), "AllChildrenReady".into()));
    evaluations(&mut w);
    w.observe("leaf");
    w.run(1_000);
    assert_eq!(evaluations(&mut w), 1, "that of mid-b alone");
}
