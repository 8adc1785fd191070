//! Custom rules that are evaluated beside the ingest of objects: what holds of an object until its rule has, and from then on.

use std::sync::Arc;
use std::time::Duration;

use readiness::rollup::ChildWeight;
use readiness::{Level, StuckLimits, Time};
use rules::{CompiledRule, RuleDefinition};
use serde_json::{Value, json};
use watcher::plan::{AssessmentRule, ChildRule, Interest, RuleSharing, UserRule};
use watcher::reflector::{ApplyOutcome, Reflector, RuleSuspension};
use watcher::{ParentObject, ReflectorObject};

use crate::objects::{NOW, PODS, apply_listed, judge_by, owned, pod, uid};

pub(crate) const READY: ChildWeight = ChildWeight::of(Level::Ready);
pub(crate) const UNJUDGED: ChildWeight = READY.unjudged();

pub(crate) fn user_rule(source: &str) -> AssessmentRule {
    let rule = CompiledRule::compile(&RuleDefinition::Lua { name: "ready.lua", source }).unwrap();
    let of = ("v1".into(), "Pod".into());
    let rule = UserRule { rule: Arc::new(rule), source: source.into(), shared_by: RuleSharing::Kind, of };
    AssessmentRule { limits: StuckLimits::default(), rule: Some(rule), remembers_outcome: false }
}

/// Says what the object says.
pub(crate) fn by_phase() -> Interest {
    Interest {
        assessment_rules: vec![user_rule(
            "return {status = obj.spec.says, message = 'as version ' .. obj.spec.mark}",
        )],
        ..owned()
    }
}

/// A reflector that evaluates nothing by itself.
pub(crate) fn reflector() -> Reflector {
    let reflector = Reflector::new(|| ());
    reflector.rule_work().set_waker(|| ());
    reflector.set_now(NOW);
    reflector
}

pub(crate) fn at(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

/// A number in letters: digits of a rule's text are left out, because they may tick.
fn letters(number: u32) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

pub(crate) fn seen(version: u32) -> String {
    format!("as version {}", letters(version))
}

pub(crate) fn saying(n: u32, version: u32, says: &str) -> Value {
    let mut pod = pod(n, version, "True");
    pod["spec"]["says"] = json!(says);
    pod["spec"]["mark"] = json!(letters(version));
    pod
}

pub(crate) fn show(reflector: &Reflector, object: &Value) -> ApplyOutcome {
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    reflector.apply_object(PODS, object.as_child(), object.raw_text())
}

/// Verdict of a pod as its row has it, and its weight.
pub(crate) fn verdict(reflector: &Reflector, n: u32, now: Time) -> (String, ChildWeight) {
    let id = reflector.find_object(&uid(n)).unwrap();
    let verdict = reflector.read_row(id, |row| row.assessment.verdict_at(now).clone()).unwrap();
    let weight = reflector.with_view(id, now, |view| view.unwrap().weights[0]);
    (verdict.reason.to_string(), weight)
}

/// Evaluates everything that waits; returns how much it was.
pub(crate) fn evaluate_all(reflector: &Reflector) -> usize {
    let mut evaluated = 0;
    while let Some(judgement) = reflector.rule_work().take() {
        reflector.rule_work().evaluate(judgement);
        evaluated += 1;
    }
    evaluated
}

#[test]
fn an_object_awaits_its_rule_and_the_newest_version_alone_is_judged() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    assert_eq!(show(&reflector, &saying(1, 1, "Healthy")), ApplyOutcome::Moved(0));
    assert_eq!(verdict(&reflector, 1, NOW), ("its rule has not evaluated it yet".to_owned(), UNJUDGED));
    for version in 2..100 {
        show(&reflector, &saying(1, version, if version % 2 == 0 { "Degraded" } else { "Healthy" }));
    }
    assert_eq!(reflector.rule_work().waiting().0, 1);
    assert_eq!(evaluate_all(&reflector), 1);
    assert_eq!(reflector.rule_work().usage().0, 1);
    assert_eq!(verdict(&reflector, 1, NOW), (seen(99), READY));
    assert_eq!(reflector.rule_work().waiting(), (0, 0));
}

