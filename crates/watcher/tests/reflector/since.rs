//! Time since which an object has not been ready.

use readiness::{RuleKind, Time};
use serde_json::{Value, json};
use watcher::plan::Interest;
use watcher::reflector::Reflector;

use crate::objects::{NOW, apply, owned, pod, uid};

/// Returns since when a pod has not been ready, in milliseconds after [`NOW`], and the source.
fn since(reflector: &Reflector, n: u32) -> Option<(i64, String)> {
    let row = |row: &watcher::reflector::ObjectRow| {
        row.unready_since(0).map(|s| (s.at.0 - NOW.0, s.from.to_string()))
    };
    reflector.read_row(reflector.find_object(&uid(n)).unwrap(), row).unwrap()
}

#[test]
fn since_when_it_has_not_been_ready_is_known_of_what_is_not() {
    let reflector = Reflector::new(|| ());
    let moment = |millis: i64| Time(NOW.0 + millis).to_string();
    let turned = |version, ready, at: i64| {
        let mut pod = pod(1, version, ready);
        pod["metadata"]["creationTimestamp"] = json!(moment(-3_600_000));
        pod["status"]["conditions"][0]["lastTransitionTime"] = json!(moment(at));
        pod
    };
    let step = |object: &Value, at: i64| {
        apply(&reflector, &owned(), object);
        for id in reflector.take_dirty(9) {
            reflector.date_unready(id, Time(NOW.0 + at));
        }
        since(&reflector, 1)
    };
    let ready = "conditions[Ready].lastTransitionTime".to_owned();
    assert_eq!(step(&turned(5, "False", -60_000), 0), Some((-60_000, ready)), "it says so itself");
    assert_eq!(step(&turned(6, "True", 1_000), 1_000), None, "it is ready");
    assert_eq!(step(&turned(7, "False", 2_000), 2_500), Some((2_500, "seen".to_owned())));
    let mut failing = turned(8, "False", 9_000);
    failing["status"]["containerStatuses"] =
        json!([{ "name": "a", "ready": false, "state": { "waiting": { "reason": "CrashLoopBackOff" } } }]);
    assert_eq!(step(&failing, 9_000), Some((2_500, "seen".to_owned())), "another reason is no new beginning");
    let mut leaving = turned(9, "False", 9_000);
    leaving["metadata"]["deletionTimestamp"] = json!(moment(40_000));
    let deletion = "metadata.deletionTimestamp".to_owned();
    assert_eq!(step(&leaving, 10_000), Some((10_000, deletion.clone())), "not in the future");
    let mut still = leaving.clone();
    still["metadata"]["resourceVersion"] = json!("10");
    still["status"]["phase"] = json!("Failed");
    assert_eq!(step(&still, 20_000), Some((10_000, deletion)), "and it does not move on");
}

#[test]
fn what_tells_no_time_has_not_been_ready_since_it_was_created_or_for_as_long_as_anybody_looked() {
    for (created, expected) in [(-2_000, (-2_000, "metadata.creationTimestamp")), (-60_000, (0, "firstSeen"))]
    {
        let reflector = Reflector::new(|| ());
        let mut pod = pod(1, 5, "False");
        pod["metadata"]["creationTimestamp"] = json!(Time(NOW.0 + created).to_string());
        let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
        apply(&reflector, &sets, &pod);
        for id in reflector.take_dirty(9) {
            reflector.date_unready(id, NOW);
        }
        assert_eq!(since(&reflector, 1), Some((expected.0, expected.1.to_owned())));
    }
}
