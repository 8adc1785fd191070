//! Tables, as kubectl requests them for display.

mod age;
mod builtin;
mod json_path;
mod printer_column;
mod table_cell;

use serde_json::{Value, json};

pub(crate) use printer_column::PrinterColumn;
pub(super) use printer_column::parse_columns;

use table_cell::{TableCell, text_cell};

use super::kind::SandboxKind;
use super::message::{EpochMillis, StoreRequest};
use super::meta;

/// Returns a response as a table: a list, or one object.
pub(super) fn to_table(
    kind: &SandboxKind,
    now: EpochMillis,
    request: &StoreRequest,
    answer: &Value,
) -> Value {
    let items = match answer["items"].as_array() {
        Some(items) if answer["kind"] == kind.list_kind.as_str() => items.iter().collect(),
        _ => vec![answer],
    };
    let columns: Vec<Value> = object_cells(kind, now, &Value::Null).iter().map(column_definition).collect();
    let rows: Vec<Value> = items.iter().map(|object| table_row(kind, now, request, object)).collect();
    let mut metadata = json!({});
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if !answer["metadata"][field].is_null() {
            metadata[field] = answer["metadata"][field].clone();
        }
    }
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": rows})
}

fn table_row(kind: &SandboxKind, now: EpochMillis, request: &StoreRequest, object: &Value) -> Value {
    let values: Vec<Value> = object_cells(kind, now, object).into_iter().map(|cell| cell.value).collect();
    let mut row = json!({ "cells": values });
    match request.query_param("includeObject") {
        Some("None") => row["object"] = Value::Null,
        Some("Object") => row["object"] = object.clone(),
        _ => {
            row["object"] = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
        }
    }
    row
}

fn column_definition(cell: &TableCell) -> Value {
    json!({"name": cell.name, "type": cell.kind, "format": cell.format, "description": "", "priority": cell.priority})
}

fn object_cells(kind: &SandboxKind, now: EpochMillis, object: &Value) -> Vec<TableCell> {
    let mut cells = vec![TableCell { format: "name".into(), ..text_cell("Name", json!(meta::name(object))) }];
    if !kind.traits.custom {
        cells.extend(builtin::builtin_cells(kind, now, object));
        return cells;
    }
    for column in &kind.columns {
        cells.push(TableCell {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            priority: column.priority,
            value: column.cell_value(now, object),
        });
    }
    if kind.columns.is_empty() {
        cells.push(TableCell {
            kind: "date".into(),
            ..text_cell("Age", age::age_since(now, &object["metadata"]["creationTimestamp"]))
        });
    }
    cells
}
