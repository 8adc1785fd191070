//! What waits for custom rules: it is bounded, rules take turns, and what is gone is not evaluated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aggregator::PolicyId;
use readiness::Level;
use readiness::rollup::ChildWeight;
use serde_json::json;
use watcher::plan::{ChildRule, Interest};
use watcher::reflector::{Reflector, RuleWork};

use crate::beside::{
    READY, UNJUDGED, at, by_phase, evaluate_all, reflector, saying, seen, show, user_rule, verdict,
};
use crate::objects::{NOW, PODS, judge_by, owned, uid};

/// Whether a pod is read live within half a minute, because a rule is to be evaluated on it again.
fn is_read_again(reflector: &Reflector, n: u32) -> bool {
    let id = reflector.find_object(&uid(n)).unwrap();
    reflector.read_row(id, |row| row.is_reevaluation_due(at(36))).unwrap()
}

#[test]
fn a_list_is_judged_when_everything_is_that_began_to_wait_before_its_end() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    let work = || reflector.rule_work();
    assert!(work().is_done_before(PODS, work().mark()));
    for n in 1..=3 {
        show(&reflector, &saying(n, 1, "Healthy"));
    }
    let mark = work().mark();
    show(&reflector, &saying(4, 1, "Healthy"));
    show(&reflector, &saying(1, 2, "Healthy"));
    for left in [2, 1, 0] {
        let taken = work().take().unwrap();
        assert!(!work().is_done_before(PODS, mark), "the last one is being evaluated");
        work().evaluate(taken);
        assert_eq!(work().is_done_before(PODS, mark), left == 0);
    }
    assert_eq!(work().waiting().0, 1);
}

/// Judges by the built-in rule for the first policy, and by each of these for the next ones.
fn beside_each_other(sources: &[&str]) -> Interest {
    let mut interest = owned();
    for (at, source) in (1..).zip(sources) {
        interest.assessment_rules.push(user_rule(source));
        let rule =
            ChildRule { policy: PolicyId(100 + u32::from(at)), rule_index: at, ..interest.child[0].clone() };
        interest.child.push(rule);
    }
    interest
}

fn weights(reflector: &Reflector, n: u32) -> Vec<ChildWeight> {
    let id = reflector.find_object(&uid(n)).unwrap();
    reflector.with_view(id, NOW, |view| view.unwrap().weights.to_vec())
}

#[test]
fn a_rule_that_is_busy_keeps_no_other_policy_waiting() {
    let reflector = reflector();
    let (one, other) = ("return {status = 'Healthy'}", "return {status = 'Degraded'}");
    judge_by(&reflector, &beside_each_other(&[one, other]));
    for n in 1..=100 {
        show(&reflector, &saying(n, 1, "Healthy"));
        assert_eq!(weights(&reflector, n), [READY, UNJUDGED, UNJUDGED], "the built-in rule waits for nobody");
    }
    // Somebody evaluates the first rule for as long as the rest takes.
    let busy = reflector.rule_work().take().unwrap();
    assert_eq!(evaluate_all(&reflector), 100);
    for n in 1..=100 {
        assert_eq!(weights(&reflector, n), [READY, UNJUDGED, ChildWeight::of(Level::Failed)]);
    }
    reflector.rule_work().evaluate(busy);
    assert_eq!(evaluate_all(&reflector), 99);
}

#[test]
fn rules_take_turns() {
    let reflector = reflector();
    judge_by(
        &reflector,
        &beside_each_other(&["return {status = 'Healthy'}", "return {status = 'Degraded'}"]),
    );
    for n in 1..=10 {
        show(&reflector, &saying(n, 1, "Healthy"));
    }
    for n in 1..=10 {
        for _ in 0..2 {
            let next = reflector.rule_work().take().unwrap();
            reflector.rule_work().evaluate(next);
        }
        assert_eq!(weights(&reflector, n), [READY, READY, ChildWeight::of(Level::Failed)], "{n}");
    }
}