#[test]
fn what_was_known_stands_for_a_newer_version_and_not_for_long() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    show(&reflector, &saying(1, 1, "Healthy"));
    show(&reflector, &saying(2, 1, "Degraded"));
    evaluate_all(&reflector);
    reflector.take_dirty(10);
    show(&reflector, &saying(1, 2, "Degraded"));
    show(&reflector, &saying(2, 2, "Healthy"));
    assert_eq!(reflector.take_dirty(10).len(), 2, "the engine is told that they are unjudged");
    assert_eq!(verdict(&reflector, 1, NOW), (seen(1), UNJUDGED));
    assert_eq!(verdict(&reflector, 2, NOW), (seen(1), ChildWeight::of(Level::Failed)));
    let overdue = "its rule is busy with other objects and has not evaluated it in time".to_owned();
    // Versions that come later do not prolong that.
    reflector.set_now(at(29));
    show(&reflector, &saying(1, 3, "Degraded"));
    let id = reflector.find_object(&uid(1)).unwrap();
    assert_eq!(reflector.with_view(id, at(29), |view| view.unwrap().recheck), Some(at(30)));
    for n in [1, 2] {
        assert_eq!(verdict(&reflector, n, at(30)), (overdue.clone(), ChildWeight::of(Level::Unknown)));
    }
    reflector.set_now(at(30));
    let [(_, suspension)] = &reflector.rule_work().suspended_rules(PODS)[..] else { panic!("one rule") };
    assert_eq!(*suspension, RuleSuspension { late: 2, ..RuleSuspension::default() });
    assert_eq!(evaluate_all(&reflector), 2);
    assert_eq!(verdict(&reflector, 1, at(31)), (seen(3), ChildWeight::of(Level::Failed)));
    assert_eq!(verdict(&reflector, 2, at(31)), (seen(2), READY));
    assert!(reflector.rule_work().suspended_rules(PODS).is_empty());
}

#[test]
fn what_a_rule_says_of_an_older_version_stands_for_the_newer_one_from_when_it_was_taken() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    show(&reflector, &saying(1, 1, "Healthy"));
    let mut version = 1;
    // It changes again each time that it is evaluated.
    for second in (0..300).step_by(10) {
        reflector.set_now(at(second));
        let taken = reflector.rule_work().take().unwrap();
        version += 1;
        show(&reflector, &saying(1, version, "Healthy"));
        reflector.rule_work().evaluate(taken);
        assert_eq!(verdict(&reflector, 1, at(second + 29)), (seen(version - 1), UNJUDGED));
        assert_eq!(verdict(&reflector, 1, at(second + 30)).1, ChildWeight::of(Level::Unknown));
    }
    evaluate_all(&reflector);
    assert_eq!(verdict(&reflector, 1, at(600)), (seen(version), READY));
}

#[test]
fn an_object_that_is_read_again_keeps_its_verdict_and_is_evaluated_again() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    for times in 1..=3 {
        let pass = reflector.begin_list(PODS, None);
        let listed: ParentObject = serde_json::from_str(&saying(1, 1, "Healthy").to_string()).unwrap();
        let told = reflector.apply_listed(&pass, listed.as_child(), listed.raw_text());
        assert_eq!(told == ApplyOutcome::Same, times > 1);
        let (known, until) = if times == 1 { (UNJUDGED, at(29)) } else { (READY, at(3_600)) };
        assert_eq!(verdict(&reflector, 1, until).1, known);
        assert_eq!(evaluate_all(&reflector), 1);
        reflector.date_unready(reflector.find_object(&uid(1)).unwrap(), NOW);
        assert_eq!(verdict(&reflector, 1, at(3_600)), (seen(1), READY));
        reflector.finish_list(&pass);
    }
}

#[test]
fn what_another_rule_said_of_the_same_version_stands_no_longer_than_that_of_another_version() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    show(&reflector, &saying(1, 1, "Healthy"));
    evaluate_all(&reflector);
    let changed = Interest { assessment_rules: vec![user_rule("return {status = 'Degraded'}")], ..owned() };
    judge_by(&reflector, &changed);
    let pass = reflector.begin_list(PODS, None);
    let listed: ParentObject = serde_json::from_str(&saying(1, 1, "Healthy").to_string()).unwrap();
    reflector.apply_listed(&pass, listed.as_child(), listed.raw_text());
    assert_eq!(verdict(&reflector, 1, NOW).1, UNJUDGED);
    assert_eq!(verdict(&reflector, 1, at(30)).1, ChildWeight::of(Level::Unknown));
    evaluate_all(&reflector);
    assert_eq!(verdict(&reflector, 1, NOW).1, ChildWeight::of(Level::Failed));
}

