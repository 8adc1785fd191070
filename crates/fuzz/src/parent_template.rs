//! Templates over a parent (`watcher::plan::ParentTemplate`), beside a plain reading of what they promise.

use serde_json::Value;
use serde_json::value::RawValue;
use watcher::plan::{ParentTemplate, ReadBudget};

use crate::input_parts::split_parts;

pub(crate) const PARENT_TEMPLATE_WORDS: &[&str] = &[
    "{parent.metadata.name}",
    "{parent.spec.",
    "{",
    "}",
    ".",
    " ",
    "{parent.}",
    "['",
    "']",
    "[0]",
    "\"spec\":{",
    "\"name\":",
    "\n---\n",
];

/// Rendering says what the plain reading says.
pub(crate) fn run(data: &[u8]) {
    let Some((text, parent)) = split_parts(data) else { return };
    let template = ParentTemplate::parse(text);
    let expected = Value::Null;
    let parent = serde_json::from_str::<Value>(parent).unwrap_or(expected);
    let raw = RawValue::from_string(parent.to_string()).unwrap();
    match template {
        Ok(template) => {
            let rendered = template.render(&raw, &ReadBudget::default());
            assert_eq!(rendered.as_ref().ok(), render_plainly(text, &parent).as_ref());
            if let Err(error) = rendered {
                assert!(error.to_string().contains("parent"), "{error}");
            }
            assert!(template.root_fields().all(|field| !field.is_empty() && text.contains(field)));
        }
        Err(_) => assert!(text.contains(['{', '}']), "text without braces is a template"),
    }
}

/// The value at a path such as `.spec.parts[0]['a.b']`.
fn read_plainly<'v>(path: &str, value: &'v Value) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    if let Some(quoted) = path.strip_prefix("['") {
        let (name, rest) = quoted.split_once("']")?;
        return read_plainly(rest, value.as_object()?.get(name)?);
    }
    if let Some(numbered) = path.strip_prefix('[') {
        let (index, rest) = numbered.split_once(']')?;
        return read_plainly(rest, value.as_array()?.get(index.parse::<usize>().ok()?)?);
    }
    let named = path.strip_prefix('.')?;
    let end = named.find(['.', '[']).unwrap_or(named.len());
    read_plainly(&named[end..], value.as_object()?.get(&named[..end])?)
}

/// Puts the fields of the parent into the text; `None` where one is none.
fn render_plainly(text: &str, parent: &Value) -> Option<String> {
    let mut parts = text.split('{');
    let mut rendered = parts.next()?.to_owned();
    for part in parts {
        let (field, rest) = part.split_once('}')?;
        let value = read_plainly(field.trim().strip_prefix("parent")?, parent)?;
        match value {
            Value::String(text) => rendered.push_str(text),
            Value::Bool(_) | Value::Number(_) => rendered.push_str(&value.to_string()),
            _ => return None,
        }
        rendered.push_str(rest);
    }
    Some(rendered)
}
