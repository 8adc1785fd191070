//! Causes found below a workload, and their lifetime.

use std::time::Duration;

use readiness::{Assessment, BoundedText, Level, Reason, RuleKind, StuckLimits, Verdict};
use serde_json::{Value, json};
use watcher::plan::{AssessmentRule, ChildRule, Interest};
use watcher::reflector::{RefinedCause, Reflector};

use crate::objects::{NOW, PODS, apply, owned, pod, uid};

/// A StatefulSet of three replicas, with these numbers created and ready.
fn set(version: u32, generation: u32, created: u32, ready: u32) -> Value {
    let mut set = pod(1, version, "True");
    set["metadata"]["generation"] = json!(generation);
    set["spec"] = json!({ "replicas": 3 });
    set["status"] = json!({ "observedGeneration": generation, "replicas": created, "readyReplicas": ready, "updatedReplicas": created,
        "currentRevision": "a", "updateRevision": "a" });
    set
}

/// This was found below it, a moment ago.
fn refine(reflector: &Reflector, found: Vec<Option<RefinedCause>>) {
    let interest = reflector.interest(PODS).unwrap();
    reflector.refine(reflector.find_object(&uid(1)).unwrap(), &interest, found);
}

/// Refuses pods to the StatefulSet, shows it again in this state, and returns the result.
fn refused_and_then(reason: fn(BoundedText) -> Reason, later: &Value) -> (Level, String) {
    let reflector = Reflector::new(|| ());
    let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
    apply(&reflector, &sets, &set(5, 1, 2, 2));
    let stuck = Verdict::new(Level::Stuck, reason(BoundedText::new("no")));
    let found = RefinedCause { name: "Event".into(), assessment: Assessment::from(stuck) };
    refine(&reflector, vec![Some(found)]);
    apply(&reflector, &sets, later);
    let verdict = |row: &watcher::reflector::ObjectRow| {
        let verdict = row.assessment.verdict_at(NOW);
        (verdict.level, verdict.reason.to_string())
    };
    reflector.read_row(reflector.find_object(&uid(1)).unwrap(), verdict).unwrap()
}

#[test]
fn a_refusal_explains_a_workload_until_it_has_more_pods_or_another_spec() {
    for (what, later, expected) in [
        ("nothing new", set(6, 1, 2, 2), (Level::Stuck, "2 of 3 replicas created; Event no")),
        ("one is not ready", set(6, 1, 2, 1), (Level::Stuck, "2 of 3 replicas created; Event no")),
        ("one is lost", set(6, 1, 1, 1), (Level::Stuck, "1 of 3 replicas created; Event no")),
        ("one came", set(6, 1, 3, 2), (Level::Progressing, "2 of 3 replicas ready")),
        ("another spec", set(6, 2, 2, 2), (Level::Progressing, "2 of 3 replicas created")),
        ("all are ready", set(6, 1, 3, 3), (Level::Ready, "ready")),
    ] {
        let told = refused_and_then(Reason::ReplicaFailure, &later);
        assert_eq!(told, (expected.0, expected.1.to_owned()), "{what}");
    }
}

#[test]
fn the_trouble_of_a_pod_explains_it_until_the_next_look() {
    let told = refused_and_then(Reason::Unschedulable, &set(6, 1, 3, 2));
    assert_eq!(told, (Level::Stuck, "2 of 3 replicas ready; Event unschedulable: no".to_owned()));
}

