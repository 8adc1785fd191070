//! Children whose newest version awaits its rule: what stands for them keeps an answer and gives none.

use aggregator::{ChildGroup, GroupRole, PolicyId, Quorum};
use readiness::Level::{Failed, Progressing, Ready, Unknown};
use readiness::rollup::ChildWeight;

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS};
use crate::{group, groups, policy};

const UNJUDGED: ChildWeight = ChildWeight::of(Ready).unjudged();

fn weigh(w: &mut EngineHarness, child: &str, weight: ChildWeight) {
    w.change(child, |object| object.weights = vec![weight]);
}

/// A parent of children that weigh so, a long while later.
fn parent_of(group: ChildGroup, weights: &[ChildWeight]) -> EngineHarness {
    let mut w = EngineHarness::with(groups(vec![group]));
    w.parent("db");
    for (n, weight) in weights.iter().enumerate() {
        w.child(&format!("web-{n}"), "db", weight.level());
        weigh(&mut w, &format!("web-{n}"), *weight);
    }
    w.run(60_000);
    w
}

#[test]
fn a_child_that_awaits_its_rule_keeps_a_parent_ready_and_its_verdict_turns_it() {
    let mut w = parent_of(group(CHILDREN), &[ChildWeight::of(Ready); 2]);
    let turns = w.turns.len();
    for weight in [UNJUDGED, ChildWeight::of(Ready), UNJUDGED] {
        weigh(&mut w, "web-0", weight);
        w.run(20_000);
        assert_eq!(w.says("db"), "AllChildrenReady", "{weight:?}");
    }
    assert_eq!(w.turns.len(), turns, "nobody was told of any other answer");
    weigh(&mut w, "web-0", ChildWeight::of(Unknown));
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenUnknown", "it is overdue");
}

