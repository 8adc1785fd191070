//! `v1` and `events.k8s.io/v1` Events are one storage under two sets of field names.

use serde_json::Value;

/// Core name, then the name in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Renames the fields to those of `group`.
pub(super) fn convert(event: &mut Value, group: &str) {
    let Some(fields) = event.as_object_mut() else { return };
    for (core, events) in NAMES {
        let (from, to) = if group.is_empty() { (events, core) } else { (core, events) };
        if let Some(value) = fields.remove(from) {
            fields.insert(to.into(), value);
        }
    }
}
