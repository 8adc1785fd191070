//! `v1` and `events.k8s.io/v1` Events are one storage under two sets of field names.

use serde_json::{Value, json};

use super::meta::lacking;

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
    complete(event, group);
}

/// Writes out what is left empty, as far as this group writes it out.
pub(super) fn complete(event: &mut Value, group: &str) {
    if group.is_empty() {
        let core = json!({
            "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
            "reportingComponent": "", "reportingInstance": "",
        });
        lacking(event, &core);
        return;
    }
    lacking(
        event,
        &json!({"eventTime": null, "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null}),
    );
    if let Some(fields) = event.as_object_mut() {
        for name in ["reportingController", "reportingInstance"] {
            if fields.get(name) == Some(&json!("")) {
                fields.remove(name);
            }
        }
    }
}
