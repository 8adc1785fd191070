use serde_json::value::RawValue;

use super::*;
use crate::status::own::OwnTypes;
use crate::status::own_words::opening_of;

fn entry(kind: &str, reason: &str, message: &str) -> ConditionEntry {
    ConditionEntry {
        r#type: kind.into(),
        status: "False".into(),
        observed_generation: Some(2),
        last_transition_time: "2026-01-01T00:00:00Z".into(),
        reason: reason.into(),
        message: [opening_of(reason), message].concat(),
    }
}

#[test]
fn a_patch_is_spelled_as_the_server_spells_it() {
    let patch = json!([{"op": "test", "path": "/x", "value": "<a> & é\u{2028}'\"/\u{7f}"}]);
    let text = String::from_utf8(patch_body(&patch)).unwrap();
    assert!(text.contains("\"\\u003ca\\u003e \\u0026 é\\u2028'\\\"/\u{7f}\""), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), patch, "and says the same");
}

fn patch(object: &Value, entries: Vec<ConditionEntry>) -> Option<Value> {
    patch_at(0, object, entries)
}

fn patch_at(version: u64, object: &Value, entries: Vec<ConditionEntry>) -> Option<Value> {
    let own = OwnTypes::of(["Ready", "Reconciling", "Stalled"]);
    let status = ParentStatus::read(&RawValue::from_string(object.to_string()).unwrap(), &own);
    let guarded =
        PatchGuard { uid: "u", generation: Some(2), version, status: &status, requires_list: false };
    guarded_patch(&guarded, &WantedConditions { entries, observed_generation: None })
}

fn ops(patch: &Value) -> Vec<String> {
    let ops = patch.as_array().unwrap().iter();
    ops.map(|op| format!("{} {}", op["op"].as_str().unwrap(), op["path"].as_str().unwrap())).collect()
}

#[test]
fn every_patch_is_guarded_by_uid_and_generation() {
    let patch = patch(&json!({}), vec![entry("Ready", "ChildrenPending", "")]).unwrap();
    assert_eq!(
        ops(&patch),
        ["test /metadata/uid", "test /metadata/generation", "test /status", "add /status"]
    );
    assert_eq!(patch[0]["value"], "u");
    assert_eq!(patch[1]["value"], 2);
    assert_eq!(patch[2]["value"], Value::Null);
}

#[test]
fn the_first_entry_beside_those_of_others_is_guarded_by_the_list() {
    let list = json!([{"type": "Synced", "status": "True"}]);
    let patch =
        patch(&json!({"status": {"conditions": list}}), vec![entry("Ready", "ChildrenPending", "")]).unwrap();
    assert_eq!(ops(&patch)[2..], ["test /status/conditions", "add /status/conditions/-"]);
    assert_eq!(patch[2]["value"], list);
}

#[test]
fn an_entry_of_ours_is_replaced_where_it_stands_and_others_are_not_named() {
    let mine = json!(entry("Ready", "ChildrenPending", ""));
    let object = json!({"status": {"conditions": [{"type": "Synced"}, mine]}});
    let patch = patch(&object, vec![entry("Ready", "ChildrenFailed", "x")]).unwrap();
    assert_eq!(ops(&patch)[2..], ["test /status/conditions/1", "replace /status/conditions/1"]);
    assert_eq!(patch[2]["value"], mine);
}

#[test]
fn entries_are_removed_from_the_back_and_added_at_the_end() {
    let object = json!({"status": {"conditions": [
        entry("Reconciling", "ChildrenProgressing", ""), {"type": "Synced"}, entry("Ready", "ChildrenProgressing", "")]}});
    let patch =
        patch(&object, vec![entry("Stalled", "ChildrenFailed", ""), entry("Ready", "ChildrenFailed", "")])
            .unwrap();
    assert_eq!(
        ops(&patch)[4..],
        ["replace /status/conditions/2", "remove /status/conditions/0", "add /status/conditions/-"]
    );
}

/// As the server applies it to the list; `None` where a guard does not hold.
fn applied(object: &Value, patch: &Value) -> Option<Value> {
    let mut object = object.clone();
    for op in patch.as_array().unwrap() {
        let path = op["path"].as_str().unwrap();
        let Some(place) = path.strip_prefix("/status/conditions/") else { continue };
        let list = object["status"]["conditions"].as_array_mut().unwrap();
        let at = place.parse().unwrap_or(list.len());
        match op["op"].as_str().unwrap() {
            "move" if list.get(at).is_none() => return None,
            "test" if list.get(at) != Some(&op["value"]) => return None,
            "replace" => list[at] = op["value"].clone(),
            "remove" => _ = list.remove(at),
            "add" => list.insert(at, op["value"].clone()),
            _ => {}
        }
    }
    Some(object)
}

