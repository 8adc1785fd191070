//! Reads fields as Argo CD's Go code converts them, and quotes text as Go does.

use serde_json::{Number, Value};

use crate::json;

/// Returns the string at `path`, empty if there is none.
pub(super) fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    json::string_or(object, path, "")
}

/// Returns the list at `path`, empty if there is none.
pub(super) fn list_at<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    match json::field_at(object, path) {
        Ok(Some(Value::Array(items))) => items,
        _ => &[],
    }
}

/// Returns the number at `path`, converted to int64 as in Go.
pub(super) fn int64_at(object: &Value, path: &[&str]) -> Option<i64> {
    match json::field_at(object, path) {
        Ok(Some(Value::Number(number))) => Some(to_go_int64(number)),
        _ => None,
    }
}

/// Returns the number at `path`, converted to int32 as in Go: higher bits are dropped silently.
#[expect(clippy::cast_possible_truncation, reason = "Go drops the higher bits too")]
pub(super) fn int32_at(object: &Value, path: &[&str]) -> Option<i32> {
    int64_at(object, path).map(|number| number as i32)
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn to_go_int64(number: &Number) -> i64 {
    const INT64_LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole,
        (None, Some(float)) if (-INT64_LIMIT..INT64_LIMIT).contains(&float) => float as i64,
        _ => i64::MIN,
    }
}

/// Quotes a string as Go's `%q`.
pub(super) fn quote_go(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.extend(['\\', 'x'].into_iter().chain(hex_digits(c as u32, 2))),
            c if c.is_control() => out.extend(['\\', 'u'].into_iter().chain(hex_digits(c as u32, 4))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn hex_digits(code: u32, digits: u32) -> impl Iterator<Item = char> {
    (0..digits).rev().filter_map(move |at| char::from_digit(code >> (4 * at) & 0xf, 16))
}
