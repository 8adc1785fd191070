//! Fields of an object as Go code finds them: a walk over nested maps that tells absent, null and wrong type apart.
//!
//! The peers judge through `unstructured.Nested…`; what they call an error decides their verdict, so it is kept here.

use serde_json::Value;

/// A field was there, but not of the type its reader asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {wanted}")]
pub(crate) struct WrongType {
    /// Dotted path of the value that does not fit.
    pub(crate) path: String,
    /// What was asked for, with its article.
    pub(crate) wanted: &'static str,
}

impl WrongType {
    pub(crate) fn at(path: &[&str], wanted: &'static str) -> WrongType {
        WrongType { path: path.join("."), wanted }
    }
}

/// The value at `path`: `None` where a key is missing or a parent is null, an error where a parent is no map.
///
/// A null at the end of the path is a value.
pub(crate) fn field<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Value>, WrongType> {
    let mut value = object;
    for (depth, key) in path.iter().enumerate() {
        match value {
            Value::Null if depth > 0 => return Ok(None),
            Value::Object(map) => match map.get(*key) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            _ => return Err(WrongType::at(&path[..depth], "a map")),
        }
    }
    Ok(Some(value))
}

/// The string at `path`. Null is a wrong type.
pub(crate) fn string<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a str>, WrongType> {
    match field(object, path)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(WrongType::at(path, "a string")),
    }
}

/// The integer at `path`. Null, a fraction and a number beyond 64 bits are wrong types.
pub(crate) fn integer(object: &Value, path: &[&str]) -> Result<Option<i64>, WrongType> {
    match field(object, path)? {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| WrongType::at(path, "an integer")),
    }
}

/// The string at `path`, or `otherwise` where there is none.
pub(crate) fn string_or<'a>(object: &'a Value, path: &[&str], otherwise: &'a str) -> &'a str {
    field(object, path).ok().flatten().and_then(Value::as_str).unwrap_or(otherwise)
}

/// The integer at `path`, or `otherwise` where there is none.
pub(crate) fn integer_or(object: &Value, path: &[&str], otherwise: i64) -> i64 {
    field(object, path).ok().flatten().and_then(Value::as_i64).unwrap_or(otherwise)
}

/// Group, version and kind of an object; all empty where its `apiVersion` has more than one slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gvk<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

impl<'a> Gvk<'a> {
    pub(crate) fn of(object: &'a Value) -> Gvk<'a> {
        Gvk::new(string_or(object, &["apiVersion"], ""), string_or(object, &["kind"], ""))
    }

    pub(crate) fn new(api_version: &'a str, kind: &'a str) -> Gvk<'a> {
        match (api_version, api_version.split_once('/')) {
            ("" | "/", _) => Gvk { group: "", version: "", kind },
            (version, None) => Gvk { group: "", version, kind },
            (_, Some((_, rest))) if rest.contains('/') => Gvk { group: "", version: "", kind: "" },
            (_, Some((group, version))) => Gvk { group, version, kind },
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
        assert_eq!(field(&object, &["status", "phase"]), Ok(None));
        assert!(integer(&object, &["metadata", "generation"]).is_err());
    }

    #[test]
    fn a_parent_that_is_no_map_is_an_error_with_its_path() {
        let error = string(&json!({"status": {"a": "x"}}), &["status", "a", "b"]).unwrap_err();
        assert_eq!(error.to_string(), "status.a is not a map");
    }

    #[test]
    fn an_api_version_with_two_slashes_has_no_kind() {
        assert_eq!(Gvk::new("a/b/c", "Job"), Gvk { group: "", version: "", kind: "" });
        assert_eq!(Gvk::new("batch/v1", "Job"), Gvk { group: "batch", version: "v1", kind: "Job" });
        assert_eq!(Gvk::new("v1", "Pod"), Gvk { group: "", version: "v1", kind: "Pod" });
    }
}
