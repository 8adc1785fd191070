//! `v1` and `events.k8s.io/v1` Events are one storage under two sets of field names.

use serde_json::{Value, json};

use super::meta::fill_missing;

/// Field names in the core group and in `events.k8s.io`.
const EVENT_FIELD_NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Renames the fields of an Event to those of `group`.
pub(super) fn convert_event(event: &mut Value, group: &str) {
    let Some(fields) = event.as_object_mut() else { return };
    for (core, events) in EVENT_FIELD_NAMES {
        let (from, to) = if group.is_empty() { (events, core) } else { (core, events) };
        if let Some(value) = fields.remove(from) {
            fields.insert(to.into(), value);
        }
    }
    complete_event(event, group);
}

/// Writes the empty fields that this group writes explicitly.
pub(super) fn complete_event(event: &mut Value, group: &str) {
    if group.is_empty() {
        let core = json!({
            "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
            "reportingComponent": "", "reportingInstance": "",
        });
        fill_missing(event, &core);
        return;
    }
    fill_missing(
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
