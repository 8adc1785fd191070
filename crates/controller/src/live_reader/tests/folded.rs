//! Many objects of one kind that are not ready, in ten namespaces.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use watcher::plan::Interest;
use watcher::{ApiKind, ParentObject, ReflectorObject};

use super::{KIND, PERIOD, ResyncStage, interest, list_of, uid};

const WIDGETS: &str = "/apis/example.com/v1/widgets";
/// How many of them are not ready.
const UNREADY: u32 = 40;

fn namespace_of(n: u32) -> String {
    format!("team-{}", n % 10)
}

fn path_of(n: u32) -> String {
    format!("/apis/example.com/v1/namespaces/{}/widgets/widget-{n}", namespace_of(n))
}

fn widget(n: u32, version: u32) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "namespace": namespace_of(n), "name": format!("widget-{n}"), "uid": uid(n), "generation": 1,
            "resourceVersion": version.to_string(), "ownerReferences":
            [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": uid(99) }] },
        "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })
}

/// A resync of Widgets, of which the server had so many when it was listed.
fn start(listed: usize) -> ResyncStage {
    let api = ApiKind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        namespaced: true,
        has_status: true,
    };
    let of_kind = Interest::for_kind(KIND, "example.com", "Widget");
    let (stage, found) = ResyncStage::start_kind(20, Interest { judge: of_kind.judge, ..interest() }, api);
    found.listed.store(listed, Ordering::Relaxed);
    for n in 0..UNREADY {
        let object: ParentObject = serde_json::from_value(widget(n, 5)).unwrap();
        stage.reflector.apply_object(KIND, object.as_child(), object.raw_text());
        stage.server.serve(&path_of(n), widget(n, 5));
    }
    stage
}

/// Everything is ordered once a period, for so many periods; the paths that were asked for in the last of them.
async fn asked_after(stage: &ResyncStage, periods: u32) -> Vec<String> {
    for _ in 0..periods {
        stage.server.take_asked();
        stage.order_each();
        tokio::time::sleep(PERIOD).await;
    }
    stage.server.take_asked()
}

#[tokio::test(start_paused = true)]
async fn where_nothing_has_changed_one_list_of_their_metadata_says_so() {
    let stage = start(50);
    stage.server.serve(WIDGETS, list_of(&(0..UNREADY).map(|n| widget(n, 5)).collect::<Vec<_>>()));
    assert_eq!(asked_after(&stage, 3).await, [WIDGETS]);
}

#[tokio::test(start_paused = true)]
async fn what_has_changed_come_or_gone_unseen_is_read() {
    let stage = start(50);
    // The first few are read alone: that there are many shows then.
    let (gone, changed, new) = (39, 38, 80);
    let mut listed: Vec<Value> =
        (0..UNREADY).filter(|n| ![gone, changed].contains(n)).map(|n| widget(n, 5)).collect();
    listed.extend([widget(changed, 9), widget(new, 7)]);
    stage.server.serve(WIDGETS, list_of(&listed));
    stage.server.serve(&path_of(changed), widget(changed, 9));
    stage.server.serve(&path_of(new), widget(new, 7));
    stage.server.forget(&path_of(gone));
    let asked = asked_after(&stage, 1).await;
    let after = asked.iter().position(|path| path == WIDGETS).unwrap() + 1;
    let mut found = asked[after..].to_vec();
    found.sort();
    let mut expected = [changed, gone, new].map(path_of);
    expected.sort();
    assert_eq!(found, expected, "{asked:?}");
    assert!(!stage.holds(gone) && stage.holds(new));
    let id = stage.reflector.find_object(&uid(changed));
    assert_eq!(id.and_then(|id| stage.reflector.read_row(id, |row| row.version)), Some(9));
}

#[tokio::test(start_paused = true)]
async fn of_very_many_they_are_read_one_by_one() {
    let stage = start(5_000);
    let asked = asked_after(&stage, 2).await;
    assert_eq!(asked.len(), UNREADY as usize, "{asked:?}");
    assert!(!asked.iter().any(|path| path == WIDGETS));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_answered_leaves_them_to_be_read_one_by_one() {
    let stage = start(50);
    stage.server.serve(WIDGETS, json!({ "kind": "Status", "status": "Failure", "code": 500 }));
    let asked = asked_after(&stage, 1).await;
    let alone = |asked: &[String]| asked.iter().filter(|path| *path != WIDGETS).count();
    assert!(alone(&asked) < UNREADY as usize, "some were left to the list: {asked:?}");
    let asked = asked_after(&stage, 1).await;
    assert_eq!(alone(&asked), UNREADY as usize, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_lost_in_one_of_ten_namespaces_is_found_by_the_one_list_and_counted() {
    let stage = start(50);
    let all = |lost: u32, version: u32| {
        let listed = (0..UNREADY).map(|n| widget(n, if n == lost { version } else { 5 }));
        list_of(&listed.collect::<Vec<_>>())
    };
    stage.server.serve(WIDGETS, all(0, 5));
    assert_eq!(asked_after(&stage, 2).await, [WIDGETS]);
    assert_eq!(stage.count_drift(), 0);
    let lost = 27;
    let mut listed = all(lost, 9);
    // Whatever changes moves the version of the list.
    listed["metadata"]["resourceVersion"] = json!("101");
    stage.server.serve(WIDGETS, listed);
    let mut ready = widget(lost, 9);
    ready["status"]["conditions"][0]["status"] = json!("True");
    stage.server.serve(&path_of(lost), ready);
    assert_eq!(asked_after(&stage, 1).await, [WIDGETS.to_owned(), path_of(lost)]);
    assert_eq!(stage.count_drift(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_what_is_expected_in_a_namespace_the_metadata_is_listed_and_what_is_new_is_read() {
    let stage = start(5_000);
    let (list, new) = ("/apis/example.com/v1/namespaces/team-7/widgets", 57);
    let held = (0..UNREADY).filter(|n| n % 10 == 7).map(|n| widget(n, 5));
    stage.server.serve(list, list_of(&held.chain([widget(new, 7)]).collect::<Vec<_>>()));
    stage.server.serve(&path_of(new), widget(new, 7));
    stage.order_list("team-7");
    tokio::time::sleep(PERIOD).await;
    assert_eq!(stage.server.take_asked(), [list.to_owned(), path_of(new)]);
    assert!(stage.holds(new));
    assert_eq!(stage.count_drift(), 1);
}