#[test]
fn no_write_that_follows_one_of_which_nobody_knows_what_became_says_a_type_twice() {
    let [progressing, failed] = ["ChildrenProgressing", "ChildrenFailed"];
    let seen = json!({"status": {"conditions": [
        {"type": "Synced"}, entry("Ready", progressing, ""), {"type": "Backup"}, entry("Reconciling", progressing, "")]}});
    let ready = |reason: &str| entry("Ready", reason, "");
    let (reconciling, stalled) = (entry("Reconciling", progressing, ""), entry("Stalled", failed, ""));
    let wishes = [
        vec![ready(progressing), stalled.clone()],
        vec![ready(progressing), reconciling.clone(), stalled.clone()],
        vec![ready(failed), stalled.clone()],
        vec![ready(failed), reconciling, stalled.clone()],
        vec![stalled],
    ];
    for lost in &wishes {
        let there = applied(&seen, &patch(&seen, lost.clone()).unwrap()).unwrap();
        for next in &wishes {
            let again = patch(&seen, next.clone()).unwrap();
            assert_eq!(applied(&there, &again), None, "{lost:?} was there before {next:?}: {again}");
        }
    }
}

#[test]
fn of_two_entries_of_one_type_the_second_goes() {
    let mine = entry("Ready", "ChildrenFailed", "x");
    let object = json!({"status": {"conditions": [mine, {"type": "Synced"}, entry("Ready", "ChildrenPending", ""), mine]}});
    let same = patch(&object, vec![mine.clone()]).unwrap();
    let removes = ["remove /status/conditions/3", "remove /status/conditions/2"];
    assert_eq!(ops(&same)[2..4], ["test /status/conditions/2", "test /status/conditions/3"]);
    assert_eq!(ops(&same)[4..], removes);
    let other = patch(&object, vec![entry("Ready", "ChildrenStuck", "")]).unwrap();
    assert_eq!(ops(&other)[5..], ["replace /status/conditions/0", removes[0], removes[1]]);
    let released = patch(&object, vec![]).unwrap();
    let all = ["move /status/conditions/1", removes[0], removes[1], "remove /status/conditions/0"];
    assert_eq!(ops(&released)[5..], all);
}

#[test]
fn the_list_goes_with_the_last_entry_of_ours_and_only_as_it_was_read() {
    let [ready, stalled] = ["Ready", "Stalled"].map(|kind| json!(entry(kind, "ChildrenFailed", "")));
    let object = json!({"status": {"conditions": [ready, stalled], "phase": "Up"}});
    let released = patch(&object, vec![]).unwrap();
    let list = "/status/conditions";
    assert_eq!(ops(&released)[2..], [format!("test {list}"), format!("remove {list}")]);
    assert_eq!(released[2]["value"], json!([ready, stalled]), "a neighbour's entry makes it fail");
}

#[test]
fn a_list_that_the_schema_requires_stays_empty() {
    let object = json!({"status": {"conditions": [entry("Ready", "ChildrenFailed", "")]}});
    let status = ParentStatus::read(&RawValue::from_string(object.to_string()).unwrap(), &OwnTypes::any());
    let guarded = PatchGuard { uid: "u", generation: None, version: 0, status: &status, requires_list: true };
    let released = guarded_patch(&guarded, &WantedConditions::default()).unwrap();
    assert_eq!(ops(&released)[1..], ["test /status/conditions/0", "remove /status/conditions/0"]);
}

#[test]
fn no_list_is_left_empty_where_the_others_went_since_it_was_read() {
    let mine = json!(entry("Ready", "ChildrenFailed", ""));
    let read = json!({"status": {"conditions": [mine, {"type": "Synced", "status": "True"}]}});
    let released = patch(&read, vec![]).unwrap();
    let says = |conditions: Value| applied(&json!({"status": {"conditions": conditions}}), &released);
    let left = |conditions: Value| says(conditions).map(|object| object["status"]["conditions"].clone());
    let synced = json!({"type": "Synced", "status": "False", "message": "changed since"});
    assert_eq!(left(json!([mine, synced])), Some(json!([synced])));
    assert_eq!(left(json!([mine, synced, {"type": "New"}])), Some(json!([synced, {"type": "New"}])));
    assert_eq!(left(json!([mine])), None, "it is read again, and goes with the list");
}

