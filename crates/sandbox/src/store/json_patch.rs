//! JSON Patch (RFC 6902) as the real server applies it. It deviates from the RFC: an absent member reads as null, so a
//! `test` against null holds for it, and a `replace` of it adds it.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::server_json;

/// Reason why a patch does not apply. The real server does not report it; it is here for debugging tests.
pub(crate) type PatchMisfit = String;

/// One operation, and the source text of its value: a `test` compares texts.
#[derive(Debug)]
pub(crate) struct PatchOperation {
    fields: Value,
    text: Option<String>,
}

/// Parses a patch that is a list of operations.
pub(crate) fn parse_operations(body: &[u8], patch: &Value) -> Option<Vec<PatchOperation>> {
    let texts: Vec<BTreeMap<String, &RawValue>> = serde_json::from_slice(body).ok()?;
    let operations = patch.as_array()?.iter().zip(texts).map(|(fields, texts)| PatchOperation {
        fields: fields.clone(),
        text: texts.get("value").map(|text| text.get().to_owned()),
    });
    Some(operations.collect())
}

/// Applies all operations, or fails at the first that does not apply; after an error the caller discards `document`.
pub(crate) fn apply_operations(
    document: &mut Value,
    operations: &[PatchOperation],
) -> Result<(), PatchMisfit> {
    operations.iter().try_for_each(|operation| apply_operation(document, operation))
}

fn apply_operation(document: &mut Value, operation: &PatchOperation) -> Result<(), PatchMisfit> {
    let fields = &operation.fields;
    let text = |field: &str| fields[field].as_str().ok_or_else(|| format!("an operation without {field}"));
    let (what, path) = (text("op")?, text("path")?);
    let value = || fields["value"].clone();
    match what {
        "test" if path.is_empty() => check_test(operation.value_equals(document), path),
        "test" => {
            let place = find_location(document, path)?;
            check_test(operation.value_equals(place.read_value()?.unwrap_or(&Value::Null)), path)
        }
        "replace" if path.is_empty() => {
            *document = value();
            Ok(())
        }
        "add" => find_location(document, path)?.add_value(value()),
        "replace" => find_location(document, path)?.replace_value(value()),
        "remove" => find_location(document, path)?.remove_value().map(drop),
        "move" => {
            let moved = find_location(document, text("from")?)?.remove_value()?;
            find_location(document, path)?.add_value(moved)
        }
        "copy" => {
            let from = text("from")?;
            let copied = find_location(document, from)?
                .read_value()?
                .cloned()
                .ok_or_else(|| format!("copy of a missing {from}"))?;
            find_location(document, path)?.add_value(copied)
        }
        _ => Err(format!("unexpected operation {what}")),
    }
}

impl PatchOperation {
    fn value_equals(&self, value: &Value) -> bool {
        server_json::text_equals_value(self.text.as_deref().unwrap_or("null"), value)
    }
}

fn check_test(holds: bool, path: &str) -> Result<(), PatchMisfit> {
    if holds { Ok(()) } else { Err(format!("testing value {path} failed")) }
}

/// A location inside a document: the container and the key within it.
struct PatchLocation<'a> {
    container: &'a mut Value,
    key: String,
}

