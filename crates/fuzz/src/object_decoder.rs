//! The decoder of objects (`watcher::wire`).

use serde_json::Value;
use serde_json::value::RawValue;
use watcher::wire::ChildObject;

use crate::json_spelling::spell_escaped;

/// Most conditions that are kept of one object.
const MAX_CONDITIONS: usize = 64;
/// Longest text that is kept of a condition, in bytes.
const MAX_CONDITION_TEXT_BYTES: usize = 320;

pub(crate) const OBJECT_DECODER_WORDS: &[&str] = &[
    "\"metadata\":{",
    "\"spec\":{",
    "\"status\":{",
    "\"conditions\":[",
    "{\"type\":\"Ready\",\"status\":\"True\"}",
    "\"ownerReferences\":[",
    "\"managedFields\":[",
    "\"fieldsV1\":{",
    "\"containerStatuses\":[",
    "\"endpoints\":[",
    "\"observedGeneration\":",
    "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
    "9223372036854775807",
    "-0",
    "1e400",
    "\\ud800",
    "\\u0000",
    "null",
    "true",
];

/// The version of a spec is that of its text, which a server spells in one way.
fn without_version(mut object: ChildObject) -> ChildObject {
    object.meta.spec_version = watcher::wire::SpecVersion::default();
    object
}

/// An object is decoded however it is spelled, and to the same; what is kept of it is bounded.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // Text that is no JSON is refused by the parser above the cursor; it may not panic there either.
    let read = serde_json::from_str::<ChildObject>(text);
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    check_bounds(&read.unwrap());
    let plain = value.to_string();
    let whole = without_version(serde_json::from_str(&plain).unwrap());
    let pretty = serde_json::from_str(&serde_json::to_string_pretty(&value).unwrap()).unwrap();
    assert_eq!(whole, without_version(pretty), "with and without white space");
    let escaped = serde_json::from_str(&spell_escaped(&value)).unwrap();
    assert_eq!(whole, without_version(escaped), "with every character escaped");
    let raw = RawValue::from_string(plain).unwrap();
    assert_eq!(whole, without_version(ChildObject::from_raw(&raw)), "from the raw text");
}

fn check_bounds(child: &ChildObject) {
    let conditions = &child.facts.status.conditions;
    assert!(conditions.len() <= MAX_CONDITIONS, "{} conditions", conditions.len());
    for condition in conditions {
        let longest = condition.reason.len().max(condition.message.len());
        assert!(longest <= MAX_CONDITION_TEXT_BYTES, "{longest} bytes of a condition are kept");
    }
}
