//! Reading and writing `metadata`, and times as the API writes them.

use serde_json::{Map, Value, json};

use super::message::Millis;

/// The metadata of an object; made where it is missing or no map.
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

/// A string of the metadata; empty where there is none.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn revision(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or(0)
}

pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    strings(&object["metadata"]["finalizers"])
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

pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// `2026-11-21T08:00:00Z`.
pub(crate) fn time(at: Millis) -> String {
    let seconds = jiff::Timestamp::from_second(at.div_euclid(1000)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    seconds.to_string()
}

/// Adds to `value` what it lacks of `defaults`, map by map.
pub(crate) fn lacking(value: &mut Value, defaults: &Value) {
    let (Value::Object(map), Some(defaults)) = (value, defaults.as_object()) else { return };
    for (name, default) in defaults {
        match map.get_mut(name) {
            Some(Value::Null) | None => {
                map.insert(name.clone(), default.clone());
            }
            Some(child) => lacking(child, default),
        }
    }
}

/// Removes what is null or empty in metadata, as the real server does not write it.
pub(crate) fn tidy(object: &mut Value) {
    let meta = meta_mut(object);
    meta.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}
