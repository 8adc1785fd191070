//! The only way of writing: a JSON Patch with `test` operations as preconditions.
//!
//! It tests the uid (so that nothing is written to a re-created object), the generation (so that nothing is said about
//! a spec that was not seen) and Rollcall's own previous condition (so that two replicas with different views cannot
//! overwrite each other). It touches nothing else: conditions of other clients may change at any rate. One write is bound to the
//! version that was read: a type that joins others of ours in a list where nothing keeps it from standing twice.

use serde_json::{Value, json};

use super::entry::{ConditionEntry, WantedConditions};
use super::owned_condition::OwnedCondition;
use super::parent_status::{ListShape, ParentStatus};

/// Preconditions of a patch.
#[derive(Clone, Debug)]
pub struct PatchGuard<'a> {
    /// `metadata.uid` of the parent.
    pub uid: &'a str,
    /// `metadata.generation` as last read; `None` where the object has none.
    pub generation: Option<i64>,
    /// `metadata.resourceVersion` as last read; 0 where it is not a number.
    pub version: u64,
    /// Status as last read.
    pub status: &'a ParentStatus,
}

/// Returns the operations that bring a parent to the wanted conditions; `None` if it already carries them or cannot.
pub fn guarded_patch(guarded: &PatchGuard<'_>, wanted: &WantedConditions) -> Option<Value> {
    let body = match &guarded.status.list {
        ListShape::Unwritable(_) => return None,
        ListShape::NoStatus => first_entry_ops(wanted, "/status", |entries| json!({"conditions": entries})),
        ListShape::NoList => first_entry_ops(wanted, "/status/conditions", |entries| json!(entries)),
        ListShape::List(Some(list)) => {
            let appended = wanted.entries.iter().map(append_op);
            let guard = test_op("/status/conditions", &serde_json::from_str(list.get()).ok()?);
            let mut ops: Vec<Value> = appended.collect();
            if !ops.is_empty() {
                ops.insert(0, guard);
            }
            ops
        }
        ListShape::List(None) => entry_change_ops(guarded.status, wanted)?,
    };
    let mut ops = body;
    if guarded.version > 0 && may_meet_same_type(guarded.status, wanted) {
        ops.insert(0, test_op("/metadata/resourceVersion", &json!(guarded.version.to_string())));
    }
    ops.extend(observed_generation_ops(guarded.status, wanted));
    if ops.is_empty() {
        return None;
    }
    let mut guards = vec![test_op("/metadata/uid", &json!(guarded.uid))];
    guards.extend(guarded.generation.map(|generation| test_op("/metadata/generation", &json!(generation))));
    guards.extend(ops);
    Some(Value::Array(guards))
}

/// Serialises a patch. The server compares the value of a `test` with its own JSON byte by byte, and escapes `<`, `>`,
/// `&`, U+2028 and U+2029 in it: a precondition with the plain characters never holds. Measured on 1.36.3.
pub fn patch_body(patch: &Value) -> Vec<u8> {
    const ESCAPED: [(char, &str); 5] = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    // None of these characters can occur outside strings.
    let text = patch.to_string();
    ESCAPED.iter().fold(text, |text, (plain, escaped)| text.replace(*plain, escaped)).into_bytes()
}

