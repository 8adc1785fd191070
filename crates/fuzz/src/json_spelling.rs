//! Other spellings of one JSON value: every reader has to read the same in them.

use std::fmt::Write;

use serde_json::Value;

/// With every character of every text escaped.
pub(crate) fn spell_escaped(value: &Value) -> String {
    let mut text = String::new();
    write_escaped(value, &mut text);
    text
}

fn write_escaped(value: &Value, out: &mut String) {
    match value {
        Value::String(string) => write_escaped_text(string, out),
        Value::Array(items) => {
            out.push_str("[ ");
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { " ,\n" });
                write_escaped(item, out);
            }
            out.push_str("\t]");
        }
        Value::Object(members) => {
            out.push_str("{\r");
            for (at, (key, member)) in members.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { " , " });
                write_escaped_text(key, out);
                out.push_str(" : ");
                write_escaped(member, out);
            }
            out.push_str("\n }");
        }
        scalar => write!(out, "{scalar}").unwrap(),
    }
}

fn write_escaped_text(text: &str, out: &mut String) {
    out.push('"');
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04x}").unwrap();
    }
    out.push('"');
}
