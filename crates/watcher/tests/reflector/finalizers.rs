//! Changes of finalizers, and their managers.

use serde_json::{Value, json};
use watcher::reflector::Reflector;
use watcher::wire::ChildObject;

use crate::objects::{PODS, apply, judge_by, owned, parents, pod, widget};

#[test]
fn finalizers_that_change_are_told_once_with_who_holds_them_and_others_cost_nothing() {
    let reflector = Reflector::new(|| ());
    let with = |version: u32, finalizers: &Value| {
        let mut parent = widget(version, 1, &json!(null));
        parent["metadata"]["finalizers"] = finalizers.clone();
        parent["metadata"]["managedFields"] = json!([{"manager": "kopf", "operation": "Update",
            "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, "v:\"a/x\"": {}}}}}]);
        parent
    };
    let told = |version, finalizers: Value| {
        apply(&reflector, &parents(vec![]), &with(version, &finalizers));
        let changes = reflector.take_finalizer_changes();
        assert!(changes.len() < 2);
        changes
            .into_iter()
            .next()
            .map(|c| (c.names.join(","), c.managers.get("a/x").map(ToString::to_string)))
    };
    assert_eq!(told(1, json!(["a/x"])), None, "what was there at first sight");
    assert_eq!(told(2, json!(["a/x"])), None);
    assert_eq!(told(3, json!(["a/x", "b/y"])), Some(("a/x,b/y".to_owned(), Some("kopf".to_owned()))));
    assert_eq!(told(4, json!(["b/y", "a/x"])), None, "in another order");
    assert_eq!(told(2, json!([])), None, "older than what is held");
    assert_eq!(told(5, json!([])).map(|(names, _)| names), Some(String::new()));
    let mut leaving = with(6, &json!(["a/x"]));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    apply(&reflector, &parents(vec![]), &leaving);
    assert_eq!(reflector.take_finalizer_changes(), [], "nothing is put back on what is being deleted");
}

#[test]
fn of_a_child_whose_text_nobody_keeps_it_is_known_who_set_its_finalizers() {
    let reflector = Reflector::new(|| ());
    let see = |version: u32, finalizers: Value, by: Value| {
        let mut pod = pod(1, version, "True");
        pod["metadata"]["finalizers"] = finalizers;
        pod["metadata"]["managedFields"] = by;
        let child: ChildObject = serde_json::from_str(&pod.to_string()).unwrap();
        judge_by(&reflector, &owned());
        reflector.apply_object(PODS, &child, None);
        let managers = |change: watcher::reflector::FinalizerChange| {
            let pairs = change.managers.into_iter().map(|(name, by)| format!("{name} by {by}"));
            pairs.collect::<Vec<_>>().join(", ")
        };
        reflector.take_finalizer_changes().into_iter().map(managers).collect::<Vec<_>>()
    };
    let set = |by: &str, name: &str| {
        json!({"manager": by, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {}, "f:finalizers": {".": {}, format!("v:\"{name}\""): {}}}, "f:spec": {}}})
    };
    see(1, json!([]), json!([]));
    assert_eq!(see(2, json!(["a/x"]), json!([set("kopf", "a/x")])), ["a/x by kopf"]);
    let both = json!([set("kopf", "a/x"), set("shop-controller", "b/y")]);
    assert_eq!(see(3, json!(["a/x", "b/y"]), both), ["a/x by kopf, b/y by shop-controller"]);
    for odd in [json!("none"), json!([7, {"manager": 5}, {"manager": "m", "fieldsV1": {"f:metadata": []}}])] {
        assert_eq!(
            see(4, json!(["a/x"]), odd.clone()).len(),
            usize::from(odd == json!("none")),
            "and nothing breaks"
        );
    }
}