#[test]
fn what_a_rule_says_by_the_clock_stands_until_it_is_evaluated_again_or_for_two_minutes() {
    let reflector = reflector();
    let by_clock =
        "if os.time() < 1800000040 then return {status = 'Healthy'} end return {status = 'Degraded'}";
    judge_by(&reflector, &Interest { assessment_rules: vec![user_rule(by_clock)], ..owned() });
    let pass = reflector.begin_list(PODS, None);
    apply_listed(&reflector, &pass, &saying(1, 1, ""));
    reflector.finish_list(&pass);
    evaluate_all(&reflector);
    let id = reflector.find_object(&uid(1)).unwrap();
    let is_due = |now: Time| reflector.read_row(id, |row| row.is_reevaluation_due(now)).unwrap();
    assert_eq!([at(29), at(30), at(40), at(200)].map(is_due), [false, true, true, true]);
    assert_eq!(verdict(&reflector, 1, at(149)).1, READY);
    assert_eq!(verdict(&reflector, 1, at(150)).1, ChildWeight::of(Level::Unknown));
    for (second, weight) in [(31, READY), (61, ChildWeight::of(Level::Failed))] {
        reflector.set_now(at(second));
        assert_eq!(show(&reflector, &saying(1, 1, "")), ApplyOutcome::Same);
        assert!(is_due(at(second)), "a watch that says it again brings nothing new");
        let live: ParentObject = serde_json::from_str(&saying(1, 1, "").to_string()).unwrap();
        let (read, _) = reflector.apply_live(PODS, reflector.start_read(), live.as_child(), live.raw_text());
        assert_eq!(read, ApplyOutcome::Same);
        assert_eq!(verdict(&reflector, 1, at(second)).1, READY, "what was known stands while it waits");
        evaluate_all(&reflector);
        assert_eq!(verdict(&reflector, 1, at(second)).1, weight);
        assert!(!is_due(at(second)) && is_due(at(second + 29)));
    }
    // One that ended does not come back while its object waits for the rule.
    reflector.set_now(at(300));
    show(&reflector, &saying(1, 2, ""));
    assert_eq!(verdict(&reflector, 1, at(300)).1, ChildWeight::of(Level::Unknown));
}

#[test]
fn what_a_restored_server_lists_is_judged_though_a_higher_version_waits() {
    let reflector = reflector();
    judge_by(&reflector, &by_phase());
    for n in 1..=2 {
        show(&reflector, &saying(n, 50, "Healthy"));
    }
    reflector.delete_object(&uid(2), 51);
    let pass = reflector.begin_list(PODS, None);
    for n in 1..=2 {
        apply_listed(&reflector, &pass, &saying(n, 30, "Degraded"));
    }
    reflector.finish_list(&pass);
    evaluate_all(&reflector);
    for n in 1..=2 {
        assert_eq!(verdict(&reflector, n, NOW), (seen(30), ChildWeight::of(Level::Failed)), "{n}");
    }
}

#[test]
fn an_object_is_judged_by_the_rules_by_which_it_counts_and_by_no_others() {
    // Of forty rules it counts by the first alone, or by the last one, too.
    let rules =
        (0..40).map(|n| user_rule(&format!("return {{status = 'Healthy', message = 'by {}'}}", letters(n))));
    let mut interest = Interest { assessment_rules: rules.collect(), ..owned() };
    let bytes = |interest: &Interest| {
        let reflector = Reflector::new(|| ());
        judge_by(&reflector, interest);
        show(&reflector, &pod(1, 5, "True"));
        let id = reflector.find_object(&uid(1)).unwrap();
        let said = reflector.read_row(id, |row| {
            [0, 20, 39].map(|rule_index| row.assessment_for(rule_index).verdict.reason.to_string())
        });
        (reflector.held_bytes(), said.unwrap())
    };
    let (few, said) = bytes(&interest);
    let [first, last] = [0, 39].map(|n| format!("by {}", letters(n)));
    assert_eq!(said, [&*first, &*first, &*first]);
    interest.child.push(ChildRule { group: 1, rule_index: 39, ..interest.child[0].clone() });
    let (many, said) = bytes(&interest);
    assert_eq!(said, [&*first, "exists; its kind has no readiness", &*last]);
    assert!(few < many);
}