#[test]
fn the_default_of_a_schema_is_replaced_and_never_removed() {
    let default = json!({"type": "Ready", "status": "Unknown", "reason": "ChildrenPending", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z"});
    let object = json!({"status": {"conditions": [default]}});
    assert_eq!(patch(&object, vec![]), None);
    let first = patch(&object, vec![entry("Ready", "ChildrenFailed", "")]).unwrap();
    assert_eq!(ops(&first)[2..], ["test /status/conditions/0", "replace /status/conditions/0"]);
    let beside = json!({"status": {"conditions": [{"type": "Synced"}, default]}});
    assert_eq!(patch(&beside, vec![]), None);
}

#[test]
fn what_an_operator_says_in_a_word_that_we_use_too_is_never_taken_away() {
    let theirs = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "so says db-operator"});
    let mine = entry("Ready", "ChildrenFailed", "");
    let object = json!({"status": {"conditions": [theirs("BackupFailed", "DeadlineExceeded"),
        theirs("Reconciling", "Terminating"), mine, theirs("Resizing", "ChildrenProgressing")]}});
    assert_eq!(patch(&object, vec![mine]), None, "there is nothing to be done");
    let released = ["move /status/conditions/0", "remove /status/conditions/2"];
    assert_eq!(ops(&patch(&object, vec![]).unwrap())[3..], released);
}

#[test]
fn the_observed_generation_that_we_kept_goes_with_our_last_entry() {
    let object = |manager: &str| {
        let fields =
            json!({"f:status": {"f:observedGeneration": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}}});
        json!({
            "metadata": {"managedFields": [{"manager": manager, "operation": "Update", "fieldsV1": fields}]},
            "status": {"observedGeneration": 2, "conditions": [entry("Ready", "ChildrenPending", "")]},
        })
    };
    let path = "/status/observedGeneration";
    let released = ops(&patch(&object("rollcall"), vec![]).unwrap());
    assert!(released.contains(&format!("remove {path}")), "{released:?}");
    assert!(released.contains(&format!("test {path}")), "{released:?}");
    let kept = ops(&patch(&object("rollcall"), vec![entry("Ready", "ChildrenFailed", "")]).unwrap());
    assert!(!kept.iter().any(|op| op.contains(path)), "{kept:?}");
    assert_eq!(patch(&object("operator"), vec![]), None, "it is somebody else's");
}

#[test]
fn a_type_that_joins_ours_where_it_might_stand_twice_is_bound_to_the_version_that_was_read() {
    let mine = entry("Ready", "ChildrenFailed", "");
    let listed = |list: Value| {
        let fields = json!({"f:status": {"f:conditions": list}});
        let managers = json!([{"manager": "rollcall", "operation": "Update", "fieldsV1": fields}]);
        json!({"metadata": {"managedFields": managers}, "status": {"conditions": [{"type": "Synced"}, mine]}})
    };
    let (atomic, by_type) = (listed(json!({})), listed(json!({"k:{\"type\":\"Ready\"}": {}})));
    let unknown = json!({"status": atomic["status"]});
    let turned = entry("Ready", "ChildrenStuck", "");
    let joined = vec![turned.clone(), entry("Stalled", "ChildrenStuck", "")];
    let bound_to = |object: &Value, wanted: &[ConditionEntry]| {
        let patch = patch_at(7, object, wanted.to_vec()).unwrap();
        let ops = patch.as_array().unwrap().clone();
        ops.into_iter().find(|op| op["path"] == "/metadata/resourceVersion").map(|op| op["value"].clone())
    };
    assert_eq!(bound_to(&atomic, &joined), Some(json!("7")));
    assert_eq!(bound_to(&unknown, &joined), Some(json!("7")), "nobody says what the list is");
    assert_eq!(bound_to(&by_type, &joined), None, "the server lets no type stand there twice");
    assert_eq!(bound_to(&atomic, &[turned]), None, "what stands there already is guarded by itself");
    let foreign = json!({"status": {"conditions": [{"type": "Synced"}]}});
    assert_eq!(bound_to(&foreign, &joined), None, "the first of ours is guarded by the whole list");
}

#[test]
fn nothing_to_change_is_no_patch() {
    let mine = entry("Ready", "ChildrenPending", "");
    assert_eq!(patch(&json!({"status": {"conditions": [mine.clone()]}}), vec![mine]), None);
    assert_eq!(patch(&json!({"status": true}), vec![entry("Ready", "ChildrenPending", "")]), None);
    assert_eq!(patch(&json!({}), vec![]), None);
}
