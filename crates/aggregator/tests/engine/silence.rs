//! No redundant writes: nothing is written that the parent already carries.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindState};
use readiness::Level::{Failed, Progressing, Ready, Stuck, Suspended, Terminating, Unknown};
use readiness::rollup::{self, ChildWeight, ParentReason};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::blindness::EXTRAS;
use crate::conditions::ParentEntry;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

#[test]
fn no_echo() {
    let mut w = well();
    let before = w.server.log.len();
    for _ in 0..50 {
        w.observe("web");
        w.observe("db");
        w.run(333);
    }
    assert_eq!(w.server.log.len(), before);
}

#[test]
fn a_chatty_child_that_stays_ready_moves_nobody_above_it() {
    let mut w = EngineHarness::with(policy());
    w.parent("top");
    w.parent("mid");
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.child("leaf", "mid", Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    let before = w.server.log.len();
    for _ in 0..50 {
        w.observe("leaf");
        w.run(33);
        let held = w.engine.group_tally(w.id("top"), POLICY, 0);
        assert_eq!(held.count_at(Ready), 1, "mid is not in doubt");
    }
    assert_eq!(w.server.log.len(), before);
}

#[test]
fn a_chatty_child_that_stays_ready_does_not_restart_the_hold() {
    let mut w = EngineHarness::with(EnginePolicy { hold: Duration::from_secs(10), ..policy() });
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(20_000);
    w.turn("web", Ready);
    for _ in 0..12 {
        w.run(1_000);
        w.observe("web");
    }
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_write_that_is_seen_again_calls_for_no_other() {
    let mut w = well();
    for level in [Failed, Progressing, Ready] {
        w.turn("web", level);
        let before = w.server.log.len();
        w.run(20_000);
        w.observe("db");
        w.run(20_000);
        assert_eq!(w.server.log.len(), before + 1, "{level}");
    }
}

/// Settles a cluster, restarts over it, and returns the writes after that.
fn restarted(name: &str, reason: &str, mut w: EngineHarness) {
    w.run(15 * 60_000);
    assert_eq!(w.says("db"), reason, "{name}");
    let before = w.server.log.len();
    for order in [&[][..], &["db", "web"], &["web", "db"]] {
        w.restart(order);
        w.run(60_000);
        let after: Vec<_> = w.told("db")[before..].to_vec();
        assert!(after.is_empty(), "{name}: {after:?}");
    }
    w.run(20 * 60_000);
    assert_eq!(w.says("db"), reason, "{name}");
    assert_eq!(w.server.log.len(), before, "{name}: {:?}", w.told("db"));
}

/// A parent `db` with a child `web` at this level.
fn with(policy: EnginePolicy, level: readiness::Level) -> EngineHarness {
    let mut w = EngineHarness::with(policy);
    w.parent("db");
    w.child("web", "db", level);
    w
}

#[test]
fn a_restart_at_rest_writes_nothing_whatever_is_said() {
    for (level, reason) in [
        (Ready, "AllChildrenReady"),
        (Failed, "ChildrenFailed"),
        (Stuck, "ChildrenStuck!"),
        (Unknown, "ChildrenUnknown"),
        (Progressing, "ChildrenProgressing"),
        (Terminating, "ChildrenTerminating"),
        (Suspended, "ChildrenSuspended"),
    ] {
        restarted(reason, reason, with(policy(), level));
    }
    let mut w = with(policy(), Failed);
    w.change("web", |web| web.weights = vec![ChildWeight::of(Failed).with_terminal(true)]);
    restarted("terminal", "ChildrenFailed!", w);
}

/// A parent `db` above a parent `web` of which nothing is written, whose children are at these levels.
fn above_a_shadow(
    shadow: EnginePolicy,
    evidence: HandledEvidence,
    leaves: &[readiness::Level],
) -> EngineHarness {
    let of = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(of, EnginePolicy { shadow: true, ..shadow });
    w.sync();
    w.parent("db");
    w.parent_so("web", |web| (web.policies, web.evidence) = (vec![of], evidence));
    w.change("web", |web| web.owners = vec![(POLICY, 0, "db".to_owned())]);
    for (name, level) in ["leaf", "twig"].into_iter().zip(leaves) {
        w.create(name, CHILDREN, *level, |leaf| leaf.owners = vec![(of, 0, "web".to_owned())]);
    }
    w
}

#[test]
fn a_restart_leaves_alone_what_rests_on_a_parent_of_which_nothing_is_written() {
    let w = above_a_shadow(policy(), HandledEvidence::Silent, &[Ready]);
    restarted("above a shadow", "AllChildrenReady", w);
}

#[test]
fn a_limit_that_is_recorded_nowhere_says_nothing_to_those_above() {
    use ParentReason::{ChildrenMissing, DeadlineExceeded, OperatorSilent};
    let in_time = EnginePolicy { deadline: Some(Duration::from_mins(5)), ..policy() };
    let two = EnginePolicy { groups: vec![crate::ChildGroup { min: 2, ..group(CHILDREN) }], ..policy() };
    for (shadow, evidence, leaf, says, above) in [
        (in_time.clone(), HandledEvidence::Handled, Progressing, DeadlineExceeded, "ChildrenProgressing"),
        (in_time, HandledEvidence::Handled, Failed, DeadlineExceeded, "ChildrenFailed"),
        (policy(), HandledEvidence::NotYet, Ready, OperatorSilent, "ChildrenProgressing"),
        (two, HandledEvidence::Handled, Ready, ChildrenMissing, "ChildrenProgressing"),
    ] {
        let mut w = above_a_shadow(shadow, evidence, &[leaf]);
        w.run(15 * 60_000);
        let said = w.engine.answer_of(w.id("web"), aggregator::PolicyId(2)).unwrap();
        assert!(said.reason == says && said.stalled, "{said:?}");
        restarted(says.as_str(), above, w);
    }
}

#[test]
fn a_restart_at_rest_writes_nothing_where_something_is_awaited() {
    let unhandled = |evidence| {
        let mut w = EngineHarness::with(EnginePolicy { pending: Duration::from_hours(1), ..policy() });
        w.parent_so("db", |p| p.evidence = evidence);
        w.child("web", "db", Ready);
        w
    };
    restarted("pending", "ChildrenPending", unhandled(HandledEvidence::NotYet));
    let mut w = with(policy(), Ready);
    w.respecify("db", HandledEvidence::NotYet);
    restarted("silent", "OperatorSilent!", w);
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    restarted("missing", "ChildrenMissing!", w);
    let deadline = Some(Duration::from_mins(3));
    restarted("deadline", "DeadlineExceeded!", with(EnginePolicy { deadline, ..policy() }, Progressing));
}

#[test]
fn a_restart_at_rest_writes_nothing_where_the_view_is_obstructed() {
    let mut w = with(policy(), Ready);
    w.kind(CHILDREN, KindState::Forbidden);
    restarted("forbidden", "KindNotVisible", w);
    let mut w = with(policy(), Ready);
    w.kind(CHILDREN, KindState::Stale);
    restarted("stale", "WatchStale", w);
    let mut w = with(policy(), Ready);
    w.change_parent("db", |p| p.unrendered = true);
    restarted("unrendered", "TemplateFailed", w);
    let mut w = with(policy(), Ready);
    w.change_parent("db", |p| p.deleting = true);
    restarted("deleting", "Terminating", w);
    let few = aggregator::ChildGroup { max: Some(0), min: 0, ..group(CHILDREN) };
    restarted("surplus", "TooManyChildren", with(groups(vec![few]), Ready));
}

#[test]
fn a_parent_that_is_deleted_is_told_once_and_then_left_alone() {
    let mut w = well();
    w.change_parent("db", |p| p.deleting = true);
    w.run(1_000);
    assert_eq!(w.says("db"), "Terminating");
    let before = w.server.log.len();
    w.turn("web", Terminating);
    w.run(1_000);
    w.remove("web");
    w.run(1_000);
    assert_eq!(w.server.log.len(), before);
}

#[test]
fn a_deletion_beyond_its_limit_is_told_once_and_then_left_alone() {
    let mut w = well();
    let limit = w.now + Duration::from_mins(10);
    w.change_parent("db", |p| (p.deleting, p.stuck_at) = (true, Some(limit)));
    w.run(9 * 60_000);
    assert_eq!(w.says("db"), "Terminating");
    let before = w.server.log.len();
    w.run(2 * 60_000);
    assert_eq!(
        (&*w.says("db"), w.server.log.len()),
        ("DeletionStuck!", before + 1),
        "nothing but time has passed"
    );
    w.turn("web", Terminating);
    w.run(1_000);
    w.remove("web");
    w.run(60_000);
    assert_eq!(w.server.log.len(), before + 1);
    let mut w = well();
    w.change_parent("db", |p| (p.deleting, p.stuck_at) = (true, Some(readiness::Time(0))));
    w.run(1_000);
    assert_eq!(w.says("db"), "DeletionStuck!", "at once where the limit has passed before");
    restarted("stuck in deletion", "DeletionStuck!", w);
}

#[test]
fn what_a_deleted_parent_says_of_its_end_is_set_right_where_somebody_takes_or_turns_it() {
    type Tamper = fn(&mut ParentEntry);
    let cases: [(&str, Option<Tamper>); 3] = [
        ("taken away", None),
        ("turned", Some(|entry| entry.turned = Some(rollup::ConditionStatus::True))),
        ("overwritten", Some(|entry| entry.reason = rollup::ParentReason::AllChildrenReady)),
    ];
    for (what, tamper) in cases {
        let mut w = well();
        w.change_parent("db", |p| p.deleting = true);
        w.run(1_000);
        let before = w.server.log.len();
        w.change_parent("db", |p| match tamper {
            None => p.status.clear(),
            Some(tamper) => p.status.values_mut().for_each(tamper),
        });
        w.run(60_000);
        assert_eq!(w.server.log.len(), before + 1, "{what}: set right once");
        assert_eq!(w.says("db"), "Terminating", "{what}");
        assert_eq!(w.objects["db"].parent.as_ref().unwrap().status[&POLICY].turned, None, "{what}");
    }
}

#[test]
fn a_deadline_is_not_passed_by_a_restart_that_finds_an_old_unknown() {
    let mut w = EngineHarness::with(EnginePolicy { deadline: Some(Duration::from_mins(10)), ..policy() });
    w.parent("db");
    w.child("web", "db", Unknown);
    w.run(9 * 60_000);
    w.respecify("db", HandledEvidence::Handled);
    w.run(30_000);
    assert_eq!(w.says("db"), "ChildrenUnknown");
    w.restart(&[]);
    w.run(9 * 60_000);
    assert_eq!(w.says("db"), "ChildrenUnknown", "its status is older than the generation that it is about");
    w.run(2 * 60_000);
    assert_eq!(w.says("db"), "DeadlineExceeded!");
}

#[test]
fn a_restart_writes_nothing_above_a_parent_whose_condition_another_client_has() {
    let below = aggregator::PolicyId(2);
    for evidence in [HandledEvidence::Handled, HandledEvidence::Silent] {
        for (hold, level, reason) in
            [(0, Ready, "AllChildrenReady"), (10, Ready, "AllChildrenReady"), (10, Failed, "ChildrenFailed")]
        {
            let mut w = EngineHarness::empty();
            w.policy(POLICY, groups(vec![group(PARENTS), group(EXTRAS)]));
            w.policy(below, EnginePolicy { hold: Duration::from_secs(hold), ..policy() });
            w.sync();
            w.parent("top");
            w.parent_so("mid", |p| {
                p.policies = vec![below];
                p.owned = true;
                p.evidence = evidence;
            });
            w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
            w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
            w.create("disk", EXTRAS, level, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
            w.run(60_000);
            assert_eq!(w.says("top"), reason, "{evidence:?}");
            let before = w.server.log.len();
            w.restart(&[]);
            w.run(60_000);
            assert!(
                w.server.log[before..].is_empty(),
                "{evidence:?}, hold {hold} s: {:?}",
                &w.server.log[before..]
            );
        }
    }
}

#[test]
fn an_operator_is_silent_for_the_settle_time_only_where_that_was_seen() {
    let mut w = EngineHarness::with(EnginePolicy { settle: Duration::from_secs(30), ..policy() });
    w.parent_so("db", |db| db.evidence = HandledEvidence::Silent);
    w.child("web", "db", Ready);
    w.run(1_000);
    w.kinds.insert(CHILDREN, KindState::Listing);
    w.restart(&[]);
    // The list takes longer than the operator may be silent, and nobody sees what moves meanwhile.
    w.run(60_000);
    w.kind(CHILDREN, KindState::Synced);
    w.run(29_000);
    assert_eq!(w.says("db"), "ChildrenPending");
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_restart_writes_nothing_above_a_parent_that_has_no_room_for_stalled() {
    let below = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(EXTRAS)]));
    w.policy(below, EnginePolicy { pending: Duration::from_mins(5), ..policy() });
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| {
        p.policies = vec![below];
        p.stalled_unrecorded = true;
    });
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Progressing, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
    w.create("disk", EXTRAS, Failed, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(4 * 60_000);
    w.remove("leaf");
    w.run(60_000);
    assert_eq!(
        (w.says_for("mid", below), w.says("top")),
        ("ChildrenMissing".into(), "ChildrenFailed".into())
    );
    w.run(10 * 60_000);
    let said = ("ChildrenMissing!".to_owned(), "ChildrenFailed!".to_owned());
    assert_eq!((w.says_for("mid", below), w.says("top")), said, "nobody brings it back");
    let before = w.server.log.len();
    w.restart(&[]);
    w.run(10 * 60_000);
    assert!(w.server.log[before..].is_empty(), "{:?}", &w.server.log[before..]);
}
