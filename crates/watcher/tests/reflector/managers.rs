//! Who writes the conditions of others, in a list that has one owner.

use serde_json::{Value, json};
use watcher::reflector::{ObjectRow, Reflector};

use crate::objects::{apply, parents, uid, widget};

const SYNCED: &str = r#"{"type":"Synced","status":"True"}"#;

/// A widget whose list of conditions `manager` wrote last.
fn written_by(version: u32, manager: &str, conditions: &Value) -> Value {
    let mut widget = widget(version, 1, &json!({ "conditions": conditions }));
    widget["metadata"]["managedFields"] = json!([{ "manager": manager, "operation": "Update",
        "subresource": "status", "fieldsV1": { "f:status": { "f:conditions": {} } } }]);
    widget
}

/// Conditions of others, with the managers that are known to have written them.
fn others(reflector: &Reflector) -> Vec<(String, String)> {
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let read = |row: &ObjectRow| {
        let foreign = row.parent.as_ref().unwrap().status.foreign.iter();
        foreign.map(|(kind, managers, _)| (kind.to_string(), managers.to_string())).collect()
    };
    reflector.read_row(id, read).unwrap()
}

#[test]
fn a_writer_is_remembered_where_rollcall_has_written_the_list_since() {
    let reflector = Reflector::new(|| ());
    let synced: Value = serde_json::from_str(SYNCED).unwrap();
    let ours =
        json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready" });
    let steps = [
        // Nobody knows who wrote what was there before.
        ("rollcall", json!([synced, ours]), ""),
        ("kopf", json!([synced]), "kopf"),
        ("rollcall", json!([synced, ours]), "kopf"),
        ("rollcall", json!([synced]), "kopf"),
        ("shop-controller", json!([synced, ours]), "shop-controller"),
        ("rollcall", json!([synced, ours]), "shop-controller"),
    ];
    for (version, (manager, conditions, known)) in (1..).zip(steps) {
        apply(&reflector, &parents(vec![]), &written_by(version, manager, &conditions));
        assert_eq!(others(&reflector), [("Synced".to_owned(), known.to_owned())], "version {version}");
    }
}

#[test]
fn a_writer_of_another_condition_is_not_taken_for_that_of_a_new_one() {
    let reflector = Reflector::new(|| ());
    let synced: Value = serde_json::from_str(SYNCED).unwrap();
    let saved = json!({ "type": "Saved", "status": "True" });
    apply(&reflector, &parents(vec![]), &written_by(1, "kopf", &json!([synced])));
    apply(&reflector, &parents(vec![]), &written_by(2, "rollcall", &json!([synced, saved])));
    let known = [("Synced".to_owned(), "kopf".to_owned()), ("Saved".to_owned(), String::new())];
    assert_eq!(others(&reflector), known);
}
