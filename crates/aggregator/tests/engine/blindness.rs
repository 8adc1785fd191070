//! Answers about kinds that cannot be observed.

use std::time::Duration;

use aggregator::{ChildGroup, EnginePolicy, GroupRole, HandledEvidence, KindId, KindState};
use readiness::Level::{Failed, Progressing, Ready, Suspended};
use readiness::rollup::ParentReason;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

pub(crate) const EXTRAS: KindId = KindId(2);

/// A policy over two kinds of children, both present and ready.
fn both() -> EngineHarness {
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), group(EXTRAS)]));
    w.parent("db");
    w.child("web", "db", Ready);
    w.create("disk", EXTRAS, Ready, |disk| disk.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w
}

#[test]
fn a_kind_that_went_blind_turns_true_into_unknown_and_back() {
    for (state, reason) in [(KindState::Stale, "WatchStale"), (KindState::Forbidden, "KindNotVisible")] {
        let mut w = both();
        w.kind(EXTRAS, state);
        w.run(1_000);
        assert_eq!(w.says("db"), reason);
        w.kind(EXTRAS, KindState::Synced);
        w.run(10_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
    }
}

#[test]
fn a_parent_whose_own_kind_cannot_be_watched_is_not_called_ready_either() {
    let mut w = both();
    w.kind(PARENTS, KindState::Stale);
    w.run(1_000);
    assert_eq!(w.says("db"), "WatchStale");
}

#[test]
fn a_policy_that_is_edited_while_its_parents_cannot_be_read_leaves_no_true_of_before() {
    let edited = || groups(vec![group(CHILDREN), ChildGroup { role: GroupRole::Optional, ..group(EXTRAS) }]);
    for (state, reason) in [(KindState::Stale, "WatchStale"), (KindState::Forbidden, "KindNotVisible")] {
        let mut w = both();
        w.kind(PARENTS, state);
        w.policy(POLICY, edited());
        w.run(20_000);
        assert_eq!(w.says("db"), reason, "edited when it was not read any more");
        w.kind(PARENTS, KindState::Synced);
        w.run(20_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        w.policy(POLICY, groups(vec![group(CHILDREN), group(EXTRAS)]));
        w.kind(PARENTS, state);
        w.run(20_000);
        assert_eq!(w.says("db"), reason, "edited before");
    }
}

#[test]
fn what_is_seen_to_be_wrong_is_said_all_the_same() {
    let mut w = both();
    w.kind(EXTRAS, KindState::Stale);
    w.turn("web", Failed);
    w.run(10_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    w.turn("web", Progressing);
    w.run(10_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    w.turn("web", Ready);
    w.run(10_000);
    assert_eq!(w.says("db"), "WatchStale");
}

#[test]
fn what_is_not_found_where_nothing_can_be_seen_is_not_called_missing() {
    let mut w = both();
    w.kind(EXTRAS, KindState::Forbidden);
    w.remove("disk");
    w.run(20 * 60_000);
    assert_eq!(w.says("db"), "KindNotVisible");
}

#[test]
fn what_is_suspended_beside_what_cannot_be_seen_is_not_called_suspended() {
    // Whoever is suspended holds nobody above back who has a ready child: what fails unseen would be called ready there.
    let unseen = aggregator::ChildGroup { min: 0, ..group(EXTRAS) };
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), unseen]));
    w.parent("db");
    w.child("web", "db", Suspended);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenSuspended");
    for (state, reason) in [(KindState::Stale, "WatchStale"), (KindState::Forbidden, "KindNotVisible")] {
        w.kind(EXTRAS, state);
        w.run(10_000);
        assert_eq!(w.says("db"), reason);
        w.kind(EXTRAS, KindState::Synced);
        w.run(10_000);
        assert_eq!(w.says("db"), "ChildrenSuspended");
    }
}

#[test]
fn of_two_kinds_of_blindness_the_one_that_a_rule_would_heal_is_told() {
    for (first, second) in [(EXTRAS, CHILDREN), (CHILDREN, EXTRAS)] {
        let mut w = both();
        w.kind(first, KindState::Stale);
        w.kind(second, KindState::Forbidden);
        w.run(10_000);
        assert_eq!(w.says("db"), "KindNotVisible");
    }
}

#[test]
fn a_kind_that_is_not_installed_has_no_objects_and_hides_none() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(CHILDREN), group(EXTRAS)]));
    w.sync();
    w.kind(EXTRAS, KindState::Absent);
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
    let none = aggregator::ChildGroup { min: 0, ..group(EXTRAS) };
    w.policy(POLICY, groups(vec![group(CHILDREN), none]));
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn blindness_of_a_kind_is_nothing_to_policies_that_do_not_look_at_it() {
    let mut w = well();
    w.policy(aggregator::PolicyId(2), EnginePolicy { shadow: true, ..groups(vec![group(EXTRAS)]) });
    w.kind(EXTRAS, KindState::Forbidden);
    let before = w.server.log.len();
    w.run(60_000);
    assert_eq!(w.server.log.len(), before);
}

