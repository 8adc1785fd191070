//! Access to `metadata`, and times in the API's format.

use serde_json::{Map, Value, json};

use super::message::EpochMillis;

/// Returns the metadata of an object; creates it if it is missing or not a map.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let meta = &mut object["metadata"];
    if !meta.is_object() {
        *meta = json!({});
    }
    meta.as_object_mut().expect("invariant: just made a map")
}

/// Returns a string field of the metadata; empty if it is missing.
pub(crate) fn text_field<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text_field(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text_field(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text_field(object, "uid")
}

pub(crate) fn resource_version(object: &Value) -> u64 {
    text_field(object, "resourceVersion").parse().unwrap_or(0)
}

pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    list_strings(&object["metadata"]["finalizers"])
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).contains(&finalizer)
}

pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let list = meta_mut(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&json!(finalizer))) {
        list.push(json!(finalizer));
    }
}

pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let meta = meta_mut(object);
    if let Some(list) = meta.get_mut("finalizers").and_then(Value::as_array_mut) {
        list.retain(|item| item != finalizer);
        if list.is_empty() {
            meta.remove("finalizers");
        }
    }
}

pub(crate) fn owner_references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn list_strings(list: &Value) -> Vec<&str> {
    list.as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Formats a time: `2026-11-21T08:00:00Z`.
pub(crate) fn format_time(at: EpochMillis) -> String {
    rollcall_rfc3339::SecondsText(at).to_string()
}

/// Merges `defaults` into `value`: adds missing fields, map by map.
pub(crate) fn fill_missing(value: &mut Value, defaults: &Value) {
    let (Value::Object(map), Some(defaults)) = (value, defaults.as_object()) else { return };
    for (name, default) in defaults {
        match map.get_mut(name) {
            Some(Value::Null) | None => {
                map.insert(name.clone(), default.clone());
            }
            Some(child) => fill_missing(child, default),
        }
    }
}

/// Removes null and empty metadata fields, which the real server does not write.
pub(crate) fn remove_empty_fields(object: &mut Value) {
    let meta = meta_mut(object);
    meta.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}
