//! Reads fields of an object as Go code does: a walk over nested maps that distinguishes absent, null and wrong type.
//!
//! The peers read through `unstructured.Nested…`, and its errors decide their verdicts, so they are reproduced here.

use serde_json::Value;

/// A field has another type than its reader expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {wanted}")]
pub(crate) struct WrongType {
    /// Dotted path of the value with the wrong type.
    pub(crate) path: String,
    /// The expected type, with its article.
    pub(crate) wanted: &'static str,
}

impl WrongType {
    pub(crate) fn at_path(path: &[&str], wanted: &'static str) -> WrongType {
        WrongType { path: path.join("."), wanted }
    }
}

/// Returns the value at `path`: `None` if a key is missing or a parent is null, an error if a parent is no map.
///
/// A null at the end of the path is a value.
pub(crate) fn field_at<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Value>, WrongType> {
    let mut value = object;
    for (depth, key) in path.iter().enumerate() {
        match value {
            Value::Null if depth > 0 => return Ok(None),
            Value::Object(map) => match map.get(*key) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            _ => return Err(WrongType::at_path(&path[..depth], "a map")),
        }
    }
    Ok(Some(value))
}

/// Returns the string at `path`. Null is a wrong type.
pub(crate) fn string_at<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a str>, WrongType> {
    match field_at(object, path)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(WrongType::at_path(path, "a string")),
    }
}

/// Returns the integer at `path`. Null, a fraction and a number beyond 64 bits are wrong types.
pub(crate) fn integer_at(object: &Value, path: &[&str]) -> Result<Option<i64>, WrongType> {
    match field_at(object, path)? {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| WrongType::at_path(path, "an integer")),
    }
}

/// Returns the string at `path`, or `otherwise` if there is none.
pub(crate) fn string_or<'a>(object: &'a Value, path: &[&str], otherwise: &'a str) -> &'a str {
    field_at(object, path).ok().flatten().and_then(Value::as_str).unwrap_or(otherwise)
}

/// Returns the integer at `path`, or `otherwise` if there is none.
pub(crate) fn integer_or(object: &Value, path: &[&str], otherwise: i64) -> i64 {
    field_at(object, path).ok().flatten().and_then(Value::as_i64).unwrap_or(otherwise)
}

/// Group, version and kind of an object; all empty if its `apiVersion` has more than one slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectGvk<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

impl<'a> ObjectGvk<'a> {
    pub(crate) fn of_object(object: &'a Value) -> ObjectGvk<'a> {
        ObjectGvk::new(string_or(object, &["apiVersion"], ""), string_or(object, &["kind"], ""))
    }

    pub(crate) fn new(api_version: &'a str, kind: &'a str) -> ObjectGvk<'a> {
        match (api_version, api_version.split_once('/')) {
            ("" | "/", _) => ObjectGvk { group: "", version: "", kind },
            (version, None) => ObjectGvk { group: "", version, kind },
            (_, Some((_, rest))) if rest.contains('/') => ObjectGvk { group: "", version: "", kind: "" },
            (_, Some((group, version))) => ObjectGvk { group, version, kind },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_parent_is_absence_and_a_null_leaf_is_a_value() {
        let object = json!({"status": null, "metadata": {"generation": null}});
        assert_eq!(field_at(&object, &["status", "phase"]), Ok(None));
        assert!(integer_at(&object, &["metadata", "generation"]).is_err());
    }

    #[test]
    fn a_parent_that_is_no_map_is_an_error_with_its_path() {
        let error = string_at(&json!({"status": {"a": "x"}}), &["status", "a", "b"]).unwrap_err();
        assert_eq!(error.to_string(), "status.a is not a map");
    }

    #[test]
    fn an_api_version_with_two_slashes_has_no_kind() {
        assert_eq!(ObjectGvk::new("a/b/c", "Job"), ObjectGvk { group: "", version: "", kind: "" });
        assert_eq!(
            ObjectGvk::new("batch/v1", "Job"),
            ObjectGvk { group: "batch", version: "v1", kind: "Job" }
        );
        assert_eq!(ObjectGvk::new("v1", "Pod"), ObjectGvk { group: "", version: "v1", kind: "Pod" });
    }
}
