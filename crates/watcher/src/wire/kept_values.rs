//! Values of `status` that are kept for what their names say, as many as the bounds allow.

use readiness::{ConditionFacts, ConditionLocation, StateField, StatusFacts, WellKnownName};

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
    let condition = ConditionFacts {
        name: conditions::intern_type_name(key.into()),
        status: value.read_truth(),
        ..ConditionFacts::default()
    };
    if status.conditions.len() < MAX_STATUS_VALUES {
        status
            .conditions
            .push(ConditionFacts { location: ConditionLocation::Field(below.map(Into::into)), ..condition });
    }
}
