//! State that a Kopf operator stores on its objects: the last handled configuration and the progress of its handlers.
//! Both are only read.
//!
//! Kopf stores them in annotations under its own prefix or one of the operator's, or in `status.kopf`. Each handler of
//! a cycle records its progress; once all of them are done, the records are removed and the handled configuration is
//! stored.

pub(super) mod generation_start;
pub(super) mod log;
pub(super) mod logged_parents;
pub(super) mod marks;
pub(super) mod outcomes;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::status::raw_json;

/// Annotation with the last handled configuration: Kopf's mark.
const LAST_HANDLED_KEY: &str = "last-handled-configuration";
/// Annotation that identifies a prefix as Kopf's.
const KOPF_MANAGED_KEY: &str = "kopf-managed";
/// Annotation in which `rollcall_kopf.py` keeps how the handlers of a generation ended.
const LAST_OUTCOME_KEY: &str = "last-outcome";
/// Annotation that Kopf writes only to trigger an event; it carries no state.
const TOUCH_DUMMY_KEY: &str = "touch-dummy";
/// Default prefix.
const DEFAULT_KOPF_PREFIX: &str = "kopf.zalando.org";
/// Longest progress record that is read. The server accepts no more for all annotations together.
const MAX_PROGRESS_BYTES: usize = 256 * 1_024;
/// Longest quoted part of a handler's message, in characters.
const MAX_QUOTED_CHARS: usize = 200;
/// Largest number of handlers that are named.
const MAX_NAMED_HANDLERS: usize = 2;

/// Kopf's state on one object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KopfState {
    /// The operator has handled the current spec; `None` if nothing shows that it handles the object at all.
    pub(super) handled: Option<bool>,
    /// The object has a mark, whatever its content.
    pub(super) marked: bool,
    /// How the handlers of the current generation ended, or are about to, where anything shows it.
    pub(super) outcome: Option<KopfOutcome>,
    /// Handlers that hold it up, as text.
    pub(super) progress: Option<Box<str>>,
}

/// Mark of a Kopf operator on a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KopfMark {
    /// There is none.
    Absent,
    /// It names an older spec, or something shows how the handlers ended.
    Present,
    /// It names the current spec, and nothing shows how the handlers ended.
    Unexplained,
}

impl KopfMark {
    pub(super) fn of_state(kopf: &KopfState) -> KopfMark {
        match kopf {
            KopfState { marked: false, .. } => KopfMark::Absent,
            KopfState { handled: Some(true), outcome: None, .. } => KopfMark::Unexplained,
            _ => KopfMark::Present,
        }
    }
}

/// How the handlers of a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KopfOutcome {
    /// All of them succeeded.
    Succeeded,
    /// One failed for good, and another is still tried.
    Failing,
    /// One failed for good, and none is tried any more.
    GivenUp,
}

/// State of one operator: under a prefix among the annotations, or in `status.kopf`.
#[derive(Default)]
struct KopfStorage<'o> {
    mark: Option<&'o RawValue>,
    notes: Vec<(String, Option<HandlerProgress>)>,
    /// Kept outcome, where it can be read.
    outcome: Option<KeptOutcome>,
    /// Location of the state, as shown to people.
    place: String,
}

impl KopfStorage<'_> {
    /// Returns `true` if a record beside the mark of what was handled says something about that.
    fn is_about_change(&self, object: &RawValue, name: &str, note: Option<&HandlerProgress>) -> bool {
        let kept = self.outcome.as_ref().filter(|kept| kept.is_about(object));
        let is_tried_again = kept.is_some_and(|kept| kept.failed.contains_key(name));
        note.is_some_and(|note| note.purpose == HandlerPurpose::Change && (note.failed || is_tried_again))
    }
}

