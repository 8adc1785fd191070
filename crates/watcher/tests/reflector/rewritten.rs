//! Conditions that an admission webhook puts other words into, in a list that has one owner.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use watcher::reflector::Reflector;
use watcher::status::{ConditionEntry, OwnTypes, ParentStatus};

use crate::objects::{WIDGETS, apply, parents, uid, widget};

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

/// A list of the kind has brought this widget.
fn list(reflector: &Reflector, widget: &Value) {
    reflector.set_interest(parents(vec![]));
    let pass = reflector.begin_list(WIDGETS, None);
    let text = RawValue::from_string(widget.to_string()).unwrap();
    let child = serde_json::from_str(text.get()).unwrap();
    reflector.apply_listed(&pass, &child, Some(&text));
    reflector.finish_list(&pass).unwrap();
}

/// The watch brings this widget.
fn watch(reflector: &Reflector, widget: &Value) {
    let text = RawValue::from_string(widget.to_string()).unwrap();
    let child = serde_json::from_str(text.get()).unwrap();
    reflector.apply_object(WIDGETS, &child, Some(&text));
}

#[test]
fn a_version_that_an_answer_has_brought_stays_as_it_was_there_whatever_an_older_schema_shows_of_it() {
    let reflector = reflector();
    list(&reflector, &widget(1, 1, &json!({})));
    let whole = widget_with(2, &json!(sent()));
    let text = RawValue::from_string(whole.to_string()).unwrap();
    let status = ParentStatus::read(&text, &OwnTypes::of(["Ready"]));
    reflector.on_write_accepted(&uid(1_000), &[sent()], &status);
    let child = serde_json::from_str(text.get()).unwrap();
    reflector.apply_answer(WIDGETS, &child, Some(&text));
    assert!(is_ours(&reflector));
    let pruned = |version| {
        let mut entry = changed("reason", "");
        entry["message"] = json!("");
        widget_with(version, &entry)
    };
    watch(&reflector, &pruned(2));
    assert!(is_ours(&reflector), "the same version says the same");
    watch(&reflector, &pruned(3));
    assert!(!is_ours(&reflector), "a newer one does not");
    list(&reflector, &whole);
    assert!(is_ours(&reflector), "by the schema that holds");
    list(&reflector, &pruned(2));
    assert!(!is_ours(&reflector), "what a list shows is so, in whichever version");
}
