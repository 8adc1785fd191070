//! An object's conditions as kstatus reads them.

use serde_json::Value;

use crate::json::WrongType;

/// One entry of `status.conditions`; an absent or null field is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct KstatusCondition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// Reads the conditions as typed Go structs are: one entry of another type fails the whole list.
pub(super) fn read_conditions(object: &Value) -> Result<Vec<KstatusCondition<'_>>, WrongType> {
    let status = match object.get("status") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(status @ Value::Object(_)) => status,
        Some(_) => return Err(WrongType::at_path(&["status"], "a map")),
    };
    let entries = match status.get("conditions") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(WrongType::at_path(&["status", "conditions"], "a list")),
    };
    entries.iter().map(read_condition).collect()
}

fn read_condition(entry: &Value) -> Result<KstatusCondition<'_>, WrongType> {
    if !entry.is_object() && !entry.is_null() {
        return Err(WrongType::at_path(&["status", "conditions", "[]"], "a map"));
    }
    let text = |key: &'static str| match entry.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(WrongType::at_path(&["status", "conditions", "[]", key], "a string")),
    };
    Ok(KstatusCondition {
        kind: text("type")?,
        status: text("status")?,
        reason: text("reason")?,
        message: text("message")?,
    })
}

pub(super) fn has_condition(conditions: &[KstatusCondition<'_>], kind: &str, status: &str) -> bool {
    conditions.iter().any(|c| c.kind == kind && c.status == status)
}