#[test]
fn a_new_generation_begins_under_blindness_as_well() {
    let mut w = both();
    w.kind(EXTRAS, KindState::Stale);
    w.run(1_000);
    let before = w.told("db").len();
    w.respecify("db", HandledEvidence::Handled);
    w.run(10_000);
    assert_eq!(w.words("db")[before..], ["ChildrenPending", "WatchStale"]);
}

#[test]
fn an_operator_is_silent_from_the_list_on_that_ends_the_blindness() {
    let mut w = EngineHarness::with(policy());
    w.parent_so("db", |db| db.evidence = HandledEvidence::Silent);
    w.child("web", "db", Ready);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.kind(CHILDREN, KindState::Forbidden);
    w.respecify("db", HandledEvidence::Silent);
    w.run(60_000);
    assert_ne!(w.says("db"), "AllChildrenReady");
    w.kind(CHILDREN, KindState::Synced);
    w.run(4_900);
    assert_eq!(w.says("db"), "ChildrenPending", "nobody saw what it did until now");
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn an_operator_is_silent_for_no_longer_because_a_kind_is_not_installed_any_more() {
    let both = vec![group(CHILDREN), ChildGroup { role: GroupRole::Optional, min: 0, ..group(EXTRAS) }];
    let mut w = EngineHarness::with(groups(both));
    w.parent_so("db", |db| db.evidence = HandledEvidence::Silent);
    w.child("web", "db", Ready);
    w.run(60_000);
    w.respecify("db", HandledEvidence::Silent);
    w.run(3_000);
    w.kind(EXTRAS, KindState::Absent);
    w.run(1_900);
    assert_eq!(w.reason("db"), Some(ParentReason::ChildrenPending));
    w.run(110);
    assert_eq!(w.reason("db"), Some(ParentReason::AllChildrenReady), "it was silent for five seconds");
}

#[test]
fn blindness_below_climbs() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS)]));
    w.policy(aggregator::PolicyId(2), policy());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![aggregator::PolicyId(2)]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| {
        leaf.owners = vec![(aggregator::PolicyId(2), 0, "mid".to_owned())];
    });
    w.run(20_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    w.kind(CHILDREN, KindState::Stale);
    w.run(1_000);
    assert_eq!(w.says("top"), "ChildrenUnknown");
}

#[test]
fn a_true_that_was_not_written_before_a_list_is_awaited_is_not_written_while_it_is() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(5_000);
    w.server.fates = vec![crate::server::WriteFate::Retry(Duration::from_millis(500))];
    w.run(200);
    assert_eq!(w.reason("db").unwrap().as_str(), "AllChildrenReady");
    w.kind(CHILDREN, KindState::Listing);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenSettling");
    w.kind(CHILDREN, KindState::Synced);
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_parent_below_that_is_being_deleted_is_known_to_be_before_everything_was_listed() {
    let other = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS)]));
    w.policy(other, groups(vec![group(EXTRAS)]));
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![other]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.kind(EXTRAS, KindState::Listing);
    w.change_parent("mid", |p| p.deleting = true);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenTerminating");
    let before = w.server.log.len();
    w.restart(&[]);
    w.run(20_000);
    w.kind(EXTRAS, KindState::Synced);
    w.run(20_000);
    assert!(
        w.server.log[before..].iter().all(|written| written.parent == "mid"),
        "{:?}",
        &w.server.log[before..]
    );
}