/// Finds the container of the last part of `path`; that part itself need not exist.
fn find_location<'a>(document: &'a mut Value, path: &str) -> Result<PatchLocation<'a>, PatchMisfit> {
    let missing = || format!("missing path: {path}");
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    if parts.next().is_none_or(|root| !root.is_empty()) {
        return Err(missing());
    }
    let parts: Vec<String> = parts.collect();
    let (key, way) = parts.split_last().ok_or_else(missing)?;
    let mut container = document;
    for part in way {
        container = match container {
            Value::Object(map) => map.get_mut(part),
            Value::Array(list) => list_index(part, list.len()).and_then(|at| list.get_mut(at)),
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    if container.is_object() || container.is_array() {
        Ok(PatchLocation { container, key: key.clone() })
    } else {
        Err(missing())
    }
}

/// Parses a list index; negative ones count from the end.
fn list_index(key: &str, length: usize) -> Option<usize> {
    let at: i64 = key.parse().ok()?;
    let distance = usize::try_from(at.unsigned_abs()).ok()?;
    if at < 0 { length.checked_sub(distance) } else { Some(distance) }
}

impl PatchLocation<'_> {
    fn wrong_index(&self) -> PatchMisfit {
        format!("unable to access invalid index: {}", self.key)
    }

    fn read_value(&self) -> Result<Option<&Value>, PatchMisfit> {
        match &*self.container {
            Value::Object(map) => Ok(map.get(&self.key)),
            Value::Array(list) => {
                let at = list_index(&self.key, list.len())
                    .filter(|at| *at < list.len())
                    .ok_or_else(|| self.wrong_index())?;
                Ok(Some(&list[at]))
            }
            _ => Ok(None),
        }
    }

    fn add_value(self, value: Value) -> Result<(), PatchMisfit> {
        let wrong = self.wrong_index();
        match self.container {
            Value::Object(map) => {
                map.insert(self.key, value);
            }
            Value::Array(list) if self.key == "-" => list.push(value),
            Value::Array(list) => {
                let at = list_index(&self.key, list.len() + 1).filter(|at| *at <= list.len()).ok_or(wrong)?;
                list.insert(at, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn replace_value(self, value: Value) -> Result<(), PatchMisfit> {
        let wrong = self.wrong_index();
        match self.container {
            Value::Object(map) => {
                map.insert(self.key, value);
            }
            Value::Array(list) => {
                let at = list_index(&self.key, list.len()).filter(|at| *at < list.len()).ok_or(wrong)?;
                list[at] = value;
            }
            _ => {}
        }
        Ok(())
    }

    fn remove_value(self) -> Result<Value, PatchMisfit> {
        let wrong = self.wrong_index();
        match self.container {
            Value::Object(map) => {
                map.remove(&self.key).ok_or_else(|| format!("unable to remove nonexistent key: {}", self.key))
            }
            Value::Array(list) => {
                let at = list_index(&self.key, list.len()).filter(|at| *at < list.len()).ok_or(wrong)?;
                Ok(list.remove(at))
            }
            _ => Err(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(patch: &Value) -> Option<Value> {
        let mut document = json!({"a": {"b": 1}, "list": [1, 2], "nil": null, "x/y": 1});
        let operations = parse_operations(patch.to_string().as_bytes(), patch).unwrap();
        apply_operations(&mut document, &operations).ok().map(|()| document)
    }

    #[test]
    fn a_test_against_null_holds_for_what_is_absent() {
        for path in ["/nil", "/absent", "/a/absent"] {
            assert!(after(&json!([{"op": "test", "path": path, "value": null}])).is_some(), "{path}");
        }
        for path in ["/absent/below", "/list/7", "/list/x", "/a/b"] {
            assert!(after(&json!([{"op": "test", "path": path, "value": null}])).is_none(), "{path}");
        }
    }

    #[test]
    fn a_failed_operation_fails_the_patch() {
        let bad = [
            json!([{"op": "remove", "path": "/absent"}]),
            json!([{"op": "add", "path": "/absent/below", "value": 1}]),
            json!([{"op": "add", "path": "/list/3", "value": 1}]),
            json!([{"op": "replace", "path": "/list/2", "value": 1}]),
            json!([{"op": "test", "path": "/a", "value": {"b": 2}}]),
            json!([{"op": "frobnicate", "path": "/a"}]),
            json!([{"path": "/a"}]),
            json!([{"op": "copy", "from": "/absent", "path": "/b"}]),
        ];
        for patch in bad {
            assert_eq!(after(&patch), None, "{patch}");
        }
    }

    #[test]
    fn replace_adds_an_absent_member() {
        assert_eq!(after(&json!([{"op": "replace", "path": "/c", "value": 1}])).unwrap()["c"], 1);
    }

    #[test]
    fn paths_are_unescaped_and_lists_indexed() {
        let done = after(&json!([
            {"op": "test", "path": "/x~1y", "value": 1},
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "add", "path": "/list/0", "value": 0},
            {"op": "remove", "path": "/list/1"},
            {"op": "move", "from": "/a/b", "path": "/c"},
            {"op": "copy", "from": "/c", "path": "/d"},
        ]))
        .unwrap();
        assert_eq!(done, json!({"a": {}, "list": [0, 2, 3], "nil": null, "x/y": 1, "c": 1, "d": 1}));
    }
}
