//! What was found below a workload, and for how long it explains it.

use std::time::Duration;

use readiness::{Assessment, Kind, Level, Limits, Reason, Text, Verdict};
use serde_json::{Value, json};
use watcher::plan::{Interest, Lens};
use watcher::reflector::{Refined, Reflector};

use crate::objects::{NOW, apply, owned, pod, uid};

/// A StatefulSet of three, so many of which are created, and ready.
fn set(version: u32, generation: u32, created: u32, ready: u32) -> Value {
    let mut set = pod(1, version, "True");
    set["metadata"]["generation"] = json!(generation);
    set["spec"] = json!({ "replicas": 3 });
    set["status"] = json!({ "observedGeneration": generation, "replicas": created, "readyReplicas": ready,
        "currentRevision": "a", "updateRevision": "a" });
    set
}

/// Refuses it pods, and shows it again like this; what it is then.
fn refused_and_then(reason: fn(Text) -> Reason, later: &Value) -> (Level, String) {
    let reflector = Reflector::new(|| ());
    let sets = Interest { judge: Kind::of("apps", "StatefulSet"), ..owned() };
    apply(&reflector, &sets, &set(5, 1, 2, 2));
    let stuck = Verdict { level: Level::Stuck, reason: reason(Text::new("no")) };
    let found = Refined { name: "Event".into(), assessment: Assessment::from(stuck) };
    reflector.refine(reflector.find(&uid(1)).unwrap(), vec![Some(found)]);
    apply(&reflector, &sets, later);
    let verdict = |row: &watcher::reflector::Row| {
        let verdict = row.assessment.at(NOW);
        (verdict.level, verdict.reason.to_string())
    };
    reflector.read(reflector.find(&uid(1)).unwrap(), verdict).unwrap()
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
fn what_was_found_through_one_policys_limits_is_not_told_through_anothers() {
    let lens = |seconds| Lens {
        limits: Limits { pending: Duration::from_secs(seconds), ..Limits::default() },
        rule: None,
        remembers: false,
    };
    let sets = |lenses| Interest { judge: Kind::of("apps", "StatefulSet"), lenses, ..owned() };
    let found = |level| {
        let verdict = Verdict { level, reason: Reason::Unschedulable(Text::new("no node")) };
        Some(Refined { name: "Pod a".into(), assessment: Assessment::from(verdict) })
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
        let two = sets(vec![lens(3), lens(3_600)]);
        apply(&reflector, &two, &set(5, 1, 3, 2));
        let id = reflector.find(&uid(1)).unwrap();
        reflector.refine(id, found);
        let told = || {
            let through = |row: &watcher::reflector::Row| {
                [0, 1].map(|lens| row.through(lens).at(NOW)).map(|v| (v.level, v.reason.to_string()))
            };
            reflector.read(id, through).unwrap()
        };
        let expected = expected.map(|(level, words)| (level, words.clone()));
        assert_eq!(told(), expected, "{what}");
        apply(&reflector, &two, &set(6, 1, 3, 2));
        assert_eq!(told(), expected, "{what}, and the object again");
        // Of another set of policies nothing is known before the next look.
        apply(&reflector, &sets(vec![lens(3_600)]), &set(7, 1, 3, 2));
        let left = reflector.read(id, |row| row.assessment.at(NOW).clone()).unwrap();
        assert_eq!((left.level, left.reason.to_string()), (Level::Progressing, none.clone()), "{what}");
    }
}
