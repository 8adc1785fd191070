//! Values of `status` that are kept for what their names say, as many as the bounds allow.

use readiness::{ConditionFacts, ConditionLocation, StateField, StatusFacts, TruthValue, WellKnownName};

use super::conditions;
use super::cursor::JsonCursor;

/// Largest number of texts, and of numbers, that is kept.
pub(super) const MAX_STATUS_VALUES: usize = 64;
/// Longest kept part of a text, in bytes.
pub(super) const MAX_STATUS_WORD_BYTES: usize = 160;

pub(super) fn keep_word(status: &mut StatusFacts, path: WellKnownName, value: &mut JsonCursor<'_>) {
    if status.state_fields.len() < MAX_STATUS_VALUES
        && let Some(word) = value.read_prefix(MAX_STATUS_WORD_BYTES)
        && !word.trim().is_empty()
    {
        status.state_fields.push(StateField { path, value: word.trim().into() });
    }
}

pub(super) fn keep_boolean(
    status: &mut StatusFacts,
    key: &str,
    below: Option<&str>,
    value: &mut JsonCursor<'_>,
) {
    push_flag(status, key, below, value.read_truth());
}

/// Keeps the name of a list or a map that is there only where something is wrong, unless it has nothing in it.
pub(super) fn keep_trouble_list(
    status: &mut StatusFacts,
    key: &str,
    below: Option<&str>,
    value: &mut JsonCursor<'_>,
) {
    let mut listed = false;
    if value.peek() == b'[' {
        value.each_element(|_| listed = true);
    } else {
        // A number of none is no trouble: `failedNodes: {count: 0}`.
        value.each_member(|_, value| match value.peek() {
            b'0'..=b'9' => listed |= value.read_integer() != Some(0),
            b'[' => {
                value.each_element(|_| listed = true);
            }
            b'f' | b'n' => {}
            _ => listed = true,
        });
    }
    if listed {
        push_flag(status, key, below, TruthValue::True);
    }
}

fn push_flag(status: &mut StatusFacts, key: &str, below: Option<&str>, truth: TruthValue) {
    let condition = ConditionFacts {
        name: conditions::intern_type_name(key.into()),
        status: truth,
        ..ConditionFacts::default()
    };
    if status.conditions.len() < MAX_STATUS_VALUES {
        status
            .conditions
            .push(ConditionFacts { location: ConditionLocation::Field(below.map(Into::into)), ..condition });
    }
}
