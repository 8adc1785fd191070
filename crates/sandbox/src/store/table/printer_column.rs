//! Printer columns of a CRD.

use serde_json::{Value, json};

use super::age;
use super::json_path::JsonPath;
use crate::store::message::EpochMillis;

/// A printer column of a CRD.
#[derive(Clone, Debug)]
pub(crate) struct PrinterColumn {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) priority: i64,
    pub(super) path: JsonPath,
}

/// Returns the printer columns of a CRD version.
pub(in crate::store) fn parse_columns(version: &Value) -> Vec<PrinterColumn> {
    let text = |column: &Value, field: &str| column[field].as_str().unwrap_or_default().to_owned();
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    columns
        .map(|column| PrinterColumn {
            name: text(column, "name"),
            kind: text(column, "type"),
            format: text(column, "format"),
            priority: column["priority"].as_i64().unwrap_or(0),
            path: JsonPath::parse(column["jsonPath"].as_str().unwrap_or_default()),
        })
        .collect()
}

impl PrinterColumn {
    pub(super) fn cell_value(&self, now: EpochMillis, object: &Value) -> Value {
        let found = self.path.find(object);
        let Some(first) = found.first() else { return Value::Null };
        match (self.kind.as_str(), first) {
            ("date", value) => age::age_since(now, value),
            ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => (*first).clone(),
            ("string", value) => json!(value.as_str().map_or_else(|| value.to_string(), Into::into)),
            _ => Value::Null,
        }
    }
}
