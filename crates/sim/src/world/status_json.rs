//! Conditions in the JSON of a status.

use serde_json::Value;

/// Returns `true` if a condition has this type and the status True.
pub(crate) fn has_true_condition(status: &Value, kind: &str) -> bool {
    conditions_of(status).iter().any(|c| c["type"] == kind && c["status"] == "True")
}

/// Returns `conditions`; empty if there are none.
pub(crate) fn conditions_of(status: &Value) -> &[Value] {
    status["conditions"].as_array().map_or(&[], Vec::as_slice)
}
