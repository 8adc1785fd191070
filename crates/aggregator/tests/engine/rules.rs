//! Rules that change while they apply to a parent.

use aggregator::{ChildGroup, KindId, KindState, PolicyId};
use readiness::Level::{Failed, Progressing, Ready, Unknown};

use crate::ask::HarnessQueries as _;
use crate::conditions::Status;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

const EXTRAS: KindId = KindId(2);

/// `db` has a child and an extra, `plain` a child alone; all are ready.
fn two_groups() -> EngineHarness {
    let extras = ChildGroup { min: 0, ..group(EXTRAS) };
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), extras]));
    for db in ["db", "plain"] {
        w.parent(db);
        w.child(&format!("{db}-web"), db, Ready);
    }
    w.create("extra", EXTRAS, Ready, |extra| extra.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says("plain")), ("AllChildrenReady".into(), "AllChildrenReady".into()));
    w
}

/// Relists the kind of the second group for another rule, which takes too long.
fn change_the_rule(w: &mut EngineHarness) {
    w.kind(EXTRAS, KindState::Listing);
    w.engine.withdraw_changed_rule(w.now, POLICY, EXTRAS);
}

#[test]
fn what_rested_on_the_old_rule_is_unknown_until_the_list_by_the_new_one_is_through() {
    let mut w = two_groups();
    change_the_rule(&mut w);
    w.run(600_000);
    assert_eq!(w.says("db"), "RuleChanged", "however long that takes");
    assert_eq!(w.engine.reader().find_miscounted(), None);
    w.kind(EXTRAS, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    assert_eq!(w.engine.reader().find_miscounted(), None);
}

#[test]
fn a_failure_that_is_known_by_another_rule_stays_one() {
    let mut w = two_groups();
    w.turn("db-web", Failed);
    w.run(20_000);
    change_the_rule(&mut w);
    w.run(600_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn what_does_not_rest_on_the_old_rule_is_left_as_it_stands() {
    let mut w = two_groups();
    let before = w.told("plain").len();
    change_the_rule(&mut w);
    w.run(60_000);
    w.kind(EXTRAS, KindState::Synced);
    w.run(60_000);
    assert_eq!(w.told("plain").len(), before);
}

#[test]
fn a_list_without_a_changed_rule_takes_nothing_back() {
    let mut w = two_groups();
    let before = w.told("db").len();
    w.kind(EXTRAS, KindState::Listing);
    w.run(60_000);
    w.kind(EXTRAS, KindState::Synced);
    w.run(60_000);
    assert_eq!(w.told("db").len(), before);
}

#[test]
fn what_the_new_rule_says_counts_only_when_all_of_its_kind_was_judged() {
    let mut w = two_groups();
    w.create("other", EXTRAS, Ready, |extra| extra.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(20_000);
    change_the_rule(&mut w);
    w.turn("extra", Failed);
    w.turn("other", Progressing);
    w.run(20_000);
    assert_eq!(w.says("db"), "RuleChanged");
    w.turn("extra", Ready);
    w.run(20_000);
    assert_eq!(w.says("db"), "RuleChanged");
    w.kind(EXTRAS, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
}

#[test]
fn a_failure_that_rests_on_another_rule_stands() {
    let mut w = two_groups();
    w.turn("db-web", Failed);
    w.run(20_000);
    let before = w.told("db").len();
    change_the_rule(&mut w);
    w.run(60_000);
    w.kind(EXTRAS, KindState::Synced);
    w.run(60_000);
    assert!(w.words("db")[before..].iter().all(|word| word == "ChildrenFailed"), "{:?}", w.words("db"));
}

#[test]
fn a_child_that_appears_meanwhile_rests_on_the_new_rule_and_is_unknown_too() {
    let mut w = two_groups();
    change_the_rule(&mut w);
    w.run(20_000);
    w.create("late", EXTRAS, Ready, |extra| extra.owners = vec![(POLICY, 1, "plain".to_owned())]);
    w.run(20_000);
    assert_eq!(w.says("plain"), "RuleChanged");
}

#[test]
fn a_changed_rule_of_one_policy_is_nothing_to_another_over_the_same_children() {
    const OTHER: PolicyId = PolicyId(2);
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(OTHER, policy());
    w.sync();
    w.parent_so("db", |p| p.policies.push(OTHER));
    w.create("web", CHILDREN, Ready, |web| {
        web.owners = vec![(POLICY, 0, "db".to_owned()), (OTHER, 0, "db".to_owned())];
    });
    w.run(20_000);
    w.kind(CHILDREN, KindState::Listing);
    w.engine.withdraw_changed_rule(w.now, POLICY, CHILDREN);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says_for("db", OTHER)), ("RuleChanged".into(), "AllChildrenReady".into()));
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(
        (w.says("db"), w.says_for("db", OTHER)),
        ("AllChildrenReady".into(), "AllChildrenReady".into())
    );
}

#[test]
fn a_changed_rule_climbs() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(CHILDREN)]));
    w.policy(PolicyId(2), groups(vec![group(PARENTS)]));
    w.sync();
    w.parent_so("shop", |p| p.policies = vec![PolicyId(2)]);
    w.parent("db");
    w.change("db", |db| db.owners = vec![(PolicyId(2), 0, "shop".to_owned())]);
    w.child("web", "db", Ready);
    w.run(30_000);
    assert_eq!(w.says_for("shop", PolicyId(2)), "AllChildrenReady");
    w.kind(CHILDREN, KindState::Listing);
    w.engine.withdraw_changed_rule(w.now, POLICY, CHILDREN);
    w.run(20_000);
    assert_eq!(w.says_for("shop", PolicyId(2)), "ChildrenUnknown");
    w.turn("web", Unknown);
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenUnknown", "now by the new rule's own word");
}

