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
/// A note of nothing.
const TOUCH: &str = "touch-dummy";
/// The default prefix.
const PREFIX: &str = "kopf.zalando.org";
/// A note longer than this is not read. The server takes no more of all annotations together.
const LONGEST: usize = 256 * 1_024;
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

/// What one operator has left: under a prefix among the annotations, or in `status.kopf`.
#[derive(Default)]
struct Left<'o> {
    mark: Option<&'o RawValue>,
    notes: Vec<(String, Option<Note>)>,
    /// As it is told: where its notes are.
    place: String,
}

/// Reads an object. Where Kopf cannot read its own notes, it has not handled the object, and neither has it where one of
/// several operators has not.
pub(super) fn read(object: &RawValue) -> Kopf {
    let left: Vec<Left<'_>> = in_annotations(object).into_iter().chain(in_status(object)).collect();
    let marks: Vec<(&Left<'_>, Option<bool>)> =
        left.iter().filter_map(|l| Some((l, is_handled(object, l.mark?)))).collect();
    let some_handled = marks.iter().any(|(_, handled)| *handled == Some(true));
    let (mut notes, mut broken) = (BTreeMap::new(), Vec::new());
    for (of, _) in marks.iter().filter(|(_, handled)| handled.is_none()) {
        broken.push(format!("{}{MARK} cannot be read", of.place));
    }
    for of in &left {
        // Whatever is still noted of what was handled.
        if marks.iter().any(|(marked, handled)| *handled == Some(true) && marked.place == of.place) {
            continue;
        }
        for (name, note) in &of.notes {
            match note {
                // The notes may be in another place than the mark.
                Some(note) if note.resumes && some_handled => {}
                Some(note) => _ = notes.insert(name.clone(), note.clone()),
                None => broken.push(format!("{}{name} cannot be read", of.place)),
            }
        }
    }
    // Under way for the first time: there is no mark yet, and the operator has not handled it all the same.
    let unhandled = !notes.is_empty() || !broken.is_empty() || marks.iter().any(|(_, h)| *h != Some(true));
    let handled = if unhandled { Some(false) } else { some_handled.then_some(true) };
    Kopf { handled, marked: !marks.is_empty(), progress: words(&notes, broken) }
}

fn in_annotations(object: &RawValue) -> Vec<Left<'_>> {
    let annotations = raw::at(object, &["metadata", "annotations"]).map(raw::members).unwrap_or_default();
    let mut left = BTreeMap::<&str, Left<'_>>::new();
    for (prefix, name) in annotations.keys().filter_map(|key| key.split_once('/')) {
        if prefix == PREFIX || matches!(name, MARK | MARKER) {
            left.entry(prefix).or_default().place = format!("annotation {prefix}/");
        }
    }
    for (key, value) in &annotations {
        let Some((prefix, name)) = key.split_once('/') else { continue };
        let Some(of) = left.get_mut(prefix) else { continue };
        match name {
            MARK => of.mark = Some(value),
            MARKER | TOUCH => {}
            _ => {
                let text = Some(value).filter(|value| value.get().len() <= LONGEST);
                let note = text.and_then(|value| note(&raw::string(value)?));
                // Under a prefix of the operator's own there may be anything.
                if note.is_some() || prefix == PREFIX {
                    of.notes.push((name.to_owned(), note));
                }
            }
        }
    }
    left.into_values().collect()
}

fn in_status(object: &RawValue) -> Option<Left<'_>> {
    let status = raw::at(object, &["status", "kopf"])?;
    let progress = raw::member(status, "progress").map(raw::members).unwrap_or_default();
    let text = |value: &RawValue| (value.get().len() <= LONGEST).then(|| note(value.get())).flatten();
    let notes = progress.iter().map(|(name, value)| (name.clone().into_owned(), text(value))).collect();
    Some(Left { mark: raw::member(status, MARK), notes, place: "status.kopf.".to_owned() })
}

/// Equal specs mean handled; `None` where it cannot be read.
fn is_handled(object: &RawValue, mark: &RawValue) -> Option<bool> {
    let essence: Value = serde_json::from_str(&raw::string(mark)?).ok()?;
    let spec = match raw::member(object, "spec") {
        Some(spec) => serde_json::from_str(spec.get()).ok()?,
        None => Value::Null,
    };
    essence.is_object().then(|| essence.get("spec").unwrap_or(&Value::Null) == &spec)
}

