//! Reading JSON text where it stands: one level at a time, so that depth costs nothing and nothing is copied.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The members of an object; of a repeated key the last one. Empty where it is none.
pub fn members(value: &RawValue) -> FxHashMap<Cow<'_, str>, &RawValue> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// One member of an object.
pub fn member<'a>(value: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    members(value).remove(key)
}

/// The elements of a list; `None` where it is none.
pub fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// What stands at the end of a path of members.
pub fn at<'a>(value: &'a RawValue, path: &[impl AsRef<str>]) -> Option<&'a RawValue> {
    path.iter().try_fold(value, |value, key| member(value, key.as_ref()))
}

/// A string, number or boolean as text.
pub fn scalar(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.as_bytes().first()? {
        b'"' => string(value),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(text)),
    }
}

/// A string.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(value.get()).ok().map(|t| t.0)
}

/// A whole number.
pub fn integer(value: &RawValue) -> Option<i64> {
    value.get().parse().ok()
}

/// `null`, which the API treats as absent.
pub fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}
