//! Steady under churn: what was ready, is rolled out and available keeps the condition True, and makes none True.

use std::time::Duration;

use aggregator::{Availability, ChildGroup, EnginePolicy, GroupRole, HandledEvidence, SelectorId};
use readiness::Level::{Failed, Progressing, Ready, Stuck};
use readiness::Steadiness;
use readiness::rollup::{ChildWeight, ParentReason};
use timer::Seed;

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::{group, policy};

pub(crate) const AVAILABLE: ChildWeight = steady(Steadiness::Available);
const UNOBSERVED: ChildWeight = steady(Steadiness::Unobserved);

const fn steady(steadiness: Steadiness) -> ChildWeight {
    ChildWeight::of(Progressing).with_steadiness(steadiness)
}

pub(crate) fn tolerant() -> EnginePolicy {
    EnginePolicy { availability: Availability::Tolerant, ..policy() }
}

/// A parent that is ready with two children.
pub(crate) fn ready_with(policy: EnginePolicy) -> EngineHarness {
    let mut w = EngineHarness::with(policy);
    w.parent("db");
    w.child("web", "db", Ready);
    w.child("store", "db", Ready);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w
}

pub(crate) fn weigh(w: &mut EngineHarness, child: &str, weight: ChildWeight) {
    w.change(child, |object| object.weights = vec![weight]);
}

#[test]
fn steady_under_churn() {
    let mut w = ready_with(tolerant());
    let turns = w.turns.len();
    for weight in [UNOBSERVED, AVAILABLE, ChildWeight::of(Ready), AVAILABLE, UNOBSERVED, AVAILABLE] {
        weigh(&mut w, "web", weight);
        w.run(900);
        assert_eq!(w.says("db"), "AllChildrenReady", "{weight:?}");
    }
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(900);
    assert_eq!(w.turns.len(), turns, "nobody was told of any other answer");
    assert_eq!(w.engine.take_counts().saved_flips, 2, "once scaled, once more");
}

/// Scales a child eleven times a second for five seconds, each time observed within 87 ms.
fn scale_all_the_time(w: &mut EngineHarness, child: &str) {
    for _ in 0..54 {
        weigh(w, child, UNOBSERVED);
        w.run(87);
        weigh(w, child, AVAILABLE);
        w.run(6);
    }
}

#[test]
fn a_controller_that_observes_each_number_at_once_is_not_late_however_many_there_are() {
    let mut w = ready_with(tolerant());
    let turns = w.turns.len();
    scale_all_the_time(&mut w, "web");
    assert_eq!(w.turns.len(), turns, "{:?}", w.turns.last());
    assert_eq!(w.says("db"), "AllChildrenReady");
    // One that does not observe is not hidden by another that does.
    weigh(&mut w, "store", UNOBSERVED);
    scale_all_the_time(&mut w, "web");
    assert_eq!(w.says("db"), "ChildrenProgressing");
}

#[test]
fn an_answer_that_stands_on_less_than_ready_children_is_known_to() {
    let mut w = ready_with(tolerant());
    let tolerating = |w: &EngineHarness| w.engine.is_tolerating(w.id("db"), POLICY);
    assert!(!tolerating(&w));
    weigh(&mut w, "web", AVAILABLE);
    w.run(1_000);
    assert!(tolerating(&w));
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(1_000);
    assert!(!tolerating(&w));
    weigh(&mut w, "web", AVAILABLE);
    w.run(1_000);
    weigh(&mut w, "store", ChildWeight::of(Failed));
    w.run(1_000);
    assert_eq!((w.says("db").as_str(), tolerating(&w)), ("ChildrenFailed", false));
}

#[test]
fn what_stands_on_less_than_ready_children_is_counted_as_ready_above() {
    let graceful = EnginePolicy { grace: Duration::from_secs(60), ..policy() };
    for (below, weight) in [(tolerant(), AVAILABLE), (graceful, ChildWeight::of(Progressing))] {
        let over = aggregator::PolicyId(2);
        let mut w = EngineHarness::with(below);
        w.policy(over, crate::groups(vec![group(crate::harness::PARENTS)]));
        w.sync();
        w.parent_so("top", |top| top.policies = vec![over]);
        w.parent("db");
        w.change("db", |db| db.owners = vec![(over, 0, "top".to_owned())]);
        w.child("web", "db", Ready);
        w.run(20_000);
        let ready = |w: &EngineHarness| w.engine.group_tally(w.id("top"), over, 0).count_at(Ready);
        // The second change waits for quiet.
        for step in [weight, ChildWeight::of(Ready), weight] {
            weigh(&mut w, "web", step);
            assert_eq!(ready(&w), 1, "{step:?}");
            w.run(50);
            assert_eq!(ready(&w), 1, "{step:?}");
        }
        weigh(&mut w, "web", ChildWeight::of(Failed));
        w.run(0);
        assert_eq!(ready(&w), 0);
    }
}

