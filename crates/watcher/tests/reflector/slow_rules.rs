//! Rules that exceed their limits, and what that costs the others.

use std::sync::Arc;
use std::time::Duration;

use readiness::{Level, StuckLimits, Time};
use rules::{CompiledRule, RuleDefinition};
use serde_json::{Value, json};
use watcher::ParentObject;
use watcher::ReflectorObject;
use watcher::plan::{AssessmentRule, Interest, RuleSharing, UserRule};
use watcher::reflector::{Reflector, RuleSuspension};

use crate::objects::{NOW, PODS, judge_by, owned, pod, uid};

/// Never ends where the object says so.
const SOURCE: &str =
    "while obj.spec.bomb do end return {status = 'Healthy', message = 'as ' .. obj.metadata.name}";

fn judged_by_script(source: &str) -> Interest {
    judged_by(source, RuleSharing::Kind)
}

fn judged_by(source: &str, shared_by: RuleSharing) -> Interest {
    let rule = CompiledRule::compile(&RuleDefinition::Lua { name: "ready.lua", source }).unwrap();
    let of = ("v1".into(), "Pod".into());
    let rule = UserRule { rule: Arc::new(rule), source: source.into(), shared_by, of };
    let judged_by =
        AssessmentRule { limits: StuckLimits::default(), rule: Some(rule), remembers_outcome: false };
    Interest { assessment_rules: vec![judged_by], ..owned() }
}

fn at(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

/// A pod with or without the bomb.
fn armed(n: u32, version: u32, bomb: bool) -> Value {
    let mut pod = pod(n, version, "True");
    pod["spec"]["bomb"] = json!(bomb);
    pod
}

/// Shows an object at a time, and returns level, reason and what it cost in evaluations.
fn show(reflector: &Reflector, object: &Value, now: Time) -> (Level, String, u64) {
    reflector.set_now(now);
    let before = reflector.rule_work().usage().0;
    let name = object["metadata"]["uid"].as_str().unwrap().to_owned();
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    reflector.apply_object(PODS, object.as_child(), object.raw_text());
    let id = reflector.find_object(&name).unwrap();
    let verdict = reflector.read_row(id, |row| row.assessment.verdict_at(now).clone()).unwrap();
    (verdict.level, verdict.reason.as_token().to_owned(), reflector.rule_work().usage().0 - before)
}

fn says(level: Level, token: &str, evaluations: u64) -> (Level, String, u64) {
    (level, token.to_owned(), evaluations)
}

#[test]
fn an_object_made_to_exceed_the_limits_is_left_out_for_a_while_and_costs_nobody_else() {
    let reflector = Reflector::new(|| ());
    judge_by(&reflector, &judged_by_script(SOURCE));
    for version in 1..=2 {
        assert_eq!(show(&reflector, &armed(1, version, true), at(0)), says(Level::Unknown, "RuleLimit", 1));
    }
    for version in 3..100 {
        let costs = u64::from(version == 3);
        assert_eq!(
            show(&reflector, &armed(1, version, true), at(0)),
            says(Level::Unknown, "RuleTooSlow", costs)
        );
    }
    assert_eq!(
        show(&reflector, &armed(2, 1, false), at(0)),
        says(Level::Ready, "Healthy", 1),
        "its neighbour"
    );
    let [(rule, suspension)] = &reflector.rule_work().suspended_rules(PODS)[..] else {
        panic!("one rule is suspended")
    };
    assert_eq!(
        (&*rule.source, *suspension),
        (SOURCE, RuleSuspension { objects: 1, ..RuleSuspension::default() })
    );
    // It is read again by the pass, and by then it is mended.
    assert_eq!(show(&reflector, &armed(1, 100, false), at(9)), says(Level::Unknown, "RuleTooSlow", 0));
    assert_eq!(show(&reflector, &armed(1, 100, false), at(10)), says(Level::Ready, "Healthy", 1));
    assert!(reflector.rule_work().suspended_rules(PODS).is_empty());
}

#[test]
fn a_rule_that_never_ends_is_taken_out_until_another_takes_its_place() {
    let reflector = Reflector::new(|| ());
    judge_by(&reflector, &judged_by_script(SOURCE));
    let evaluated: u64 = (1..=300).map(|n| show(&reflector, &armed(n, 1, true), at(0)).2).sum();
    assert_eq!(evaluated, 100);
    assert!(reflector.rule_work().suspended_rules(PODS)[0].1.entirely);
    // A plan that leaves the rule as it is changes nothing, also where the kind's task was restarted meanwhile.
    reflector.remove_interest(PODS);
    judge_by(&reflector, &judged_by_script(SOURCE));
    assert_eq!(show(&reflector, &armed(301, 1, false), at(9)), says(Level::Unknown, "RuleTooSlow", 0));
    judge_by(&reflector, &judged_by_script("return {status = 'Healthy'}"));
    assert_eq!(show(&reflector, &armed(301, 1, false), at(9)), says(Level::Ready, "Ready", 1));
    assert!(reflector.rule_work().suspended_rules(PODS).is_empty());
    reflector.forget_kind(PODS);
    assert!(reflector.find_object(&uid(301)).is_none_or(|id| reflector.read_row(id, |_| ()).is_none()));
}

#[test]
fn what_a_rule_costs_in_one_namespace_is_felt_in_no_other_where_groups_have_brought_it() {
    let in_namespace = |namespace: &str, n, bomb| {
        let mut pod = armed(n, 1, bomb);
        pod["metadata"]["namespace"] = json!(namespace);
        pod
    };
    for (shared_by, felt) in [
        (RuleSharing::Namespace, says(Level::Ready, "Healthy", 1)),
        (RuleSharing::Kind, says(Level::Unknown, "RuleTooSlow", 0)),
    ] {
        let reflector = Reflector::new(|| ());
        judge_by(&reflector, &judged_by(SOURCE, shared_by));
        let evaluated = (1..=300).map(|n| show(&reflector, &in_namespace("mallory", n, true), at(0)).2);
        assert_eq!(evaluated.sum::<u64>(), 100);
        let there = show(&reflector, &in_namespace("mallory", 301, false), at(0));
        assert_eq!(there, says(Level::Unknown, "RuleTooSlow", 0));
        assert_eq!(show(&reflector, &in_namespace("shop", 302, false), at(0)), felt);
    }
}
