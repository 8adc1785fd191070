//! One cell of a table.

use serde_json::Value;

/// A cell, with its column.
pub(super) struct TableCell {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) priority: i64,
    pub(super) value: Value,
}

pub(super) fn text_cell(name: &str, value: Value) -> TableCell {
    TableCell { name: name.into(), kind: "string".into(), format: String::new(), priority: 0, value }
}