#[test]
fn under_a_strict_policy_only_ready_children_keep_a_parent_ready() {
    for weight in [UNOBSERVED, AVAILABLE] {
        let mut w = ready_with(policy());
        weigh(&mut w, "web", weight);
        w.run(100);
        assert_eq!(w.says("db"), "ChildrenProgressing");
        assert_eq!(w.engine.take_counts().saved_flips, 0);
    }
}

#[test]
fn a_parent_turns_true_with_ready_children_alone() {
    let mut w = EngineHarness::with(tolerant());
    w.parent("db");
    w.child("web", "db", Progressing);
    w.run(20_000);
    weigh(&mut w, "web", AVAILABLE);
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenProgressing", "it was never rolled out whole");
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(20_000);
    w.respecify("db", HandledEvidence::Silent);
    weigh(&mut w, "web", AVAILABLE);
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenProgressing", "nor was it for the new generation");
}

#[test]
fn what_cannot_be_counted_on_any_longer_turns_the_parent() {
    for (weight, says, after) in [
        (ChildWeight::of(Progressing), "ChildrenProgressing", 100),
        (ChildWeight::of(Failed), "ChildrenFailed", 100),
        (ChildWeight::of(Stuck), "ChildrenStuck!", 100),
        (UNOBSERVED, "ChildrenProgressing", 1_200),
    ] {
        let mut w = ready_with(tolerant());
        weigh(&mut w, "web", AVAILABLE);
        w.run(5_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        weigh(&mut w, "web", weight);
        w.run(after);
        assert_eq!(w.says("db"), says, "{weight:?}");
        weigh(&mut w, "web", AVAILABLE);
        w.run(60_000);
        assert_ne!(
            w.says("db"),
            "AllChildrenReady",
            "{weight:?}: once said, it takes every replica to take it back"
        );
    }
}

#[test]
fn a_child_that_is_available_for_longer_than_the_limit_turns_the_parent() {
    let mut w = ready_with(tolerant());
    weigh(&mut w, "web", AVAILABLE);
    w.run(9 * 60_000);
    weigh(&mut w, "store", AVAILABLE);
    w.run(59_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.run(2_000);
    assert_eq!(w.says("db"), "ChildrenProgressing", "ten minutes after the first of them");
}

#[test]
fn a_child_that_appears_is_counted_on_once_it_was_ready() {
    let mut w = ready_with(tolerant());
    w.create("cache", CHILDREN, Progressing, |cache| {
        cache.owners = vec![(POLICY, 0, "db".to_owned())];
        cache.weights = vec![AVAILABLE];
    });
    w.run(1_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    weigh(&mut w, "cache", ChildWeight::of(Ready));
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    weigh(&mut w, "cache", AVAILABLE);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_child_that_appears_ready_or_does_not_matter_changes_nothing() {
    let extras = ChildGroup { role: GroupRole::Optional, min: 0, ..group(CHILDREN) };
    let mut w = ready_with(EnginePolicy { groups: vec![group(CHILDREN), extras], ..tolerant() });
    weigh(&mut w, "web", AVAILABLE);
    w.run(5_000);
    w.child("config", "db", Ready);
    w.create("backup", CHILDREN, Progressing, |backup| backup.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(5_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.restart(&[]);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady", "nor does it after a restart");
}

#[test]
fn the_pass_reads_what_a_parent_is_counted_ready_without() {
    let mut w = ready_with(tolerant());
    w.run(60_000);
    w.passes.clear();
    weigh(&mut w, "web", AVAILABLE);
    w.run(120_000);
    assert!(w.passes.len() >= 2, "{:?}", w.passes);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_parent_above_does_not_notice_grace_either() {
    let mut w = EngineHarness::with(EnginePolicy { grace: Duration::from_secs(60), ..tolerant() });
    w.parent("shop");
    w.parent("db");
    w.change("db", |db| db.owners = vec![(POLICY, 0, "shop".to_owned())]);
    w.child("web", "db", Ready);
    w.child("front", "shop", Ready);
    w.run(30_000);
    let turns = w.turns.len();
    for _ in 0..20 {
        weigh(&mut w, "web", ChildWeight::of(Progressing));
        w.run(30);
        w.change("front", |front| front.generation += 1);
        w.run(200);
        weigh(&mut w, "web", AVAILABLE);
        w.run(1_300);
    }
    assert_eq!(w.turns.len(), turns, "{:?}", w.turns);
}

#[test]
fn a_restart_keeps_what_stands_on_available_children() {
    let mut w = ready_with(tolerant());
    weigh(&mut w, "web", AVAILABLE);
    w.run(20_000);
    let writes = w.server.log.len();
    w.restart(&[]);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    assert_eq!(w.server.log.len(), writes, "nothing is written");
    w.run(10 * 60_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
    w.restart(&[]);
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
}

#[test]
fn a_parent_above_does_not_notice() {
    let mut w = EngineHarness::with(tolerant());
    w.parent("shop");
    w.parent("db");
    w.change("db", |db| db.owners = vec![(POLICY, 0, "shop".to_owned())]);
    w.child("web", "db", Ready);
    w.run(30_000);
    assert_eq!(
        (w.says("db"), w.says("shop")),
        ("AllChildrenReady".to_owned(), "AllChildrenReady".to_owned())
    );
    let turns = w.turns.len();
    weigh(&mut w, "web", UNOBSERVED);
    w.run(300);
    weigh(&mut w, "web", AVAILABLE);
    w.run(30_000);
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(30_000);
    assert_eq!(w.turns.len(), turns);
}

#[test]
fn grace_keeps_the_condition_for_its_time_but_for_failures() {
    let grace = Duration::from_secs(5);
    let mut w = ready_with(EnginePolicy { grace, ..policy() });
    weigh(&mut w, "web", ChildWeight::of(Progressing));
    w.run(4_800);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.run(400);
    assert_eq!(w.says("db"), "ChildrenProgressing");

    let mut w = ready_with(EnginePolicy { grace, ..policy() });
    weigh(&mut w, "web", ChildWeight::of(Progressing));
    w.run(3_000);
    weigh(&mut w, "web", ChildWeight::of(Ready));
    w.run(1_000);
    weigh(&mut w, "web", ChildWeight::of(Progressing));
    w.run(4_000);
    assert_eq!(w.says("db"), "AllChildrenReady", "a new span begins");
    assert_eq!(w.engine.take_counts().saved_flips, 1);
    weigh(&mut w, "web", ChildWeight::of(Failed));
    w.run(100);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

/// Returns how often twenty parents stop being True in a day on which each child is scaled every ten minutes or so, loses
/// pods to a drain twice, and is rolled out anew twice.
fn flips_of_a_day(policy: &EnginePolicy) -> usize {
    let (mut flips, mut seed) = (0, Seed(23));
    for _ in 0..20 {
        let mut w = ready_with(policy.clone());
        let mut draw = |below: u64| {
            seed = seed.derive(1);
            seed.number_for(0) % below
        };
        let end = w.millis() + 24 * 3_600_000;
        while w.millis() < end {
            w.run(60_000 + draw(17 * 60_000));
            match draw(72) {
                0 => {
                    weigh(&mut w, "web", ChildWeight::of(Progressing));
                    w.run(90_000);
                }
                1 => {
                    weigh(&mut w, "web", AVAILABLE);
                    w.run(240_000);
                }
                _ => {
                    weigh(&mut w, "web", UNOBSERVED);
                    w.run(draw(400));
                    weigh(&mut w, "web", AVAILABLE);
                    w.run(5_000 + draw(60_000));
                }
            }
            weigh(&mut w, "web", ChildWeight::of(Ready));
        }
        let turned = |(_, from, _): &&(String, Option<ParentReason>, ParentReason)| {
            *from == Some(ParentReason::AllChildrenReady)
        };
        flips += w.turns.iter().filter(turned).count();
    }
    flips
}

#[test]
fn a_day_of_scaling_and_drains_flips_only_at_rollouts() {
    let (strict, tolerant) = (flips_of_a_day(&policy()), flips_of_a_day(&tolerant()));
    println!("twenty parents in a day: {strict} flips, {tolerant} with a tolerant policy");
    assert!(strict > 2_000, "{strict}");
    assert!(tolerant < strict / 40, "{tolerant}");
}

#[test]
fn a_restart_keeps_what_stands_on_available_children_that_are_selected_in_whichever_order_they_are_read() {
    for order in [["web", "db"], ["db", "web"]] {
        let mut w = EngineHarness::with(tolerant());
        w.parent_so("db", |db| db.selects = vec![(POLICY, SelectorId(7))]);
        w.create("web", CHILDREN, Ready, |web| web.labels = vec![(POLICY, 0, SelectorId(7))]);
        w.run(20_000);
        weigh(&mut w, "web", AVAILABLE);
        w.run(20_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        let turns = w.turns.len();
        w.restart(&order);
        w.run(20_000);
        assert_eq!((w.says("db").as_str(), w.turns.len()), ("AllChildrenReady", turns), "{order:?}");
    }
}