/// Reads an object. It counts as not handled if Kopf cannot read its own records, or if one of several operators has
/// not handled it.
pub(super) fn read_kopf_state(object: &RawValue) -> KopfState {
    let left: Vec<KopfStorage<'_>> =
        storages_in_annotations(object).into_iter().chain(storage_in_status(object)).collect();
    let marks: Vec<(&KopfStorage<'_>, Option<bool>)> =
        left.iter().filter_map(|l| Some((l, is_handled(object, l.mark?)))).collect();
    let some_handled = marks.iter().any(|(_, handled)| *handled == Some(true));
    let (mut notes, mut broken) = (BTreeMap::new(), Vec::new());
    for (of, _) in marks.iter().filter(|(_, handled)| handled.is_none()) {
        broken.push(format!("{}{LAST_HANDLED_KEY} cannot be read", of.place));
    }
    for of in &left {
        let is_left_over =
            marks.iter().any(|(marked, handled)| *handled == Some(true) && marked.place == of.place);
        for (name, note) in &of.notes {
            match note {
                // Records of a configuration that was handled: what they say of a failure stands, and so does one of a
                // handler that failed and is tried again.
                note if is_left_over && !of.is_about_change(object, name, note.as_ref()) => {}
                // The records may be stored in another place than the mark.
                Some(note) if note.purpose == HandlerPurpose::Resume && some_handled => {}
                Some(note) => _ = notes.insert(name.clone(), note.clone()),
                None => broken.push(format!("{}{name} cannot be read", of.place)),
            }
        }
    }
    let outcomes = left.iter().filter_map(|of| of.outcome.as_ref());
    let kept: Vec<&KeptOutcome> = outcomes.filter(|kept| kept.is_about(object)).collect();
    for (name, message) in kept.iter().flat_map(|kept| &kept.failed) {
        // One that is tried again has a record of its own.
        notes.entry(name.clone()).or_insert_with(|| HandlerProgress::failed_with(message));
    }
    let outcome = find_outcome(&notes, kept.len(), marks.len());
    // The first cycle is in progress: there is no mark yet, and the operator has not handled the object.
    let unhandled = !notes.is_empty() || !broken.is_empty() || marks.iter().any(|(_, h)| *h != Some(true));
    let handled = if unhandled { Some(false) } else { some_handled.then_some(true) };
    KopfState { handled, marked: !marks.is_empty(), outcome, progress: render_progress(&notes, broken) }
}

/// How the handlers of the current generation ended, by their records, to which those that were `kept` are added. Each of
/// several operators must have kept one for all of them to have succeeded.
fn find_outcome(
    notes: &BTreeMap<String, HandlerProgress>,
    kept: usize,
    operators: usize,
) -> Option<KopfOutcome> {
    if notes.values().any(|note| note.failed) {
        let is_tried = notes.values().any(|note| !note.failed && !note.done);
        return Some(if is_tried { KopfOutcome::Failing } else { KopfOutcome::GivenUp });
    }
    (kept > 0 && kept >= operators && notes.is_empty()).then_some(KopfOutcome::Succeeded)
}

fn storages_in_annotations(object: &RawValue) -> Vec<KopfStorage<'_>> {
    let annotations = raw_json::get_path(object, &["metadata", "annotations"])
        .map(raw_json::all_members)
        .unwrap_or_default();
    let mut left = BTreeMap::<&str, KopfStorage<'_>>::new();
    for (prefix, name) in annotations.keys().filter_map(|key| key.split_once('/')) {
        if prefix == DEFAULT_KOPF_PREFIX || matches!(name, LAST_HANDLED_KEY | KOPF_MANAGED_KEY) {
            left.entry(prefix).or_default().place = format!("annotation {prefix}/");
        }
    }
    for (key, value) in annotations.iter() {
        let Some((prefix, name)) = key.split_once('/') else { continue };
        let Some(of) = left.get_mut(prefix) else { continue };
        match name {
            LAST_HANDLED_KEY => of.mark = Some(value),
            KOPF_MANAGED_KEY | TOUCH_DUMMY_KEY => {}
            LAST_OUTCOME_KEY => of.outcome = parse_outcome(value),
            _ => {
                let text = Some(value).filter(|value| value.get().len() <= MAX_PROGRESS_BYTES);
                let note = text.and_then(|value| parse_handler_progress(&raw_json::string_value(value)?));
                // A prefix of the operator's own may contain unrelated annotations.
                if note.is_some() || prefix == DEFAULT_KOPF_PREFIX {
                    of.notes.push((name.to_owned(), note));
                }
            }
        }
    }
    left.into_values().collect()
}

fn storage_in_status(object: &RawValue) -> Option<KopfStorage<'_>> {
    let status = raw_json::get_path(object, &["status", "kopf"])?;
    let progress = raw_json::get_member(status, "progress").map(raw_json::all_members).unwrap_or_default();
    let text = |value: &RawValue| {
        (value.get().len() <= MAX_PROGRESS_BYTES).then(|| parse_handler_progress(value.get())).flatten()
    };
    let notes = progress.iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    Some(KopfStorage {
        mark: raw_json::get_member(status, LAST_HANDLED_KEY),
        notes,
        outcome: None,
        place: "status.kopf.".to_owned(),
    })
}

