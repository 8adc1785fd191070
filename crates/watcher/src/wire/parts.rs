//! The parts of an object: what the elements of lists and maps in its status say of themselves.
//!
//! A list of parts is worth its worst element, so that what is bad, late or missing is kept, and what is well only as far
//! as it is a statement of its own. Everything is bounded: the elements, the depth, and the values.

use std::borrow::Cow;

use readiness::{ConditionFacts, ConditionLocation, CountField, StateField, StatusFacts, TruthValue};

use super::conditions;
use super::cursor::JsonCursor;
use super::kept_values::{MAX_STATUS_VALUES, keep_boolean, keep_trouble_list, keep_word};

/// Largest number of list elements that is inspected.
const MAX_STATUS_LIST_ELEMENTS: usize = 16;
/// Deepest level of parts of parts that is inspected.
pub(super) const MAX_PART_DEPTH: usize = 3;
/// Longest text that may be a share, such as `2/3`, in bytes.
const MAX_SHARE_BYTES: usize = 23;
/// Longest kept part of the type of a condition, in bytes.
const MAX_TYPE_BYTES: usize = 64;
/// Largest number of numbers of one part that is compared.
const MAX_PART_COUNTS: usize = 8;

/// What was found in a list: its length, and which of its elements say something of themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListedParts {
    /// Number of elements.
    pub(super) elements: usize,
    spoken: usize,
    first_silent: Option<usize>,
}

impl ListedParts {
    /// Returns `true` if the elements are parts of the object, so that one that is not there is missed. Of an empty list
    /// nothing else is known.
    pub(super) fn are_parts(self) -> bool {
        self.spoken > 0 || self.elements == 0
    }

    fn add_element(&mut self, spoke: Option<bool>) {
        match spoke {
            Some(true) => self.spoken += 1,
            Some(false) => self.first_silent = self.first_silent.or(Some(self.elements)),
            None => {}
        }
        self.elements += 1;
    }
}

/// Reads an object one level down.
pub(super) fn read_nested_object(status: &mut StatusFacts, path: &str, object: &mut JsonCursor<'_>) {
    let mut parts = 0;
    let mut counts = Vec::new();
    object.each_member(|key, value| match value.peek() {
        b'[' | b'{' if key == "conditions" => conditions::read_conditions(value, Some(path), status),
        b'"' if readiness::is_state_field_within(path, key) => {
            keep_word(status, Cow::Owned(format!("{path}.{key}")), value);
        }
        b'0'..=b'9' if counts.len() < MAX_PART_COUNTS && readiness::is_count_field(key) => {
            counts.extend(value.read_integer().map(|number| CountField { name: key.into(), value: number }));
        }
        b'"' => keep_plain_text(status, path, key, value),
        b't' | b'f' => keep_boolean(status, key, Some(path), value),
        b'[' | b'{' if readiness::is_trouble_list(key) => keep_trouble_list(status, key, Some(path), value),
        b'[' | b'{' => read_parts(status, (path, key), MAX_PART_DEPTH, &mut parts, value),
        _ => value.skip_value(),
    });
    keep_counts(status, path, &counts);
}

/// Reads a list of parts, or one part of a map of them, in the field `key` below `path`. `parts` counts those of the map
/// so far.
fn read_parts(
    status: &mut StatusFacts,
    (path, key): (&str, &str),
    depth: usize,
    parts: &mut usize,
    value: &mut JsonCursor<'_>,
) {
    if depth == 0 || *parts >= MAX_STATUS_LIST_ELEMENTS || !readiness::is_part_field(key) {
        return value.skip_value();
    }
    if value.peek() == b'{' {
        *parts += 1;
        read_part(status, &format!("{path}.{key}"), depth, value);
        return;
    }
    read_listed_parts(status, &format!("{path}.{key}"), depth, value);
}

/// Reads a list. An element that says nothing where others speak is kept as a silent part.
pub(super) fn read_listed_parts(
    status: &mut StatusFacts,
    path: &str,
    depth: usize,
    list: &mut JsonCursor<'_>,
) -> ListedParts {
    let mut listed = ListedParts::default();
    list.each_element(|element| {
        let object = element.peek() == b'{';
        let spoke = (object && listed.elements < MAX_STATUS_LIST_ELEMENTS)
            .then(|| read_part(status, &format!("{path}[{}]", listed.elements), depth, element));
        listed.add_element(spoke);
    });
    if let Some(silent) = listed.first_silent.filter(|_| listed.spoken > 0) {
        keep_silence(status, format!("{path}[{silent}]"));
    }
    listed
}

/// Keeps what the numbers of one part say: how many of its own it has, and that some are not well.
fn keep_counts(status: &mut StatusFacts, path: &str, counts: &[CountField]) {
    if let Some((have, want)) = readiness::part_share(counts) {
        keep_state(status, format!("{path}.{}", have.name), &format!("{}/{want}", have.value));
    }
    let lacking = counts.iter().find(|count| count.value > 0 && readiness::counts_lacking_parts(&count.name));
    if let Some(count) = lacking.filter(|_| status.counts.len() < MAX_STATUS_VALUES) {
        status.counts.push(CountField { name: format!("{path}.{}", count.name).into(), value: count.value });
    }
}