/// One handler's progress.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    failed: bool,
    done: bool,
    /// It is about an object that was handled before the operator was started anew.
    resumes: bool,
    message: String,
}

/// A handler's note, by the two fields that each of them has.
fn note(text: &str) -> Option<Note> {
    let note: Value = serde_json::from_str(text).ok()?;
    (note.get("started")?.is_string() && note.get("retries").is_some()).then(|| Note {
        failed: note["failure"] == true,
        done: note["success"] == true,
        resumes: note["purpose"] == "resume",
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
fn words(notes: &BTreeMap<String, Note>, broken: Vec<String>) -> Option<Box<str>> {
    let held = notes.iter().filter(|(_, note)| !note.done && (note.failed || !note.message.is_empty()));
    let held = held.map(|(name, note)| {
        let verb = if note.failed { "failed" } else { "is retrying" };
        let because = if note.message.is_empty() { String::new() } else { format!(": {}", note.message) };
        format!("handler {name} {verb}{because}")
    });
    let held: Vec<String> = broken.into_iter().map(|text| quoted(&text)).chain(held).collect();
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
    fn what_kopf_itself_could_not_read_is_named_and_was_not_handled() {
        for note in ["not json", "[1]", "{}", "17", "{\"started\": 5, \"retries\": 1}", ""] {
            let named = "annotation kopf.zalando.org/create_fn cannot be read".to_owned();
            assert_eq!(
                says(&json!({"kopf.zalando.org/create_fn": note}), &json!({})),
                (Some(false), Some(named)),
                "{note}"
            );
        }
        for mark in ["not json", "[1]", "17", "{", ""] {
            let named = "annotation kopf.zalando.org/last-handled-configuration cannot be read".to_owned();
            let marked = json!({"kopf.zalando.org/last-handled-configuration": mark});
            assert_eq!(says(&marked, &json!({})), (Some(false), Some(named)), "{mark}");
        }
        let anybodys = json!({"ops.example.com/team": "blue", "ops.example.com/kopf-managed": "yes"});
        assert_eq!(says(&anybodys, &json!({})), (None, None));
        let touched = json!({"kopf.zalando.org/touch-dummy": "2026-01-01T00:00:00"});
        assert_eq!(says(&touched, &json!({})), (None, None));
        assert_eq!(
            says(&json!({}), &json!({"progress": {"f": 3}})),
            (Some(false), Some("status.kopf.f cannot be read".to_owned()))
        );
    }

    #[test]
    fn a_long_note_is_read_and_quoted_in_short() {
        for message in ["x".repeat(200_000), "ä".repeat(9_000)] {
            let long = progress(1, &message).to_string();
            let (handled, said) = says(&json!({"kopf.zalando.org/create_fn": long}), &json!({}));
            assert_eq!(handled, Some(false));
            assert!(said.unwrap_or_default().chars().count() < 250);
        }
        let beyond = progress(1, &"x".repeat(LONGEST)).to_string();
        let (handled, said) = says(&json!({}), &json!({"progress": {"create_fn": beyond}}));
        assert_eq!((handled, said.as_deref()), (Some(false), Some("status.kopf.create_fn cannot be read")));
    }

    #[test]
    fn of_two_operators_both_must_have_handled_it() {
        let mark = |size: u32| format!("{{\"spec\":{{\"size\":{size}}}}}\n");
        let both = |first: u32, second: u32| {
            json!({"a.example.com/last-handled-configuration": mark(first),
                "kopf.zalando.org/last-handled-configuration": mark(second)})
        };
        for (first, second, handled) in [(1, 1, true), (1, 0, false), (0, 1, false)] {
            assert_eq!(says(&both(first, second), &json!({})).0, Some(handled), "{first} {second}");
        }
        let mut trying = both(1, 1);
        trying["b.example.com/kopf-managed"] = json!("yes");
        trying["b.example.com/create_fn"] = json!(progress(1, "busy").to_string());
        assert_eq!(
            says(&trying, &json!({})),
            (Some(false), Some("handler create_fn is retrying: busy".to_owned()))
        );
        // Of one that was started anew, which keeps its notes in another place than its mark.
        let mut resuming = progress(3, "cannot resume");
        resuming["purpose"] = json!("resume");
        assert_eq!(says(&both(1, 1), &json!({"progress": {"f": resuming}})), (Some(true), None));
    }
}
