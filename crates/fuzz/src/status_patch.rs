//! The conditions of a parent: reading of what stands there, and the patch that sets it right.

use readiness::rollup::ParentReason;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use watcher::status::{
    ConditionEntry, ListShape, OwnTypes, OwnedCondition, ParentStatus, PatchGuard, WantedConditions,
    conditions_digest, guarded_patch, patch_body, written_types,
};

pub(crate) const STATUS_PATCH_WORDS: &[&str] = &[
    "\"status\":{",
    "\"conditions\":[",
    "{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"ChildrenFailed\",\"message\":\"1 of 2 not ready: a\"},",
    "{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Fine\"},",
    "{\"type\":\"Stalled\"},",
    "\"type\":\"Ready\"",
    "\"reason\":\"Terminating\"",
    "\"observedGeneration\":2",
    "\"managedFields\":[{\"manager\":\"rollcall\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"Ready\\\"}\":{}}}}}],",
    "\"f:observedGeneration\":{},",
    "null",
    "[]",
    "1.5",
    "<&>",
    "\\u2028",
];

/// Chooses what is wanted, by the bits of a byte.
#[derive(Clone, Copy, Debug)]
struct WishBits(u8);

impl WishBits {
    fn has(self, bit: u8) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// Conditions that Rollcall could want on a parent, of types that no other manager has there.
    fn wanted_conditions(self, status: &ParentStatus) -> WantedConditions {
        let ready = match self.0 & 3 {
            0 => None,
            1 => Some(("True", ParentReason::AllChildrenReady, "2 of 2 ready")),
            2 => Some(("False", ParentReason::ChildrenFailed, "1 of 2 not ready: Pod <a> & b failed")),
            _ => Some((
                "Unknown",
                ParentReason::ChildrenPending,
                "waiting for the operator to handle generation 2",
            )),
        };
        let reconciling =
            self.has(2).then_some(("True", ParentReason::ChildrenProgressing, "1 of 2 not ready: x"));
        let stalled = self.has(3).then_some(("True", ParentReason::ChildrenFailed, "1 of 2 not ready: y"));
        let all = [("Ready", ready), ("Reconciling", reconciling), ("Stalled", stalled)];
        let wish = all.into_iter().filter_map(|(kind, wish)| Some((kind, wish?)));
        let entries: Vec<_> = wish
            .filter(|(kind, _)| !status.is_foreign(kind))
            .map(|(kind, (status, reason, message))| ConditionEntry {
                r#type: kind.to_owned(),
                status: status.to_owned(),
                observed_generation: Some(2),
                last_transition_time: "2026-01-01T00:00:00Z".to_owned(),
                reason: reason.as_str().to_owned(),
                message: message.to_owned(),
            })
            .collect();
        let observed_generation = (self.has(4) && !entries.is_empty()).then_some(2);
        WantedConditions { entries, observed_generation }
    }
}

/// The patch applies to the object that it was made for, leaves everything that is not ours as it was, and leaves
/// nothing to be patched again.
pub(crate) fn run(data: &[u8]) {
    let Some((&bits, text)) = data.split_first() else { return };
    let Ok(Value::Object(mut object)) = serde_json::from_slice::<Value>(text) else { return };
    let bits = WishBits(bits);
    set_identity(&mut object, bits.has(5));
    let object = Value::Object(object);
    let status = read_status(&object);
    let wanted = bits.wanted_conditions(&status);
    let guard =
        PatchGuard { uid: "u", generation: Some(2), version: 0, status: &status, requires_list: false };
    let Some(patch) = guarded_patch(&guard, &wanted) else {
        let is_unwritable = matches!(status.list, ListShape::Unwritable(_));
        assert!(is_unwritable || carries(&status, &wanted), "nothing is done, and something was to be");
        return;
    };
    assert_eq!(
        serde_json::from_slice::<Value>(&patch_body(&patch)).unwrap(),
        patch,
        "what is sent is what was meant"
    );
    let patched = apply_patch(&object, &patch);
    let is_empty = |object: &Value| object.pointer("/status/conditions") == Some(&json!([]));
    assert!(!is_empty(&patched) || is_empty(&object), "an empty list hides the schema's default: {patched}");
    assert_eq!(
        without_ours(&object, &changed_at(&status, &wanted, &patched)),
        without_ours(&patched, &ours_after(&patched, &wanted))
    );
    // Who wrote what is the server's to say; without it an entry is known by its words.
    if bits.has(5) {
        let after = read_status(&patched);
        assert!(carries(&after, &wanted), "{after:?}\n{wanted:?}");
        let guard =
            PatchGuard { uid: "u", generation: Some(2), version: 0, status: &after, requires_list: false };
        assert_eq!(guarded_patch(&guard, &wanted), None, "a write brings about no other");
    }
}

