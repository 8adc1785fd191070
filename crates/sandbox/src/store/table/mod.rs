//! Tables: what kubectl asks for when it shows objects to people.

mod age;
mod builtin;
mod path;

use serde_json::{Value, json};

pub(crate) use path::Path;

use super::kind::Kind;
use super::message::{Millis, Request};
use super::meta;

/// A column that a CRD describes.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    priority: i64,
    path: Path,
}

/// A cell, under the column it stands in.
struct Cell {
    name: String,
    kind: String,
    format: String,
    priority: i64,
    value: Value,
}

/// The columns of a version of a CRD.
pub(super) fn columns(version: &Value) -> Vec<Column> {
    let text = |column: &Value, field: &str| column[field].as_str().unwrap_or_default().to_owned();
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    columns
        .map(|column| Column {
            name: text(column, "name"),
            kind: text(column, "type"),
            format: text(column, "format"),
            priority: column["priority"].as_i64().unwrap_or(0),
            path: Path::parse(column["jsonPath"].as_str().unwrap_or_default()),
        })
        .collect()
}

/// An answer as a table: a list, or one object.
pub(super) fn of(kind: &Kind, now: Millis, request: &Request, answer: &Value) -> Value {
    let items = match answer["items"].as_array() {
        Some(items) if answer["kind"] == kind.list_kind.as_str() => items.iter().collect(),
        _ => vec![answer],
    };
    let columns: Vec<Value> = cells(kind, now, &Value::Null).iter().map(definition).collect();
    let rows: Vec<Value> = items.iter().map(|object| row(kind, now, request, object)).collect();
    let mut metadata = json!({});
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if !answer["metadata"][field].is_null() {
            metadata[field] = answer["metadata"][field].clone();
        }
    }
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": rows})
}

fn row(kind: &Kind, now: Millis, request: &Request, object: &Value) -> Value {
    let values: Vec<Value> = cells(kind, now, object).into_iter().map(|cell| cell.value).collect();
    let mut row = json!({ "cells": values });
    match request.param("includeObject") {
        Some("None") => row["object"] = Value::Null,
        Some("Object") => row["object"] = object.clone(),
        _ => {
            row["object"] = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
        }
    }
    row
}

fn definition(cell: &Cell) -> Value {
    json!({"name": cell.name, "type": cell.kind, "format": cell.format, "description": "", "priority": cell.priority})
}

fn cells(kind: &Kind, now: Millis, object: &Value) -> Vec<Cell> {
    let mut cells = vec![Cell { format: "name".into(), ..cell("Name", json!(meta::name(object))) }];
    if !kind.traits.custom {
        cells.extend(builtin::cells(kind, now, object));
        return cells;
    }
    for column in &kind.columns {
        cells.push(Cell {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            priority: column.priority,
            value: column.value(now, object),
        });
    }
    if kind.columns.is_empty() {
        cells.push(Cell {
            kind: "date".into(),
            ..cell("Age", age::since(now, &object["metadata"]["creationTimestamp"]))
        });
    }
    cells
}

fn cell(name: &str, value: Value) -> Cell {
    Cell { name: name.into(), kind: "string".into(), format: String::new(), priority: 0, value }
}

impl Column {
    fn value(&self, now: Millis, object: &Value) -> Value {
        let found = self.path.find(object);
        let Some(first) = found.first() else { return Value::Null };
        match (self.kind.as_str(), first) {
            ("date", value) => age::since(now, value),
            ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => (*first).clone(),
            ("string", value) => json!(value.as_str().map_or_else(|| value.to_string(), Into::into)),
            _ => Value::Null,
        }
    }
}
