//! What a Kopf operator leaves on its objects: what it handled last, and how far its handlers are. Both are only read.
//!
//! Kopf keeps them as annotations under its own prefix or one of the operator's, or in `status.kopf`. A cycle's handlers
//! note their progress one by one; once all of them are done, their notes go and the handled configuration is noted.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::status::raw;

/// What was handled last.
const MARK: &str = "last-handled-configuration";
/// Marks a prefix as one of Kopf's.
const MARKER: &str = "kopf-managed";
/// The default prefix.
const PREFIX: &str = "kopf.zalando.org";
/// A note longer than this is not read: what would be quoted of it is short.
const LONGEST: usize = 16 * 1_024;
/// So much of a handler's message is quoted.
const QUOTED: usize = 200;
/// So many handlers are named.
const NAMED: usize = 2;

/// What Kopf says of one object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kopf {
    /// It has handled the current spec; `None` where nothing tells that it handles the object at all.
    pub(super) handled: Option<bool>,
    /// There is a mark, whatever it says.
    pub(super) marked: bool,
    /// What holds it up, in words.
    pub(super) progress: Option<Box<str>>,
}

/// Reads an object. What cannot be understood says nothing.
pub(super) fn read(object: &RawValue) -> Kopf {
    let annotations = raw::at(object, &["metadata", "annotations"]).map(raw::members).unwrap_or_default();
    let status = raw::at(object, &["status", "kopf"]);
    let mut marks: Vec<_> =
        annotations.iter().filter(|(key, _)| name_of(key).is_some_and(|(_, name)| name == MARK)).collect();
    marks.sort_by(|a, b| a.0.cmp(b.0));
    let mark = marks.first().map(|(_, mark)| **mark).or_else(|| raw::member(status?, MARK));
    let handled = mark.and_then(|mark| is_handled(object, mark));
    if handled == Some(true) {
        return Kopf { handled, marked: true, progress: None };
    }
    let is_kopfs = |prefix: &str| {
        let has = |name: &str| annotations.contains_key(format!("{prefix}/{name}").as_str());
        prefix == PREFIX || has(MARK) || has(MARKER)
    };
    let of_annotations = annotations.iter().filter_map(|(key, value)| {
        let (_, name) = name_of(key).filter(|(prefix, _)| is_kopfs(prefix))?;
        let text = Some(value).filter(|value| value.get().len() <= LONGEST).and_then(|v| raw::string(v))?;
        Some((name.to_owned(), note(&text)?))
    });
    let progress =
        status.and_then(|kopf| raw::member(kopf, "progress")).map(raw::members).unwrap_or_default();
    let of_status = progress.iter().filter(|(_, value)| value.get().len() <= LONGEST);
    let of_status =
        of_status.filter_map(|(name, value)| Some((name.clone().into_owned(), note(value.get())?)));
    let notes: BTreeMap<String, Note> = of_status.chain(of_annotations).collect();
    // Under way for the first time: there is no mark yet, and the operator has not handled it all the same.
    let handled = handled.or((!notes.is_empty()).then_some(false));
    Kopf { handled, marked: mark.is_some(), progress: words(&notes) }
}

fn name_of(key: &str) -> Option<(&str, &str)> {
    key.split_once('/')
}

/// Equal specs mean handled. What cannot be compared says nothing.
fn is_handled(object: &RawValue, mark: &RawValue) -> Option<bool> {
    let essence: Value = serde_json::from_str(&raw::string(mark)?).ok()?;
    let spec = match raw::member(object, "spec") {
        Some(spec) => serde_json::from_str(spec.get()).ok()?,
        None => Value::Null,
    };
    Some(essence.get("spec").unwrap_or(&Value::Null) == &spec)
}

/// One handler's progress.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    failed: bool,
    done: bool,
    message: String,
}

/// A handler's note, by the two fields that each of them has.
fn note(text: &str) -> Option<Note> {
    let note: Value = serde_json::from_str(text).ok()?;
    (note.get("started")?.is_string() && note.get("retries").is_some()).then(|| Note {
        failed: note["failure"] == true,
        done: note["success"] == true,
        message: quoted(note["message"].as_str().unwrap_or_default()),
    })
}

