//! The one way of writing: a JSON Patch that is guarded by values.
//!
//! It tests the uid (so nothing lands on a re-created object), the generation (so nothing is said about a spec that
//! was not seen) and our own old entry (so two views of the world cannot overwrite each other), and touches nothing
//! else: entries of others may change as often as they like.

use serde_json::{Value, json};

use super::entry::{Entry, Wanted};
use super::read::{ListShape, ParentStatus};

/// What a patch is guarded by.
#[derive(Clone, Debug)]
pub struct Guarded<'a> {
    /// `metadata.uid` of the parent.
    pub uid: &'a str,
    /// `metadata.generation` as last read; `None` where the object has none.
    pub generation: Option<i64>,
    /// Its status as last read.
    pub status: &'a ParentStatus,
}

/// The operations that make a parent say what is wanted; `None` where it does already, or cannot be made to.
pub fn guarded_patch(guarded: &Guarded<'_>, wanted: &Wanted) -> Option<Value> {
    let body = match &guarded.status.list {
        ListShape::Unwritable(_) => return None,
        ListShape::NoStatus => first(wanted, "/status", |entries| json!({"conditions": entries})),
        ListShape::NoList => first(wanted, "/status/conditions", |entries| json!(entries)),
        ListShape::List(Some(list)) => {
            let appended = wanted.entries.iter().map(append);
            let guard = test("/status/conditions", &serde_json::from_str(list.get()).ok()?);
            let mut ops: Vec<Value> = appended.collect();
            if !ops.is_empty() {
                ops.insert(0, guard);
            }
            ops
        }
        ListShape::List(None) => changes(guarded.status, wanted)?,
    };
    let mut ops = body;
    ops.extend(observed_generation(guarded.status, wanted));
    if ops.is_empty() {
        return None;
    }
    let mut guards = vec![test("/metadata/uid", &json!(guarded.uid))];
    guards.extend(guarded.generation.map(|generation| test("/metadata/generation", &json!(generation))));
    guards.extend(ops);
    Some(Value::Array(guards))
}

/// A patch as it has to be sent. The server compares what a `test` says with its own JSON text by text, and writes what
/// HTML would trip over escaped: a guard that spells it plainly never holds. Measured on 1.36.3.
pub fn patch_body(patch: &Value) -> Vec<u8> {
    const ESCAPED: [(char, &str); 5] = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    // Outside strings none of them can stand.
    let text = patch.to_string();
    ESCAPED.iter().fold(text, |text, (plain, escaped)| text.replace(*plain, escaped)).into_bytes()
}

fn test(path: &str, value: &Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

fn append(entry: &Entry) -> Value {
    json!({"op": "add", "path": "/status/conditions/-", "value": entry})
}

/// A test against null holds where nothing is there yet.
fn first(wanted: &Wanted, path: &str, value: impl Fn(&[Entry]) -> Value) -> Vec<Value> {
    if wanted.entries.is_empty() {
        return Vec::new();
    }
    vec![test(path, &Value::Null), json!({"op": "add", "path": path, "value": value(&wanted.entries)})]
}

fn changes(status: &ParentStatus, wanted: &Wanted) -> Option<Vec<Value>> {
    let (mut tests, mut replaced, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for ours in &status.ours {
        let path = format!("/status/conditions/{}", ours.index);
        let guard = test(&path, &serde_json::from_str(ours.text.get()).ok()?);
        match wanted.entries.iter().find(|e| e.r#type == ours.entry.r#type) {
            Some(entry) if *entry == ours.entry => {}
            Some(entry) => {
                tests.push(guard);
                replaced.push(json!({"op": "replace", "path": path, "value": entry}));
            }
            None => {
                tests.push(guard);
                removed.push((ours.index, json!({"op": "remove", "path": path})));
            }
        }
    }
    // From the back, so that no index moves before it is used; new ones go to the end after that.
    removed.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
    let new: Vec<Value> =
        wanted.entries.iter().filter(|e| status.ours(&e.r#type).is_none()).map(append).collect();
    if tests.is_empty() && !new.is_empty() {
        // Nothing else of ours changes: one of our entries still guards against a view that is behind our own writes.
        let anchor = status.ours.first()?;
        tests.push(test(
            &format!("/status/conditions/{}", anchor.index),
            &serde_json::from_str(anchor.text.get()).ok()?,
        ));
    }
    Some(tests.into_iter().chain(replaced).chain(removed.into_iter().map(|(_, op)| op)).chain(new).collect())
}

fn leaves(status: &ParentStatus) -> bool {
    status.generation_is_held && !status.ours.is_empty()
}

fn observed_generation(status: &ParentStatus, wanted: &Wanted) -> Vec<Value> {
    let path = "/status/observedGeneration";
    match (wanted.observed_generation, status.observed_generation) {
        (Some(new), Some(old)) if new != old => {
            vec![test(path, &json!(old)), json!({"op": "replace", "path": path, "value": new})]
        }
        (Some(new), None) => vec![json!({"op": "add", "path": path, "value": new})],
        // It goes with the last of our entries: nobody would keep it, and what is behind for ever says "not yet" for ever.
        (None, Some(old)) if wanted.entries.is_empty() && leaves(status) => {
            vec![test(path, &json!(old)), json!({"op": "remove", "path": path})]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn entry(kind: &str, reason: &str, message: &str) -> Entry {
        Entry {
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

    fn patch(object: &Value, entries: Vec<Entry>) -> Option<Value> {
        let status = ParentStatus::read(&RawValue::from_string(object.to_string()).unwrap(), &[]);
        let guarded = Guarded { uid: "u", generation: Some(2), status: &status };
        guarded_patch(&guarded, &Wanted { entries, observed_generation: None })
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
    fn nothing_to_change_is_no_patch() {
        let mine = entry("Ready", "ChildrenPending", "");
        assert_eq!(patch(&json!({"status": {"conditions": [mine.clone()]}}), vec![mine]), None);
        assert_eq!(patch(&json!({"status": true}), vec![entry("Ready", "ChildrenPending", "")]), None);
        assert_eq!(patch(&json!({}), vec![]), None);
    }
}