fn count_statements(status: &StatusFacts) -> usize {
    status.conditions.len() + status.state_fields.len()
}

/// Reads a part of the object, an element of a list or of a map: its conditions, what it says of its state, that it is
/// not ready, and its own parts. Anything else in lists is mostly an inventory. Returns `true` if it says anything.
fn read_part(status: &mut StatusFacts, path: &str, depth: usize, object: &mut JsonCursor<'_>) -> bool {
    let (mut parts, mut flagged, before) = (0, false, count_statements(status));
    let mut counts = Vec::new();
    let (mut kind, mut truth) = (None, TruthValue::Absent);
    object.each_member(|key, value| match value.peek() {
        b'[' | b'{' if key == "conditions" => conditions::read_conditions(value, Some(path), status),
        // What has the shape of a condition is one, whatever its list is called.
        b'"' if key == "type" && is_listed_part(path) => kind = value.read_prefix(MAX_TYPE_BYTES),
        b'"' if key == "status" && value.clone().read_truth() != TruthValue::Absent => {
            truth = value.read_truth();
        }
        b'"' if readiness::is_part_state_field(path, key) => {
            keep_word(status, Cow::Owned(format!("{path}.{key}")), value);
        }
        b't' | b'f' => {
            let says = readiness::part_flag_says(path, key, value.peek() == b't');
            flagged |= says.is_some();
            // That one part is well speaks for no other.
            if says == Some(false) {
                keep_boolean(status, key, Some(path), value);
            }
        }
        b'[' | b'{' if readiness::is_trouble_list(key) && readiness::is_part_state_field(path, "status") => {
            keep_trouble_list(status, key, Some(path), value);
        }
        b'[' | b'{' => read_parts(status, (path, key), depth - 1, &mut parts, value),
        b'0'..=b'9' if counts.len() < MAX_PART_COUNTS && readiness::is_count_field(key) => {
            counts.extend(value.read_integer().map(|number| CountField { name: key.into(), value: number }));
        }
        _ => value.skip_value(),
    });
    keep_counts(status, path, &counts);
    keep_shaped_condition(status, path, kind, truth);
    // Where nothing more fits, silence means nothing.
    flagged || count_statements(status) > before || before >= MAX_STATUS_VALUES
}

/// Returns `true` for an element of a list, but not of one of conditions of something else: `backupConditions`.
fn is_listed_part(path: &str) -> bool {
    path.rsplit_once('[').is_some_and(|(list, rest)| rest.ends_with(']') && !list.ends_with("onditions"))
}

/// Keeps a part that is a condition by its shape, if it has a type and a status that is true, false or unknown.
fn keep_shaped_condition(
    status: &mut StatusFacts,
    path: &str,
    kind: Option<Cow<'_, str>>,
    truth: TruthValue,
) {
    if let Some(kind) = kind.filter(|_| truth != TruthValue::Absent) {
        let name = conditions::intern_type_name(kind);
        let condition = ConditionFacts { name, status: truth, ..ConditionFacts::default() };
        conditions::keep_condition(status, condition, ConditionLocation::Below(path.into()));
    }
}

/// Keeps a part that says nothing about itself: a state without a word.
pub(super) fn keep_silence(status: &mut StatusFacts, path: String) {
    keep_state(status, path, "");
}

fn keep_state(status: &mut StatusFacts, path: String, value: &str) {
    if status.state_fields.len() < MAX_STATUS_VALUES {
        status.state_fields.push(StateField { path: Cow::Owned(path), value: value.into() });
    }
}

/// Keeps a text in a field whose name says nothing of a state: a share, or a plain word for trouble.
pub(super) fn keep_plain_text(status: &mut StatusFacts, path: &str, key: &str, value: &mut JsonCursor<'_>) {
    let Some(text) = value.clone().read_prefix(MAX_SHARE_BYTES) else { return value.skip_value() };
    if !readiness::says_plain_trouble(key, &text) {
        return keep_share(status, path, key, value);
    }
    let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    keep_state(status, path, &text);
    value.skip_value();
}

/// Keeps a text such as `2/3` in a field that counts things that can be ready.
pub(super) fn keep_share(status: &mut StatusFacts, path: &str, key: &str, value: &mut JsonCursor<'_>) {
    let Some(text) = value.read_prefix(MAX_SHARE_BYTES) else { return };
    let digits = |text: &str| text.bytes().any(|b| b.is_ascii_digit()) && text.trim().parse::<u32>().is_ok();
    let share = text.split_once('/').is_some_and(|(have, want)| digits(have) && digits(want));
    if share && readiness::is_count_field(key) {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        keep_state(status, path, text.trim());
    }
}
