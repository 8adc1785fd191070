//! Rollouts whose delays are known.

use std::time::Duration;

use readiness::Time;
use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Time {
    Time(1_767_225_600_000 + second * 1_000)
}

fn text(second: i64) -> String {
    at(second).to_string()
}

fn object(name: &str, began: i64, ended: Option<i64>, children: Vec<RolloutObject>) -> RolloutObject {
    let own_cause = match name.split(' ').next() {
        Some("Database") => WaitCause::Operator,
        Some("Job") => WaitCause::Job,
        _ => WaitCause::Controller,
    };
    RolloutObject {
        object: name.to_owned(),
        own_cause,
        began: Some(at(began)),
        ended: ended.map(at),
        steps: Vec::new(),
        children,
    }
}

/// The parts as object, cause, detail and seconds.
fn told(parts: &[PathPart]) -> Vec<(&str, WaitCause, &str, i64)> {
    parts.iter().map(|p| (&*p.object, p.cause, &*p.detail, (p.to.0 - p.from.0) / 1_000)).collect()
}

fn pod(created: i64, scheduled: i64, started: i64, ready: i64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "db-0", "creationTimestamp": text(created) },
        "status": {
            "conditions": [
                { "type": "PodScheduled", "status": "True", "lastTransitionTime": text(scheduled) },
                { "type": "Ready", "status": "True", "lastTransitionTime": text(ready) },
            ],
            "containerStatuses": [{ "name": "db", "state": { "running": { "startedAt": text(started) } } }],
        },
    })
}

fn pull(begin: i64, end: i64) -> Vec<Value> {
    let about = json!({ "fieldPath": "spec.containers{db}" });
    vec![
        json!({ "reason": "Pulling", "involvedObject": about, "firstTimestamp": text(begin), "message": "Pulling image \"r/db:2\"" }),
        json!({ "reason": "Pulled", "involvedObject": about, "firstTimestamp": text(end),
            "message": "Successfully pulled image \"r/db:2\" in 5m3s (5m3s including waiting)" }),
        json!({ "reason": "Pulled", "involvedObject": { "fieldPath": "spec.containers{other}" }, "firstTimestamp": text(end),
            "message": "Container image \"r/other\" already present on machine" }),
    ]
}

#[test]
fn each_second_of_a_rollout_is_somebodys() {
    // A migration, then, three seconds later, a StatefulSet whose pod waits for a node, an image and a probe.
    let pod = RolloutObject::from_object(&pod(166, 170, 480, 540), &pull(172, 475), true, None);
    let set = object("StatefulSet db", 165, None, vec![pod]);
    let job = object("Job migrate", 2, Some(162), vec![]);
    let root = object("Database orders", 0, None, vec![set, job]);
    let parts = critical_path(&root, at(0), at(552));
    assert_eq!(
        told(&parts),
        [
            ("Database orders", WaitCause::Operator, "until it had Job migrate", 2),
            ("Job migrate", WaitCause::Job, "", 160),
            ("Database orders", WaitCause::Operator, "until it had StatefulSet db", 3),
            ("StatefulSet db", WaitCause::Controller, "until it had Pod db-0", 1),
            ("Pod db-0", WaitCause::Scheduling, "", 4),
            ("Pod db-0", WaitCause::Kubelet, "", 2),
            ("Pod db-0", WaitCause::ImagePull, "r/db:2", 303),
            ("Pod db-0", WaitCause::Kubelet, "", 5),
            ("Pod db-0", WaitCause::Starting, "", 60),
            ("Database orders", WaitCause::Settling, "", 12),
        ]
    );
}

#[test]
fn a_rollout_that_goes_on_is_explained_until_now() {
    let mut waiting = pod(10, 12, 0, 0);
    waiting["status"]["conditions"].as_array_mut().unwrap().pop();
    waiting["status"]["containerStatuses"] = json!([{ "name": "db", "state": { "waiting": {} } }]);
    let pulling: Vec<Value> = pull(15, 0).into_iter().take(1).collect();
    let pod = RolloutObject::from_object(&waiting, &pulling, false, Some(at(100)));
    let root = RolloutObject { ended: Some(at(100)), ..object("Database orders", 0, None, vec![pod]) };
    assert_eq!(
        told(&critical_path(&root, at(0), at(100))),
        [
            ("Database orders", WaitCause::Operator, "until it had Pod db-0", 10),
            ("Pod db-0", WaitCause::Scheduling, "", 2),
            ("Pod db-0", WaitCause::Kubelet, "", 3),
            ("Pod db-0", WaitCause::ImagePull, "r/db:2", 85),
        ]
    );
}

#[test]
fn what_was_ready_before_and_what_became_so_later_explains_nothing() {
    let old = object("Deployment cache", -500, Some(-400), vec![]);
    let later = object("Deployment extra", 5, Some(90), vec![]);
    let web = object("Deployment web", -500, Some(30), vec![]);
    let root = object("Database orders", -600, None, vec![old, later, web]);
    assert_eq!(
        told(&critical_path(&root, at(0), at(40))),
        [("Deployment web", WaitCause::Controller, "", 30), ("Database orders", WaitCause::Settling, "", 10)]
    );
}

#[test]
fn where_nothing_tells_more_it_is_the_parents_own_time() {
    let root = object("Database orders", 0, None, vec![object("Deployment web", 1, None, vec![])]);
    assert_eq!(told(&critical_path(&root, at(0), at(7))), [("Database orders", WaitCause::Operator, "", 7)]);
    assert!(critical_path(&root, at(7), at(7)).is_empty() && critical_path(&root, at(8), at(7)).is_empty());
}

