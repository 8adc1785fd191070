//! One line of a table, and the object that it stands for.
//!
//! `HEAD apiVersion Kind | part | part …`, where a part is `+True`, `-False` or `?Unknown` with a condition's type, reason and
//! message behind it, or `path=value`: below `status`, unless it begins with `spec.` or `metadata.`. `gen`, `obs`,
//! `obs.TYPE`, `at.TYPE` and `severity.TYPE` stand for the generations, for a condition's `lastTransitionTime` (in seconds
//! after the creation, or null) and for its severity; `status_raw` for the whole status.
//! Every object was created at 2026-01-01T00:00:00Z.

use readiness::{RuleKind, Time};
use serde_json::{Map, Value, json};
use watcher::wire::ChildObject;

/// When every object of a table was created.
pub(crate) const CREATED: Time = Time(1_767_225_600_000);

/// Reads an object as the service reads it.
pub(crate) fn decode(object: &Value) -> ChildObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// The kind of a decoded object, as far as its judge is concerned.
pub(crate) fn kind_of(child: &ChildObject) -> RuleKind {
    let group = child.meta.api_version.split_once('/').map_or("", |(group, _)| group);
    RuleKind::from_group_kind(group, &child.meta.kind)
}

/// The lines of a table that are neither empty nor a comment.
pub(crate) fn table_lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What stands before the object in a line, and the object.
pub(crate) fn parse_line(line: &str) -> (&str, Value) {
    let mut parts = line.split(" | ");
    let mut head = parts.next().unwrap().split(' ');
    let expected = head.next().unwrap();
    let (api_version, kind) = (head.next().unwrap(), head.next().unwrap());
    let metadata = json!({"name": "x", "creationTimestamp": moment_text(0)});
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    for part in parts {
        let (first, rest) = part.split_at(1);
        match (first, part.split_once('=')) {
            ("+" | "-" | "?", _) => add_condition(&mut object, first, rest),
            (_, Some((path, value))) => set_field(&mut object, path, value),
            _ => panic!("{line}: {part}"),
        }
    }
    (expected, object)
}

/// Appends a condition, given as `TYPE:REASON:MESSAGE`.
pub(crate) fn add_condition(object: &mut Value, sign: &str, text: &str) {
    let mut parts = text.splitn(3, ':');
    let mut condition = json!({"type": parts.next().unwrap(), "lastTransitionTime": moment_text(0)});
    condition["status"] = match sign {
        "+" => "True".into(),
        "-" => "False".into(),
        _ => "Unknown".into(),
    };
    for (key, value) in ["reason", "message"].into_iter().zip(parts).filter(|(_, value)| !value.is_empty()) {
        condition[key] = value.into();
    }
    conditions_of(object).push(condition);
}

/// The list of conditions; it is made where there is none.
pub(crate) fn conditions_of(object: &mut Value) -> &mut Vec<Value> {
    value_at(object, "status.conditions", json!([])).as_array_mut().unwrap()
}

/// Sets a field to a value, given as JSON or else as a plain text.
pub(crate) fn set_field(object: &mut Value, path: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    let of_condition =
        [("obs.", "observedGeneration"), ("at.", "lastTransitionTime"), ("severity.", "severity")];
    for (prefix, field) in of_condition {
        if let Some(name) = path.strip_prefix(prefix) {
            let found = conditions_of(object).iter_mut().find(|c| c["type"] == name).unwrap();
            let moment = value.as_i64().filter(|_| prefix == "at.").map(|second| moment_text(second).into());
            found[field] = moment.unwrap_or(value);
            return;
        }
    }
    let path = match path {
        "gen" => "metadata.generation".to_owned(),
        "obs" => "status.observedGeneration".to_owned(),
        "conditions_raw" => "status.conditions".to_owned(),
        "endpoints" => return object["endpoints"] = value,
        "status_raw" => return object["status"] = value,
        path if path.starts_with("spec.") || path.starts_with("metadata.") => path.to_owned(),
        path => format!("status.{path}"),
    };
    *value_at(object, &path, Value::Null) = value;
}

/// The value at a dotted path; what is missing on the way is made.
fn value_at<'a>(object: &'a mut Value, path: &str, otherwise: Value) -> &'a mut Value {
    let (above, last) = path.rsplit_once('.').unwrap();
    let mut at = object;
    for key in above.split('.') {
        at = at.as_object_mut().unwrap().entry(key).or_insert_with(|| Value::Object(Map::new()));
    }
    at.as_object_mut().unwrap().entry(last).or_insert(otherwise)
}

/// So many seconds after the creation, as the API server writes it.
fn moment_text(second: i64) -> String {
    Time(CREATED.0 + second * 1_000).to_string()
}
