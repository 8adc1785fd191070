//! Paths to the references of a parent (`find.refs`).

use serde_json::Value;
use serde_json::value::RawValue;
use watcher::plan::{ReadBudget, ReferencePath};

use crate::input_parts::split_parts;
use crate::json_spelling::spell_escaped;

/// Most references that are read of one parent.
const MAX_REFERENCES: usize = 10_000;

pub(crate) const REFERENCE_PATH_WORDS: &[&str] = &[
    "parent.",
    "spec.",
    "resourceRefs",
    "[*]",
    "[0]",
    "[18446744073709551616]",
    ".",
    "[",
    "]",
    "{\"name\":\"a\"}",
    "\"kind\":",
    "\n---\n",
];

/// References are bounded, and the same however the parent is spelled.
pub(crate) fn run(data: &[u8]) {
    let Some((text, parent)) = split_parts(data) else { return };
    let Ok(path) = ReferencePath::parse(text) else { return };
    let Ok(parent) = serde_json::from_str::<Value>(parent) else { return };
    let raw = RawValue::from_string(parent.to_string()).unwrap();
    let read = path.read_references(&raw, &ReadBudget::default());
    let count = read.as_ref().map_or(0, Vec::len);
    assert!(count <= MAX_REFERENCES, "{count} references");
    let escaped = RawValue::from_string(spell_escaped(&parent)).unwrap();
    assert_eq!(read, path.read_references(&escaped, &ReadBudget::default()), "however the parent is spelled");
}
