//! Conditions that an admission webhook puts other words into, in a list that has one owner.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use watcher::reflector::Reflector;
use watcher::status::{ConditionEntry, OwnTypes, ParentStatus};

use crate::objects::{apply, parents, uid, widget};

fn sent() -> ConditionEntry {
    ConditionEntry {
        r#type: "Ready".into(),
        status: "True".into(),
        observed_generation: Some(1),
        last_transition_time: "2026-01-01T00:00:00Z".into(),
        reason: "AllChildrenReady".into(),
        message: "1 of 1 ready".into(),
    }
}

/// A widget whose list of conditions is owned as a whole by whoever wrote it last, which is Rollcall.
fn widget_with(version: u32, entry: &Value) -> Value {
    let mut widget = widget(version, 1, &json!({ "conditions": [entry] }));
    widget["metadata"]["managedFields"] = json!([{ "manager": "rollcall", "operation": "Update",
        "subresource": "status", "fieldsV1": { "f:status": { "f:conditions": {} } } }]);
    widget
}

/// What is sent, with one field that is changed.
fn changed(field: &str, value: &str) -> Value {
    let mut entry = json!(sent());
    entry[field] = json!(value);
    entry
}

/// The answer to a write is such an entry.
fn answer(reflector: &Reflector, version: u32, entry: &Value) {
    let widget = widget_with(version, entry);
    let text = RawValue::from_string(widget.to_string()).unwrap();
    let status = ParentStatus::read(&text, &OwnTypes::of(["Ready"]).taking(["Ready"]));
    reflector.on_write_accepted(&uid(1_000), &[sent()], &status);
    apply(reflector, &parents(vec![]), &widget);
}

/// Whether the entry that stands is taken for Rollcall's.
fn is_ours(reflector: &Reflector) -> bool {
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let read = |row: &watcher::reflector::ObjectRow| {
        let parent = row.parent.as_ref().unwrap();
        assert_eq!(parent.view.answers[0].owned_by_other, parent.status.is_foreign("Ready"));
        parent.status.our_entry("Ready").is_some()
    };
    reflector.read_row(id, read).unwrap()
}

fn reflector() -> Reflector {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &parents(vec![]), &widget(1, 1, &json!({})));
    reflector
}

#[test]
fn what_came_back_in_other_words_for_what_was_written_is_rollcalls_for_as_long_as_it_stands_so() {
    let reflector = reflector();
    let managed = changed("reason", "Managed");
    answer(&reflector, 2, &managed);
    assert!(is_ours(&reflector));
    // Something else of the parent changes.
    apply(&reflector, &parents(vec![]), &widget_with(3, &managed));
    assert!(is_ours(&reflector));
    let mut others = managed.clone();
    others["message"] = json!("all is well");
    apply(&reflector, &parents(vec![]), &widget_with(4, &others));
    assert!(!is_ours(&reflector), "an operator says this");
}

#[test]
fn nothing_that_was_not_an_answer_is_taken_for_one() {
    let reflector = reflector();
    apply(&reflector, &parents(vec![]), &widget_with(2, &changed("reason", "Managed")));
    assert!(!is_ours(&reflector), "nobody knows who wrote it");
}

#[test]
fn it_is_forgotten_once_a_write_comes_back_as_it_was_sent() {
    let reflector = reflector();
    let managed = changed("reason", "Managed");
    answer(&reflector, 2, &managed);
    answer(&reflector, 3, &json!(sent()));
    assert!(is_ours(&reflector));
    apply(&reflector, &parents(vec![]), &widget_with(4, &managed));
    assert!(!is_ours(&reflector));
}