#[test]
fn at_a_start_nothing_was_said_by_an_old_rule() {
    let mut w = two_groups();
    let before = w.told("db").len();
    w.restart(&[]);
    w.kind(EXTRAS, KindState::Listing);
    w.run(60_000);
    assert_eq!(w.told("db").len(), before);
}

#[test]
fn a_policy_that_became_another_takes_back_what_may_rest_on_an_old_rule() {
    const NEXT: PolicyId = PolicyId(2);
    let mut w = two_groups();
    let next = w.policies[&POLICY].clone();
    for kind in [PARENTS, CHILDREN, EXTRAS] {
        w.kind(kind, KindState::Listing);
    }
    w.engine.set_policy(w.now, POLICY, None);
    w.policy(NEXT, next);
    // Both policies use the same condition type, from which the earlier answer is read.
    let renamed =
        |status: &Status| -> Status { status.values().map(|entry| (NEXT, entry.clone())).collect() };
    w.server.log.iter_mut().for_each(|written| written.after = renamed(&written.after));
    for db in ["db", "plain"] {
        w.change_parent(db, |p| {
            p.policies = vec![NEXT];
            p.status = renamed(&p.status);
        });
    }
    w.kind(PARENTS, KindState::Synced);
    w.run(60_000);
    let of = |w: &EngineHarness, db| w.says_for(db, NEXT);
    assert_eq!(
        (of(&w, "db"), of(&w, "plain")),
        ("AllChildrenReady".into(), "AllChildrenReady".into()),
        "what stands stays while the kind is listed"
    );
    w.engine.withdraw_changed_rule(w.now, NEXT, EXTRAS);
    w.run(60_000);
    // On which children the predecessor's answers rested, nobody knows.
    assert_eq!((of(&w, "db"), of(&w, "plain")), ("RuleChanged".into(), "RuleChanged".into()));
    for name in ["db-web", "plain-web", "extra"] {
        w.change(name, |child| child.owners.iter_mut().for_each(|owner| owner.0 = NEXT));
    }
    w.kind(CHILDREN, KindState::Synced);
    w.kind(EXTRAS, KindState::Synced);
    w.run(60_000);
    assert_eq!((of(&w, "db"), of(&w, "plain")), ("AllChildrenReady".into(), "AllChildrenReady".into()));
}

#[test]
fn a_word_that_was_taken_back_is_set_right_while_the_list_is_still_awaited() {
    let mut w = two_groups();
    change_the_rule(&mut w);
    w.run(20_000);
    let before = w.told("db").len();
    w.change_parent("db", |p| p.status.get_mut(&POLICY).unwrap().stalled ^= true);
    w.run(20_000);
    assert_eq!(w.words("db")[before..], ["RuleChanged"]);
}

#[test]
fn what_rested_on_the_old_rule_once_and_does_no_more_is_left_as_it_stands() {
    let mut w = two_groups();
    w.create("late", EXTRAS, Ready, |extra| extra.owners = vec![(POLICY, 1, "plain".to_owned())]);
    w.run(20_000);
    w.remove("late");
    w.run(20_000);
    change_the_rule(&mut w);
    w.run(60_000);
    assert_eq!((w.says("db"), w.says("plain")), ("RuleChanged".into(), "AllChildrenReady".into()));
}

#[test]
fn a_rule_that_changes_again_is_a_changed_one() {
    let mut w = two_groups();
    change_the_rule(&mut w);
    change_the_rule(&mut w);
    w.run(20_000);
    assert_eq!(w.says("db"), "RuleChanged");
}

#[test]
fn what_does_not_rest_on_the_old_rule_counts_above_as_it_stands() {
    const OVER: PolicyId = PolicyId(2);
    let mut w = two_groups();
    w.policy(OVER, groups(vec![group(PARENTS)]));
    w.parent_so("top", |p| p.policies = vec![OVER]);
    w.change("plain", |plain| plain.owners = vec![(OVER, 0, "top".to_owned())]);
    w.run(30_000);
    assert_eq!(w.says_for("top", OVER), "AllChildrenReady");
    change_the_rule(&mut w);
    w.observe("plain-web");
    w.run(20_000);
    assert_eq!(w.engine.group_tally(w.id("top"), OVER, 0).count_at(Ready), 1);
    assert_eq!(w.says_for("top", OVER), "AllChildrenReady");
}