#[test]
fn what_waits_is_bounded_and_what_finds_no_room_is_unknown_until_it_is_read_again() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    let large = |n: u32, version: u32| {
        let mut object = saying(n, version, "Healthy");
        object["metadata"]["annotations"] = json!({ "blob": "x".repeat(1 << 20) });
        object
    };
    let has_room = || reflector.rule_work().has_room(PODS);
    assert!(has_room());
    for n in 1..=64 {
        show(&reflector, &large(n, 1));
    }
    let (objects, bytes) = reflector.rule_work().waiting();
    assert!(bytes <= 17 << 20 && (10..=16).contains(&objects), "{objects} objects of {bytes} bytes");
    assert!(!has_room(), "whoever lists objects waits");
    reflector.set_now(at(5));
    assert!(has_room(), "but not for long: what does not depend on the rule goes on");
    assert_eq!(verdict(&reflector, 1, at(5)).1, UNJUDGED);
    assert_eq!(verdict(&reflector, 64, at(5)).1, ChildWeight::of(Level::Unknown));
    assert!(is_read_again(&reflector, 64) && !is_read_again(&reflector, 1), "nothing else brings it");
    // An object that waits is not held twice.
    for version in 2..=100 {
        show(&reflector, &large(1, version));
    }
    assert_eq!(reflector.rule_work().waiting().0, objects);
    assert_eq!(evaluate_all(&reflector), objects);
    assert_eq!(reflector.rule_work().waiting(), (0, 0));
    show(&reflector, &large(64, 1));
    assert_eq!(evaluate_all(&reflector), 1);
    assert_eq!(verdict(&reflector, 64, at(5)).1, READY);
    assert!(!is_read_again(&reflector, 64));
}

#[test]
fn an_object_that_waits_and_grows_beyond_the_room_is_unknown_until_it_is_read_again() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    let sized = |n: u32, version: u32, kilobytes: usize| {
        let mut object = saying(n, version, "Healthy");
        object["metadata"]["annotations"] = json!({ "blob": "x".repeat(kilobytes << 10) });
        object
    };
    for n in 1..=100 {
        show(&reflector, &sized(n, 1, 1));
    }
    for n in 1..=100 {
        show(&reflector, &sized(n, 2, 1 << 10));
    }
    let (objects, bytes) = reflector.rule_work().waiting();
    assert!(bytes <= 17 << 20 && objects == 100, "{objects} objects of {bytes} bytes");
    assert_eq!(verdict(&reflector, 1, NOW).1, UNJUDGED);
    assert_eq!(verdict(&reflector, 100, NOW).1, ChildWeight::of(Level::Unknown));
    evaluate_all(&reflector);
    assert_eq!(verdict(&reflector, 1, NOW), (seen(2), READY));
    assert_eq!(verdict(&reflector, 100, NOW).1, ChildWeight::of(Level::Unknown), "its older version is none");
    assert!(is_read_again(&reflector, 100));
    show(&reflector, &sized(100, 2, 1 << 10));
    evaluate_all(&reflector);
    assert_eq!(verdict(&reflector, 100, NOW), (seen(2), READY));
}

#[test]
fn what_is_gone_or_judged_otherwise_by_now_is_not_evaluated() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    for n in 1..=3 {
        show(&reflector, &saying(n, 1, "Healthy"));
    }
    reflector.delete_object(&uid(1), 2);
    let mut leaving = saying(2, 2, "Healthy");
    leaving["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    show(&reflector, &leaving);
    evaluate_all(&reflector);
    assert_eq!(reflector.rule_work().usage().0, 1);
    assert_eq!(verdict(&reflector, 2, NOW).1, ChildWeight::of(Level::Terminating));
    assert_eq!(verdict(&reflector, 3, NOW).1, READY);
    show(&reflector, &saying(3, 2, "Degraded"));
    let taken = reflector.rule_work().take().unwrap();
    reflector.remove_interest(PODS);
    reflector.rule_work().evaluate(taken);
    assert_eq!((evaluate_all(&reflector), reflector.rule_work().usage().0), (0, 1));
    assert!(reflector.rule_work().is_done_before(PODS, reflector.rule_work().mark()));
}

#[test]
fn a_rule_that_is_evaluated_beside_is_taken_out_when_it_overruns() {
    let reflector = reflector();
    let never_ends = Interest { assessment_rules: vec![user_rule("while true do end")], ..owned() };
    judge_by(&reflector, &never_ends);
    for n in 1..=300 {
        show(&reflector, &saying(n, 1, "Healthy"));
    }
    evaluate_all(&reflector);
    assert_eq!(reflector.rule_work().usage().0, 100);
    assert!(reflector.rule_work().suspended_rules(PODS)[0].1.entirely);
    show(&reflector, &saying(301, 1, "Healthy"));
    assert_eq!(evaluate_all(&reflector), 0, "nor does anything wait for it meanwhile");
    assert_eq!(verdict(&reflector, 301, NOW).1, ChildWeight::of(Level::Unknown));
}

#[test]
fn whoever_evaluates_is_woken() {
    let reflector = Reflector::new(|| ());
    let woken = Arc::new(AtomicUsize::new(0));
    let wakes = woken.clone();
    reflector.rule_work().set_waker(move || _ = wakes.fetch_add(1, Ordering::Relaxed));
    judge_by(&reflector, &by_phase());
    show(&reflector, &saying(1, 1, "Healthy"));
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert!(RuleWork::INTERIM_LIMIT < Duration::from_mins(2), "sooner than a kind is blind");
}