fn test_op(path: &str, value: &Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

fn append_op(entry: &ConditionEntry) -> Value {
    json!({"op": "add", "path": "/status/conditions/-", "value": entry})
}

/// Operations for the first condition. A test against null holds if nothing is there yet.
fn first_entry_ops(
    wanted: &WantedConditions,
    path: &str,
    value: impl Fn(&[ConditionEntry]) -> Value,
) -> Vec<Value> {
    if wanted.entries.is_empty() {
        return Vec::new();
    }
    vec![test_op(path, &Value::Null), json!({"op": "add", "path": path, "value": value(&wanted.entries)})]
}

/// Returns `true` if an entry is put beside others of ours, and another client may have put one of its type there since: nothing
/// else in the patch would notice.
fn may_meet_same_type(status: &ParentStatus, wanted: &WantedConditions) -> bool {
    let is_new = |entry: &ConditionEntry| status.our_entry(&entry.r#type).is_none();
    status.allows_duplicate_types && !status.ours.is_empty() && wanted.entries.iter().any(is_new)
}

/// Each patch undoes what it is guarded by: sent twice, because nobody knows what became of it the first time, it holds
/// once. An entry that is only added would leave its guards standing; it takes the place of the first of ours, which
/// moves on.
fn entry_change_ops(status: &ParentStatus, wanted: &WantedConditions) -> Option<Vec<Value>> {
    let path = |ours: &OwnedCondition| format!("/status/conditions/{}", ours.index());
    let is_new = |entry: &&ConditionEntry| status.our_entry(&entry.r#type).is_none();
    let new: Vec<&ConditionEntry> = wanted.entries.iter().filter(is_new).collect();
    let (mut tests, mut replaced, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for (at, ours) in status.ours.iter().enumerate() {
        let is_first = status.ours[..at].iter().all(|before| before.kind() != ours.kind());
        let kept = wanted.entries.iter().find(|e| is_first && e.r#type == ours.kind());
        let stays = kept.is_some_and(|entry| *entry == ours.to_entry());
        // What is new is put beside what was seen, all of it, or it might be there already.
        if !stays || !new.is_empty() {
            tests.push(test_op(&path(ours), &ours.to_precondition()?));
        }
        match kept {
            _ if stays => {}
            Some(entry) => replaced.push(json!({"op": "replace", "path": path(ours), "value": entry})),
            None => removed.push((ours.index(), json!({"op": "remove", "path": path(ours)}))),
        }
    }
    let only_adds = replaced.is_empty() && removed.is_empty();
    let first = status.ours.first().map(OwnedCondition::index).filter(|_| only_adds);
    let add = |(at, entry): (usize, &ConditionEntry)| match first {
        Some(first) => {
            json!({"op": "add", "path": format!("/status/conditions/{}", first + at), "value": entry})
        }
        None => append_op(entry),
    };
    let added = new.into_iter().enumerate().map(add);
    // From the back, so that no index moves before it is used; new ones come after that.
    removed.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
    Some(
        tests.into_iter().chain(replaced).chain(removed.into_iter().map(|(_, op)| op)).chain(added).collect(),
    )
}

fn releases_generation(status: &ParentStatus) -> bool {
    status.holds_generation() && !status.ours.is_empty()
}

fn observed_generation_ops(status: &ParentStatus, wanted: &WantedConditions) -> Vec<Value> {
    let path = "/status/observedGeneration";
    match (wanted.observed_generation, status.observed_generation) {
        (Some(new), Some(old)) if new != old => {
            vec![test_op(path, &json!(old)), json!({"op": "replace", "path": path, "value": new})]
        }
        (Some(new), None) => vec![json!({"op": "add", "path": path, "value": new})],
        // The field is removed with the last condition: no client would update it, and a generation that stays behind
        // would say "not yet" forever.
        (None, Some(old)) if wanted.entries.is_empty() && releases_generation(status) => {
            vec![test_op(path, &json!(old)), json!({"op": "remove", "path": path})]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::own::OwnTypes;
    use super::*;

    fn entry(kind: &str, reason: &str, message: &str) -> ConditionEntry {
        ConditionEntry {
            r#type: kind.into(),
            status: "False".into(),
            observed_generation: Some(2),
            last_transition_time: "2026-01-01T00:00:00Z".into(),
            reason: reason.into(),
            message: message.into(),
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
        let guarded = PatchGuard { uid: "u", generation: Some(2), version, status: &status };
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
            patch(&json!({"status": {"conditions": list}}), vec![entry("Ready", "ChildrenPending", "")])
                .unwrap();
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
        let patch = patch(
            &object,
            vec![entry("Stalled", "ChildrenFailed", ""), entry("Ready", "ChildrenFailed", "")],
        )
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
        assert_eq!(ops(&released)[5..], [removes[0], removes[1], "remove /status/conditions/0"]);
    }

    #[test]
    fn what_an_operator_says_in_a_word_that_we_use_too_is_never_taken_away() {
        let theirs = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "so says db-operator"});
        let mine = entry("Ready", "ChildrenFailed", "");
        let object = json!({"status": {"conditions": [theirs("BackupFailed", "DeadlineExceeded"),
            theirs("Reconciling", "Terminating"), mine, theirs("Resizing", "ChildrenProgressing")]}});
        assert_eq!(patch(&object, vec![mine]), None, "there is nothing to be done");
        assert_eq!(ops(&patch(&object, vec![]).unwrap())[3..], ["remove /status/conditions/2"]);
    }

    #[test]
    fn the_observed_generation_that_we_kept_goes_with_our_last_entry() {
        let object = |manager: &str| {
            let fields = json!({"f:status": {"f:observedGeneration": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {}}}});
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
}