#[test]
fn a_workload_is_stuck_from_when_it_is_so_by_itself_or_by_what_lies_below_it() {
    let hour = Duration::from_hours(1);
    let limits = StuckLimits { progress: hour, ..StuckLimits::default() };
    let judged_by = AssessmentRule { limits, rule: None, remembers_outcome: false };
    let sets = Interest {
        judge: RuleKind::from_group_kind("apps", "StatefulSet"),
        assessment_rules: vec![judged_by],
        ..owned()
    };
    let changed = json!([{ "manager": "kcm", "time": NOW.to_string(), "fieldsV1": { "f:status": {} } }]);
    for (minutes, expected) in [(20, NOW + Duration::from_mins(20)), (90, NOW + hour)] {
        let reflector = Reflector::new(|| ());
        let mut set = set(5, 1, 3, 2);
        set["metadata"]["managedFields"] = changed.clone();
        apply(&reflector, &sets, &set);
        let cause = || Reason::Unschedulable(BoundedText::new("no node"));
        let later = (NOW + Duration::from_mins(minutes), Verdict::new(Level::Stuck, cause()));
        let assessment =
            Assessment { verdict: Verdict::new(Level::Progressing, cause()), then: Some(Box::new(later)) };
        refine(&reflector, vec![Some(RefinedCause { name: "Pod a".into(), assessment })]);
        let id = reflector.find_object(&uid(1)).unwrap();
        let then = reflector.read_row(id, |row| row.assessment.then.clone()).unwrap().unwrap();
        assert_eq!(
            (then.0, then.1.level),
            (expected, Level::Stuck),
            "a pod that is stuck after {minutes} min"
        );
    }
}

#[test]
fn what_was_found_through_one_policys_limits_is_not_told_through_anothers() {
    let judged_by = |seconds| AssessmentRule {
        limits: StuckLimits { pending: Duration::from_secs(seconds), ..StuckLimits::default() },
        rule: None,
        remembers_outcome: false,
    };
    let sets = |lenses: Vec<AssessmentRule>| {
        let by = |rule_index: u8| ChildRule {
            group: rule_index,
            rule_index: rule_index.into(),
            ..owned().child[0].clone()
        };
        Interest {
            judge: RuleKind::from_group_kind("apps", "StatefulSet"),
            child: (0..lenses.len()).map(|at| by(u8::try_from(at).unwrap())).collect(),
            assessment_rules: lenses,
            ..owned()
        }
    };
    let found = |level| {
        let verdict = Verdict::new(level, Reason::Unschedulable(BoundedText::new("no node")));
        Some(RefinedCause { name: "Pod a".into(), assessment: Assessment::from(verdict) })
    };
    let (stuck, waits) = (found(Level::Stuck), found(Level::Progressing));
    let all = "2 of 3 replicas ready; Pod a unschedulable: no node".to_owned();
    let none = "2 of 3 replicas ready".to_owned();
    for (what, found, expected) in [
        ("the first", vec![stuck.clone(), waits.clone()], [(Level::Stuck, &all), (Level::Progressing, &all)]),
        ("the second", vec![waits, stuck.clone()], [(Level::Progressing, &all), (Level::Stuck, &all)]),
        ("the second alone", vec![None, stuck], [(Level::Progressing, &none), (Level::Stuck, &all)]),
    ] {
        let reflector = Reflector::new(|| ());
        let two = sets(vec![judged_by(3), judged_by(3_600)]);
        apply(&reflector, &two, &set(5, 1, 3, 2));
        let id = reflector.find_object(&uid(1)).unwrap();
        refine(&reflector, found);
        let told = || {
            let through = |row: &watcher::reflector::ObjectRow| {
                [0, 1]
                    .map(|rule_index| row.assessment_for(rule_index).verdict_at(NOW))
                    .map(|v| (v.level, v.reason.to_string()))
            };
            reflector.read_row(id, through).unwrap()
        };
        let expected = expected.map(|(level, words)| (level, words.clone()));
        assert_eq!(told(), expected, "{what}");
        apply(&reflector, &two, &set(6, 1, 3, 2));
        assert_eq!(told(), expected, "{what}, and the object again");
        // Under another set of policies nothing is known before the next resync.
        apply(&reflector, &sets(vec![judged_by(3_600)]), &set(7, 1, 3, 2));
        let left = reflector.read_row(id, |row| row.assessment.verdict_at(NOW).clone()).unwrap();
        assert_eq!((left.level, left.reason.to_string()), (Level::Progressing, none.clone()), "{what}");
    }
}