/// Every object has an identity; who manages which field is left out with `anonymous`.
fn set_identity(object: &mut Map<String, Value>, anonymous: bool) {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata["uid"] = json!("u");
    metadata["generation"] = json!(2);
    if anonymous {
        metadata.as_object_mut().unwrap().remove("managedFields");
    }
}

fn read_status(object: &Value) -> ParentStatus {
    let raw = RawValue::from_string(object.to_string()).unwrap();
    ParentStatus::read(&raw, &OwnTypes::of(written_types("Ready", None)))
}

/// The parent says what is wanted, once each, and nothing else of ours.
fn carries(status: &ParentStatus, wanted: &WantedConditions) -> bool {
    let ours = || status.written().map(OwnedCondition::to_entry);
    let generation = wanted.observed_generation;
    ours().count() == wanted.entries.len()
        && conditions_digest(ours(), None) == conditions_digest(&wanted.entries, None)
        && (generation.is_none() || status.observed_generation() == generation)
}

/// Where our entries stand that are changed or removed. What the schema's default supplied stays where nothing else is said,
/// and goes with the list, to come back.
fn changed_at(status: &ParentStatus, wanted: &WantedConditions, patched: &Value) -> Vec<usize> {
    let is_whole = patched.pointer("/status/conditions").is_none();
    let is_wanted = |held: &OwnedCondition| wanted.entries.iter().any(|entry| entry.r#type == held.kind());
    let is_written = |held: &OwnedCondition| status.written().any(|written| written.index() == held.index());
    let ours = status.ours.iter().filter(|held| is_whole || is_wanted(held) || is_written(held));
    ours.map(OwnedCondition::index).collect()
}

/// Where the wanted entries stand.
fn ours_after(object: &Value, wanted: &WantedConditions) -> Vec<usize> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    let entries: Vec<Value> = wanted.entries.iter().map(|entry| json!(entry)).collect();
    list.into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, entry)| entries.contains(entry))
        .map(|(at, _)| at)
        .collect()
}

/// The object without what Rollcall may change.
fn without_ours(object: &Value, ours: &[usize]) -> Value {
    let mut object = object.clone();
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        object.as_object_mut().unwrap().remove("status");
        return object;
    };
    status.remove("observedGeneration");
    let list =
        status.get_mut("conditions").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let foreign = list.into_iter().enumerate().filter(|(at, _)| !ours.contains(at));
    let foreign: Vec<Value> = foreign.map(|(_, entry)| entry).collect();
    status.remove("conditions");
    if !foreign.is_empty() {
        status.insert("conditions".to_owned(), Value::from(foreign));
    }
    if status.is_empty() {
        object.as_object_mut().unwrap().remove("status");
    }
    object
}

/// As the API server applies it: a test against null holds where nothing is.
fn apply_patch(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    for operation in patch.as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        if operation["op"] == "test" && operation["value"].is_null() && object.pointer(path).is_none() {
            continue;
        }
        let one: json_patch::Patch = serde_json::from_value(json!([operation])).unwrap();
        json_patch::patch(&mut object, &one).unwrap_or_else(|error| panic!("{error}: {operation}\n{object}"));
    }
    object
}