/// One line of bounded length.
fn quoted(message: &str) -> String {
    let words = message.split_whitespace();
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((end, _)) = line.char_indices().nth(QUOTED) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Those that failed or are tried again, first by name; never how often, which would be another word each time.
fn words(notes: &BTreeMap<String, Note>) -> Option<Box<str>> {
    let held = notes.iter().filter(|(_, note)| !note.done && (note.failed || !note.message.is_empty()));
    let held: Vec<String> = held
        .map(|(name, note)| {
            let verb = if note.failed { "failed" } else { "is retrying" };
            let because = if note.message.is_empty() { String::new() } else { format!(": {}", note.message) };
            format!("handler {name} {verb}{because}")
        })
        .collect();
    let more = held.len().saturating_sub(NAMED);
    let mut text = held.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        _ = write!(text, " and {more} more");
    }
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn says(annotations: &Value, status: &Value) -> (Option<bool>, Option<String>) {
        let object = json!({"metadata": {"annotations": annotations}, "spec": {"size": 1}, "status": {"kopf": status}});
        let read = read(&RawValue::from_string(object.to_string()).unwrap());
        (read.handled, read.progress.map(String::from))
    }

    fn progress(retries: u32, message: &str) -> Value {
        json!({"started": "2026-01-01T00:00:00.0+00:00", "stopped": null, "delayed": "2026-01-01T00:01:00.0+00:00",
            "purpose": "create", "retries": retries, "success": false, "failure": false, "message": message})
    }

    #[test]
    fn a_handler_that_is_tried_again_has_not_handled_it_and_says_why() {
        let tried = |n| json!({"kopf.zalando.org/create_fn": progress(n, "no such\n secret").to_string()});
        let said = Some("handler create_fn is retrying: no such secret".to_owned());
        assert_eq!(says(&tried(1), &json!({})), (Some(false), said.clone()));
        assert_eq!(says(&tried(9), &json!({})), (Some(false), said.clone()), "no word for another try");
        assert_eq!(
            says(&json!({}), &json!({"progress": {"create_fn": progress(3, "no such secret")}})),
            (Some(false), said)
        );
    }

    #[test]
    fn a_prefix_of_the_operators_own_is_known_by_its_marker_or_its_mark() {
        let note = progress(1, "busy").to_string();
        let said = (Some(false), Some("handler up is retrying: busy".to_owned()));
        assert_eq!(
            says(&json!({"ops.example.com/up": note, "ops.example.com/kopf-managed": "yes"}), &json!({})),
            said
        );
        let mark = "{\"spec\":{\"size\":0}}\n";
        assert_eq!(
            says(
                &json!({"ops.example.com/up": note, "ops.example.com/last-handled-configuration": mark}),
                &json!({})
            ),
            said
        );
        assert_eq!(
            says(&json!({"ops.example.com/up": note}), &json!({})),
            (None, None),
            "anybody's annotation"
        );
    }

    #[test]
    fn several_handlers_are_named_in_order_and_the_rest_counted() {
        let mut failed = progress(2, "gave up");
        failed["failure"] = json!(true);
        let mut done = progress(1, "");
        done["success"] = json!(true);
        let notes = json!({"kopf.zalando.org/a": failed.to_string(), "kopf.zalando.org/b": progress(1, "x").to_string(),
            "kopf.zalando.org/c": progress(1, "y").to_string(), "kopf.zalando.org/d": done.to_string()});
        let said = "handler a failed: gave up, handler b is retrying: x and 1 more";
        assert_eq!(says(&notes, &json!({})), (Some(false), Some(said.to_owned())));
    }

    #[test]
    fn what_is_handled_is_handled_whatever_is_still_noted() {
        let noted = json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":1}}\n",
            "kopf.zalando.org/resume_fn": progress(4, "cannot resume").to_string()});
        assert_eq!(says(&noted, &json!({})), (Some(true), None));
    }

    #[test]
    fn a_note_that_is_none_harms_nothing() {
        for note in ["not json", "[1]", "{}", "17", "{\"started\": 5, \"retries\": 1}", ""] {
            assert_eq!(
                says(&json!({"kopf.zalando.org/create_fn": note}), &json!({})),
                (None, None),
                "{note}"
            );
        }
        let long = progress(1, &"x".repeat(200_000)).to_string();
        assert_eq!(says(&json!({"kopf.zalando.org/create_fn": long}), &json!({})), (None, None));
        assert_eq!(
            says(&json!({"kopf.zalando.org/touch-dummy": "2026-01-01T00:00:00"}), &json!({})),
            (None, None)
        );
        let (_, said) =
            says(&json!({"kopf.zalando.org/f": progress(1, &"ä".repeat(9_000)).to_string()}), &json!({}));
        assert!(said.unwrap_or_default().chars().count() < 250);
    }
}
