//! Reading of JSON text in place: one level at a time, so that depth costs nothing and nothing is copied.

use std::borrow::Cow;

use serde::de::DeserializeSeed;
use serde_json::value::RawValue;

use super::json_members::{BorrowedText, JsonMembers, MemberSeed};

/// Returns the members of an object, the last one of a repeated key. Empty if the value is not an object.
pub fn all_members(value: &RawValue) -> JsonMembers<'_> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// Returns one member of an object, the last one of a repeated key.
pub fn get_member<'a>(value: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    MemberSeed(key).deserialize(&mut serde_json::Deserializer::from_str(value.get())).ok().flatten()
}

/// Returns the elements of a list; `None` if the value is not a list.
pub fn list_elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the value at a path of members.
pub fn get_path<'a>(value: &'a RawValue, path: &[impl AsRef<str>]) -> Option<&'a RawValue> {
    path.iter().try_fold(value, |value, key| get_member(value, key.as_ref()))
}

/// Returns a string, number or boolean as text.
pub fn scalar_text(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'"' => string_value(value),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(text)),
    }
}

/// Returns a string.
pub fn string_value(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<BorrowedText<'_>>(value.get()).ok().map(|t| t.0)
}

/// Returns an integer.
pub fn integer_value(value: &RawValue) -> Option<i64> {
    value.get().parse().ok()
}

/// Returns `true` for `null`, which the API treats as absent.
pub fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}