/// Returns `true` if the marked spec equals the current one; `None` if the mark cannot be read.
fn is_handled(object: &RawValue, mark: &RawValue) -> Option<bool> {
    let essence: Value = serde_json::from_str(&raw_json::string_value(mark)?).ok()?;
    let spec = match raw_json::get_member(object, "spec") {
        Some(spec) => serde_json::from_str(spec.get()).ok()?,
        None => Value::Null,
    };
    essence.is_object().then(|| essence.get("spec").unwrap_or(&Value::Null) == &spec)
}

/// Progress record of one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HandlerProgress {
    failed: bool,
    done: bool,
    purpose: HandlerPurpose,
    message: String,
}

/// Why a handler was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandlerPurpose {
    /// The operator was restarted, and the object was handled before.
    Resume,
    /// The object was created or updated.
    Change,
    /// Anything else.
    Other,
}

impl HandlerProgress {
    fn failed_with(message: &str) -> HandlerProgress {
        let message = quote_line(message);
        HandlerProgress { failed: true, done: false, purpose: HandlerPurpose::Change, message }
    }
}

/// What was kept of how the handlers of a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptOutcome {
    generation: i64,
    /// Handlers that failed for good, with their messages.
    failed: BTreeMap<String, String>,
}

impl KeptOutcome {
    fn is_about(&self, object: &RawValue) -> bool {
        let generation =
            raw_json::get_path(object, &["metadata", "generation"]).and_then(raw_json::integer_value);
        generation == Some(self.generation)
    }
}

/// Parses a kept outcome; one that cannot be read says nothing.
fn parse_outcome(value: &RawValue) -> Option<KeptOutcome> {
    let text = Some(value).filter(|value| value.get().len() <= MAX_PROGRESS_BYTES)?;
    let kept: Value = serde_json::from_str(&raw_json::string_value(text)?).ok()?;
    let failed = kept.get("failed")?.as_object()?.iter();
    let failed =
        failed.map(|(name, message)| (name.clone(), message.as_str().unwrap_or_default().to_owned()));
    Some(KeptOutcome { generation: kept.get("generation")?.as_i64()?, failed: failed.collect() })
}

/// Parses a progress record, identified by the two fields that every record has.
fn parse_handler_progress(text: &str) -> Option<HandlerProgress> {
    let note: Value = serde_json::from_str(text).ok()?;
    (note.get("started")?.is_string() && note.get("retries").is_some()).then(|| HandlerProgress {
        failed: note["failure"] == true,
        done: note["success"] == true,
        purpose: match note["purpose"].as_str() {
            Some("resume") => HandlerPurpose::Resume,
            Some("create" | "update") => HandlerPurpose::Change,
            _ => HandlerPurpose::Other,
        },
        message: quote_line(note["message"].as_str().unwrap_or_default()),
    })
}

/// Returns the message on one line of bounded length.
fn quote_line(message: &str) -> String {
    let ends_word = |letter: char| letter.is_whitespace() || readiness::is_line_break(letter);
    let words = message.split(ends_word).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((end, _)) = line.char_indices().nth(MAX_QUOTED_CHARS) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

/// Renders the handlers that failed or are retried, the first by name. The number of retries is left out, because it
/// would change the text each time.
fn render_progress(notes: &BTreeMap<String, HandlerProgress>, broken: Vec<String>) -> Option<Box<str>> {
    let held = notes.iter().filter(|(_, note)| !note.done && (note.failed || !note.message.is_empty()));
    let held = held.map(|(name, note)| {
        let verb = if note.failed { "failed" } else { "is retrying" };
        let because = if note.message.is_empty() { String::new() } else { format!(": {}", note.message) };
        // Names are keys of an annotation, which anyone may write who may write the object.
        format!("handler {} {verb}{because}", quote_line(name))
    });
    let held: Vec<String> = broken.into_iter().map(|text| quote_line(&text)).chain(held).collect();
    let more = held.len().saturating_sub(MAX_NAMED_HANDLERS);
    let mut text = held.iter().take(MAX_NAMED_HANDLERS).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        _ = write!(text, " and {more} more");
    }
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests;
