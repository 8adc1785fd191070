//! JSON as the real server writes it, to the byte, because a `test` in a JSON patch compares texts there: `"<"` is not
//! `"\u003c"`, and 1 is not 1.0.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Serializes a value as the real server does: characters that would break HTML or JavaScript are escaped, even within
/// strings.
pub(crate) fn to_server_json(value: &impl Serialize) -> Vec<u8> {
    // Cannot fail: the keys of all that is sent are texts.
    escape_html(serde_json::to_string(value).unwrap_or_default())
}

fn escape_html(text: String) -> Vec<u8> {
    // None of these characters can occur outside strings. 0xE2 is the first byte of the two line separators, among
    // others.
    if !text.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xE2)) {
        return text.into_bytes();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out.into_bytes()
}

/// Returns `true` if `text` denotes the given value of an object: objects and lists are compared member by member, all
/// else letter by letter.
pub(super) fn text_equals_value(text: &str, value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            serde_json::from_str::<BTreeMap<String, &RawValue>>(text).is_ok_and(|members| {
                members.len() == map.len()
                    && members.iter().all(|(name, text)| {
                        map.get(name).is_some_and(|value| text_equals_value(text.get(), value))
                    })
            })
        }
        Value::Array(list) => serde_json::from_str::<Vec<&RawValue>>(text).is_ok_and(|items| {
            items.len() == list.len()
                && items.iter().zip(list).all(|(text, value)| text_equals_value(text.get(), value))
        }),
        Value::Number(number) => text.trim() == format_number(number),
        other => text.trim().as_bytes() == to_server_json(other),
    }
}

/// Formats a number: a whole number has no decimal point, whatever it was written with.
fn format_number(number: &serde_json::Number) -> String {
    match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15) {
        Some(float) => format!("{float:.0}"),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_html_would_trip_over_is_escaped() {
        let text = json!({"<a>": "b & \u{2028}é'/\"\t\u{7f}"});
        let wanted = "{\"\\u003ca\\u003e\":\"b \\u0026 \\u2028é'/\\\"\\t\u{7f}\"}";
        assert_eq!(String::from_utf8(to_server_json(&text)).unwrap(), wanted);
    }

    #[test]
    fn texts_are_compared_and_not_what_they_mean() {
        let value = json!({"s": "a<b", "n": 1, "f": 1.5, "l": [true, null]});
        let says = |text: &str| text_equals_value(text, &value);
        assert!(
            says(r#"{"l": [ true, null ], "n": 1, "f":1.5, "s": "a\u003cb"}"#),
            "in any order, with any space"
        );
        for other in [
            "a<b\", \"n\": 1",
            "a\\u003Cb\", \"n\": 1",
            "a\\u003cb\", \"n\": 1.0",
            "a\\u003cb\", \"n\": \"1\"",
        ] {
            let text = format!(r#"{{"l": [true, null], "f": 1.5, "s": "{other}}}"#);
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            assert!(!says(&text), "{text}");
        }
    }
}