#[test]
fn a_generation_begins_with_the_last_write_of_its_spec() {
    let wrote = |manager: &str, second: i64, fields: Value| json!({ "manager": manager, "operation": "Update", "time": text(second), "fieldsV1": fields });
    let mut object = json!({ "metadata": { "creationTimestamp": text(0), "generation": 1, "managedFields": [
        wrote("kubectl", 40, json!({ "f:spec": { "f:size": {} } })),
        wrote("kopf", 60, json!({ "f:metadata": { "f:annotations": {} } })),
    ] } });
    assert_eq!(spec_changed_at(&object), Some(at(0)));
    object["metadata"]["generation"] = json!(2);
    assert_eq!(spec_changed_at(&object), Some(at(40)));
    object["status"] = json!({ "conditions": [
        { "type": "Ready", "status": "True", "observedGeneration": 1, "lastTransitionTime": text(50) } ] });
    assert_eq!(told_ready_at(&object, "Ready"), None, "that was the generation before");
    object["status"]["conditions"][0]["observedGeneration"] = json!(2);
    assert_eq!((told_ready_at(&object, "Ready"), told_ready_at(&object, "Other")), (Some(at(50)), None));
}

#[test]
fn a_group_begins_with_the_newest_change_of_a_member_and_not_with_what_a_controller_makes_of_one() {
    let member = |created: i64, generation: i64, spec_at: i64, controller: Option<&str>| {
        let owners: Vec<Value> =
            controller.iter().map(|name| json!({ "name": name, "controller": true })).collect();
        json!({ "metadata": { "creationTimestamp": text(created), "generation": generation, "ownerReferences": owners,
            "managedFields": [{ "manager": "helm", "operation": "Apply", "time": text(spec_at),
                "fieldsV1": { "f:spec": { "f:replicas": {} } } }] } })
    };
    let group = member(0, 1, 0, None);
    let upgraded = [member(10, 1, 10, None), member(10, 2, 500, None), member(700, 1, 700, Some("web-5d"))];
    assert_eq!(members_changed_at(&group, &upgraded), Some(at(500)));
    assert_eq!(members_changed_at(&group, &[]), Some(at(0)));
}

#[test]
fn what_turned_after_a_rollout_is_not_its_end() {
    const DAY: i64 = 86_400;
    let deployment = object("Deployment web", 5, Some(60), vec![]);
    let root = object("Database orders", 0, None, vec![deployment]);
    let event = |second: i64, reason: &str| json!({ "reportingComponent": "rollcall.dev/controller", "reason": reason, "eventTime": text(second) });
    let find = |told: i64, events: &[Value], damping: u64| {
        let damping = RolloutDamping(Duration::from_secs(damping));
        let end = RolloutEnd::find(&root, (at(0), at(told)), events, damping);
        (end.at, end.told_later, end.is_first_known)
    };
    assert_eq!(find(66, &[], 6), (at(66), None, false));
    // Its policy waits for as long.
    assert_eq!(find(DAY, &[], 86_400), (at(DAY), None, false));
    assert_eq!(find(DAY, &[], 6), (at(60), Some(at(DAY)), false));
    let events =
        [event(-50, "AllChildrenReady"), event(40, "ChildrenProgressing"), event(66, "AllChildrenReady")];
    assert_eq!(find(DAY, &events, 6), (at(66), Some(at(DAY)), true));
    // The Event of the answer that stands is no other.
    assert_eq!(find(66, &events, 6), (at(66), None, false));
    // Of a day in which it turned twice the Events are left, and none of the rollout.
    let left = [event(DAY, "AllChildrenReady"), event(DAY + 600, "AllChildrenReady")];
    assert_eq!(find(DAY, &left, 6), (at(60), Some(at(DAY)), false));
    assert_eq!(find(DAY + 600, &left, 6), (at(60), Some(at(DAY + 600)), false));
}

/// Any tree of objects with any moments, drawn from a seed.
fn any_object(draw: &mut impl FnMut(i64) -> i64, depth: u32) -> RolloutObject {
    let moment = |draw: &mut dyn FnMut(i64) -> i64| (draw(4) > 0).then(|| at(draw(60) - 10));
    let children = (0..if depth == 0 { 0 } else { draw(4) }).map(|_| any_object(draw, depth - 1)).collect();
    let step = |draw: &mut dyn FnMut(i64) -> i64| {
        let from = draw(60) - 10;
        let to = from + draw(20);
        RolloutStep { cause: WaitCause::ImagePull, detail: String::new(), from: at(from), to: at(to) }
    };
    RolloutObject {
        object: format!("Thing {}", draw(1_000_000)),
        own_cause: if draw(2) == 0 { WaitCause::Operator } else { WaitCause::Job },
        began: moment(draw),
        ended: moment(draw),
        steps: (0..draw(3)).map(|_| step(draw)).collect(),
        children,
    }
}

#[test]
fn whatever_the_objects_say_the_parts_touch_and_sum_up_to_the_whole() {
    for seed in 0..2_000_u64 {
        let mut state = seed;
        let mut draw = |below: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(state >> 33).unwrap() % below
        };
        let root = any_object(&mut draw, 3);
        let (from, to) = (at(draw(30)), at(draw(60)));
        let parts = critical_path(&root, from, to);
        if to <= from {
            assert!(parts.is_empty(), "seed {seed}");
            continue;
        }
        assert_eq!((parts[0].from, parts[parts.len() - 1].to), (from, to), "seed {seed}: {parts:?}");
        for pair in parts.windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "seed {seed}: {parts:?}");
        }
        assert!(parts.iter().all(|part| part.from < part.to), "seed {seed}: {parts:?}");
    }
}