#[test]
fn a_child_that_awaits_its_rule_makes_no_parent_ready() {
    let mut w = parent_of(group(CHILDREN), &[ChildWeight::of(Failed), ChildWeight::of(Ready)]);
    weigh(&mut w, "web-1", UNJUDGED);
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    weigh(&mut w, "web-0", ChildWeight::of(Ready));
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenSettling", "one of two is ready as it was once");
    weigh(&mut w, "web-1", ChildWeight::of(Ready));
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

/// Whether it was ready meanwhile, nobody knows.
#[test]
fn a_child_that_awaits_its_rule_has_not_been_ready_for_as_long_as_the_policy_asks() {
    let held = aggregator::EnginePolicy { hold: std::time::Duration::from_secs(30), ..policy() };
    let mut w = EngineHarness::with(held);
    w.parent("db");
    w.child("web", "db", Ready);
    weigh(&mut w, "web", UNJUDGED);
    w.run(60_000);
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(29_000);
    assert!(awaits(&w), "{}", w.says("db"));
    // What it says is judged anew each time that it changes: what stands for it meanwhile is what it was.
    weigh(&mut w, "web", UNJUDGED);
    w.run(500);
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(2_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

fn awaits(w: &EngineHarness) -> bool {
    matches!(w.says("db").as_str(), "ChildrenPending" | "ChildrenSettling")
}

#[test]
fn the_first_word_stands_until_every_child_is_judged() {
    let mut w = parent_of(group(CHILDREN), &[UNJUDGED, ChildWeight::of(Ready)]);
    assert!(awaits(&w), "{}", w.says("db"));
    weigh(&mut w, "web-0", ChildWeight::of(Progressing));
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
}

#[test]
fn a_quorum_is_reached_by_those_that_are_judged() {
    let two = ChildGroup { quorum: Quorum::Count(2), ..group(CHILDREN) };
    let (ready, progressing) = (ChildWeight::of(Ready), ChildWeight::of(Progressing));
    let w = parent_of(two.clone(), &[ready, ready, UNJUDGED]);
    assert_eq!(w.says("db"), "AllChildrenReady");
    let w = parent_of(two, &[ready, UNJUDGED, progressing]);
    assert!(awaits(&w), "{}", w.says("db"));
}

#[test]
fn an_optional_child_that_awaits_its_rule_holds_nobody_back() {
    let mut both = vec![group(CHILDREN), group(CHILDREN)];
    both[1] = ChildGroup { role: GroupRole::Optional, min: 0, ..group(CHILDREN) };
    let mut w = EngineHarness::with(groups(both));
    w.parent("db");
    w.child("web", "db", Ready);
    w.create("extra", CHILDREN, Ready, |extra| {
        extra.owners = vec![(crate::harness::POLICY, 1, "db".to_owned())];
    });
    weigh(&mut w, "extra", UNJUDGED);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

const OVER: PolicyId = PolicyId(2);

/// `top` over `db` and `cache`, these over `web` and `store`, a long while later.
fn two_levels() -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    w.policy(OVER, groups(vec![group(PARENTS)]));
    w.sync();
    w.parent_so("top", |top| top.policies = vec![OVER]);
    for (db, web) in [("db", "web"), ("cache", "store")] {
        w.parent(db);
        w.change(db, |db| db.owners = vec![(OVER, 0, "top".to_owned())]);
        w.child(web, db, Ready);
    }
    w.run(60_000);
    w
}

fn top(w: &EngineHarness) -> &'static str {
    w.engine.answer_of(w.id("top"), OVER).unwrap().reason.as_str()
}

#[test]
fn what_rests_on_a_child_that_awaits_its_rule_makes_no_parent_above_ready() {
    let mut w = two_levels();
    assert_eq!(top(&w), "AllChildrenReady");
    weigh(&mut w, "store", ChildWeight::of(Failed));
    w.run(10_000);
    weigh(&mut w, "web", UNJUDGED);
    w.run(10_000);
    assert_eq!((w.says("db").as_str(), top(&w)), ("AllChildrenReady", "ChildrenFailed"));
    weigh(&mut w, "store", ChildWeight::of(Ready));
    w.run(60_000);
    assert_eq!(top(&w), "ChildrenSettling", "db may be ready no more");
    assert_eq!(w.engine.reader().find_miscounted(), None);
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(10_000);
    assert_eq!(top(&w), "AllChildrenReady");
    assert_eq!(w.engine.reader().find_miscounted(), None);
}

#[test]
fn a_verdict_that_ends_the_wait_within_a_debounce_reaches_the_parents_above() {
    let mut w = two_levels();
    weigh(&mut w, "store", ChildWeight::of(Failed));
    weigh(&mut w, "web", UNJUDGED);
    w.run(10_000);
    weigh(&mut w, "store", ChildWeight::of(Ready));
    w.run(60_000);
    assert_eq!(top(&w), "ChildrenSettling");
    weigh(&mut w, "web", UNJUDGED);
    w.run(10);
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(10_000);
    assert_eq!(top(&w), "AllChildrenReady");
}

#[test]
fn a_parent_that_was_evaluated_over_a_doubt_is_evaluated_again_when_it_ends() {
    let mut w = two_levels();
    w.observe("web");
    w.run(10);
    weigh(&mut w, "web", ChildWeight::of(Progressing));
    w.observe("top");
    w.run(10);
    assert_eq!(top(&w), "ChildrenProgressing", "db awaits its evaluation, and is not to be counted on");
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(10_000);
    assert_eq!((w.says("db").as_str(), top(&w)), ("AllChildrenReady", "AllChildrenReady"));
}

#[test]
fn what_is_due_above_is_not_put_off_because_a_doubt_ends() {
    let mut w = two_levels();
    w.create("leaf", PARENTS, Ready, |leaf| leaf.owners = vec![(OVER, 0, "top".to_owned())]);
    w.run(60_000);
    w.observe("web");
    w.run(10);
    weigh(&mut w, "web", ChildWeight::of(Progressing));
    w.run(10);
    weigh(&mut w, "leaf", ChildWeight::of(Failed));
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(1);
    assert_eq!(top(&w), "ChildrenFailed");
}
