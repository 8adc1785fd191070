//! Assertions about one answer, and the formatting of values for failures.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Returns the expectations that an answer does not meet, as text.
pub(super) fn unmet_expectations(
    body: &Value,
    expect: &BTreeMap<String, Value>,
    saved: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut failures = Vec::new();
    for (pointer, wanted) in expect {
        let found = body.pointer(pointer);
        if !expectation_holds(found, wanted, saved) {
            let found = found.map_or_else(|| "nothing".into(), shorten_json);
            failures.push(format!("{pointer} should be {wanted}, is {found}"));
        }
    }
    failures
}

/// Returns `true` if a value matches an expectation: the value itself, or `{"$present": bool}`, `{"$contains": text}`,
/// `{"$starts": text}`, `{"$size": n}`, `{"$saved": name}`, `{"$unlike": name}`, `{"$names": [names of the items]}`,
/// `{"$holds": part of an object}`, `{"$any": [values]}`.
fn expectation_holds(found: Option<&Value>, wanted: &Value, saved: &BTreeMap<String, String>) -> bool {
    let Some((how, what)) = wanted
        .as_object()
        .filter(|map| map.len() == 1)
        .and_then(|map| map.iter().next())
        .filter(|(how, _)| how.starts_with('$'))
    else {
        return found == Some(wanted);
    };
    let text = || found.and_then(Value::as_str).unwrap_or_default();
    let named = || what.as_str().and_then(|name| saved.get(name)).map(String::as_str);
    match how.as_str() {
        "$present" => found.is_some_and(|found| !found.is_null()) == (*what == json!(true)),
        "$contains" => text().contains(what.as_str().unwrap_or("\0")),
        "$starts" => text().starts_with(what.as_str().unwrap_or("\0")),
        "$size" => value_size(found) == what.as_u64(),
        "$saved" => named() == Some(&plain_text(found)),
        "$unlike" => named() != Some(&plain_text(found)),
        "$names" => item_names(found) == *what,
        "$holds" => found.is_some_and(|found| contains_part(found, what)),
        "$any" => what
            .as_array()
            .is_some_and(|values| values.iter().any(|value| found.unwrap_or(&Value::Null) == value)),
        _ => false,
    }
}

fn value_size(found: Option<&Value>) -> Option<u64> {
    match found? {
        Value::Array(list) => Some(list.len() as u64),
        Value::Object(map) => Some(map.len() as u64),
        _ => None,
    }
}

/// Returns `true` if `whole` contains everything in `part`.
fn contains_part(whole: &Value, wanted: &Value) -> bool {
    match (whole, wanted) {
        (Value::Object(whole), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| whole.get(key).is_some_and(|whole| contains_part(whole, wanted))),
        (Value::Array(whole), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| whole.iter().any(|whole| contains_part(whole, wanted)))
        }
        _ => whole == wanted,
    }
}

fn item_names(list: Option<&Value>) -> Value {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|item| item["metadata"]["name"].clone())
        .collect()
}

/// Formats a value for use in later requests.
pub(super) fn plain_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

pub(super) fn shorten_json(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= 300 { text } else { format!("{}…", text.chars().take(300).collect::<String>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_holds_or_is_told() {
        let body =
            json!({"a": {"list": [{"metadata": {"name": "x"}}, 2]}, "text": "a long word", "null": null});
        let saved = BTreeMap::from([("word".to_owned(), "a long word".to_owned())]);
        let cases = [
            ("/text", json!("a long word"), json!("a long")),
            ("/text", json!({"$contains": "long"}), json!({"$contains": "short"})),
            ("/text", json!({"$starts": "a "}), json!({"$starts": "long"})),
            ("/text", json!({"$saved": "word"}), json!({"$saved": "other"})),
            ("/a", json!({"$unlike": "word"}), json!({"$unknown": 1})),
            ("/a/list", json!({"$size": 2}), json!({"$size": 3})),
            ("/a/list", json!({"$holds": [2]}), json!({"$holds": [3]})),
            ("/null", json!({"$present": false}), json!({"$present": true})),
            ("/none", json!({"$present": false}), json!(null)),
            ("/none", json!({"$any": [null, 1]}), json!({"$any": [1]})),
        ];
        for (pointer, holds, fails) in cases {
            let told = |wanted: &Value| {
                unmet_expectations(&body, &BTreeMap::from([(pointer.to_owned(), wanted.clone())]), &saved)
            };
            assert!(told(&holds).is_empty(), "{pointer} {holds}: {:?}", told(&holds));
            assert_eq!(told(&fails).len(), 1, "{pointer} {fails}");
        }
    }
}