#[test]
fn what_a_parent_below_said_before_a_restart_makes_nothing_ready_before_everything_was_listed() {
    let below = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(EXTRAS)]));
    w.policy(below, policy());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![below]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
    w.create("disk", EXTRAS, Failed, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(20_000);
    assert_eq!(
        (w.says_for("mid", below), w.says("top")),
        ("AllChildrenReady".into(), "ChildrenFailed".into())
    );
    w.kind(CHILDREN, KindState::Listing);
    w.restart(&[]);
    // Of the children of `mid` a page has come, and it is well; the page with the next one has not.
    w.turn("disk", Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed");
    w.create("other leaf", CHILDREN, Failed, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed");
    let before = w.server.log.len();
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert!(!w.words("top").iter().any(|word| word == "AllChildrenReady"), "{:?}", &w.server.log[before..]);
    w.turn("other leaf", Ready);
    w.run(20_000);
    assert_eq!(
        (w.says_for("mid", below), w.says("top")),
        ("AllChildrenReady".into(), "AllChildrenReady".into())
    );
}

#[test]
fn grace_bridges_no_restart_before_everything_below_was_listed() {
    let (middle, below) = (aggregator::PolicyId(2), aggregator::PolicyId(3));
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(EXTRAS)]));
    w.policy(middle, EnginePolicy { grace: Duration::from_mins(10), ..groups(vec![group(PARENTS)]) });
    w.policy(below, policy());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![middle]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.parent_so("low", |p| p.policies = vec![below]);
    w.change("low", |low| low.owners = vec![(middle, 0, "mid".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(below, 0, "low".to_owned())]);
    w.create("disk", EXTRAS, Failed, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(20_000);
    let said = |w: &EngineHarness| (w.says_for("mid", middle), w.says("top"));
    assert_eq!(said(&w), ("AllChildrenReady".into(), "ChildrenFailed".into()));
    w.kind(CHILDREN, KindState::Listing);
    w.restart(&[]);
    w.turn("disk", Ready);
    w.run(20_000);
    assert_eq!(
        said(&w),
        ("AllChildrenReady".into(), "ChildrenFailed".into()),
        "of the leaves nothing is known"
    );
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(said(&w), ("AllChildrenReady".into(), "AllChildrenReady".into()));
}

#[test]
fn what_a_parent_below_said_before_its_children_are_listed_anew_makes_nothing_ready() {
    let below = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(EXTRAS)]));
    w.policy(below, policy());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![below]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
    w.create("disk", EXTRAS, Progressing, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenProgressing");
    // Another policy over the same kind went: the kind is followed anew.
    w.kind(CHILDREN, KindState::Listing);
    w.turn("disk", Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenProgressing");
    w.turn("leaf", Failed);
    w.run(20_000);
    let before = w.server.log.len();
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed", "{:?}", &w.server.log[before..]);
    assert!(!w.words("top").iter().any(|word| word == "AllChildrenReady"), "{:?}", w.told("top"));
}

#[test]
fn a_true_above_stands_while_children_further_below_are_listed_anew() {
    let below = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS)]));
    w.policy(below, policy());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![below]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Ready, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
    w.run(20_000);
    let before = w.server.log.len();
    w.kind(CHILDREN, KindState::Listing);
    w.run(20_000);
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert!(w.server.log[before..].is_empty(), "{:?}", &w.server.log[before..]);
}

#[test]
fn who_waits_for_a_list_below_waits_for_all_of_it_also_when_something_else_moves_late() {
    let below = aggregator::PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(PARENTS), group(EXTRAS)]));
    w.policy(below, policy());
    w.sync();
    w.parent("top");
    w.parent_so("mid", |p| p.policies = vec![below]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.create("leaf", CHILDREN, Progressing, |leaf| leaf.owners = vec![(below, 0, "mid".to_owned())]);
    w.create("disk", EXTRAS, Failed, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w.run(20_000);
    w.kind(CHILDREN, KindState::Listing);
    w.restart(&[]);
    w.run(20_000);
    w.turn("disk", Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed");
    w.turn("leaf", Ready);
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    assert!(!w.words("top").iter().any(|word| word == "ChildrenProgressing"), "{:?}", w.words("top"));
}

#[test]
fn a_parent_that_is_being_deleted_is_not_told_so_before_everything_was_listed() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.kind(PARENTS, KindState::Synced);
    w.parent_so("db", |p| p.deleting = true);
    w.run(20_000);
    assert!(w.server.log.is_empty(), "{:?}", w.server.log);
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.words("db"), ["Terminating"]);
}

#[test]
fn the_blind_say_nothing_of_children_from_which_the_next_process_would_take_that_a_generation_was_handled() {
    let cases =
        [(HandledEvidence::Masked, false), (HandledEvidence::Handled, true), (HandledEvidence::Silent, true)];
    for (evidence, requires_proof) in cases {
        let mut w = EngineHarness::with(EnginePolicy { requires_proof, ..policy() });
        w.parent("db");
        w.child("web", "db", Ready);
        w.run(20_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        w.kind(CHILDREN, KindState::Forbidden);
        w.run(20_000);
        w.respecify("db", evidence);
        w.turn("web", Progressing);
        w.run(20_000);
        assert_eq!(w.says("db"), "KindNotVisible");
        w.kinds.insert(CHILDREN, KindState::Synced);
        w.restart(&[]);
        w.turn("web", Ready);
        w.run(20_000);
        assert_ne!(w.says("db"), "AllChildrenReady", "{evidence:?}: nothing was done for this generation");
    }
}
