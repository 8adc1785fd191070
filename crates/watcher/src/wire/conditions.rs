//! Conditions, in all shapes that occur.

use std::borrow::Cow;

use readiness::{ConditionFacts, ConditionLocation, StatusFacts, TruthValue, WellKnownName};

use super::cursor::JsonCursor;

/// Largest number of conditions kept per object.
const MAX_CONDITIONS: usize = 64;
/// Longest kept part of a type or reason, in bytes.
const MAX_CONDITION_TOKEN_BYTES: usize = 320;
/// Longest kept part of a message, in bytes.
const MAX_CONDITION_MESSAGE_BYTES: usize = 320;

/// Well-known types, which are not allocated.
const KNOWN_CONDITION_TYPES: [&str; 24] = [
    "Ready",
    "Available",
    "Progressing",
    "PodScheduled",
    "Initialized",
    "ContainersReady",
    "PodReadyToStartContainers",
    "ReplicaFailure",
    "Complete",
    "Failed",
    "SuccessCriteriaMet",
    "FailureTarget",
    "Suspended",
    "Healthy",
    "Reconciling",
    "Stalled",
    "Synced",
    "Degraded",
    "Succeeded",
    "Established",
    "NamesAccepted",
    "Accepted",
    "Programmed",
    "ResolvedRefs",
];

/// Interns a name; a well-known one is not allocated.
pub(super) fn intern_type_name(text: Cow<'_, str>) -> WellKnownName {
    match KNOWN_CONDITION_TYPES.iter().find(|known| **known == text) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(text.into_owned()),
    }
}

/// Reads a list of conditions, or a map from their types. `below` is the path of the object that contains them, unless
/// it is `status`.
pub(super) fn read_conditions(value: &mut JsonCursor<'_>, below: Option<&str>, status: &mut StatusFacts) {
    let place = || below.map_or(ConditionLocation::Conditions, |path| ConditionLocation::Below(path.into()));
    match value.peek() {
        b'[' => {
            status.conditions.reserve(8);
            value.each_element(|element| {
                let condition = read_condition(element);
                // An entry that names a condition without a readable status does not say that it holds.
                let status_value = match condition.status {
                    TruthValue::Absent => TruthValue::Unknown,
                    said => said,
                };
                keep_condition(status, ConditionFacts { status: status_value, ..condition }, place());
            });
        }
        b'{' => {
            value.each_member(|key, value| {
                let condition = if value.peek() == b'{' {
                    read_condition(value)
                } else {
                    ConditionFacts { status: value.read_truth(), ..ConditionFacts::default() }
                };
                keep_condition(
                    status,
                    ConditionFacts { name: intern_type_name(key.into()), ..condition },
                    place(),
                );
            });
        }
        _ => value.skip_value(),
    }
}

fn read_condition(object: &mut JsonCursor<'_>) -> ConditionFacts {
    let mut condition = ConditionFacts::default();
    object.each_member(|key, value| match key {
        "type" => {
            condition.name =
                value.read_prefix(MAX_CONDITION_TOKEN_BYTES).map(intern_type_name).unwrap_or_default();
        }
        "status" => condition.status = value.read_truth(),
        "reason" => {
            condition.reason = value.read_prefix(MAX_CONDITION_TOKEN_BYTES).unwrap_or_default().into();
        }
        "message" => {
            condition.message = value.read_prefix(MAX_CONDITION_MESSAGE_BYTES).unwrap_or_default().into();
        }
        "observedGeneration" => condition.observed = value.read_integer(),
        "lastTransitionTime" => condition.since = value.read_time(),
        "severity" => {
            condition.info = value.read_string().is_some_and(|text| text.eq_ignore_ascii_case("info"));
        }
        _ => {}
    });
    condition
}

/// Keeps a condition. If there are too many, the most informative types are kept.
pub(super) fn keep_condition(status: &mut StatusFacts, condition: ConditionFacts, place: ConditionLocation) {
    if condition.name.is_empty() || condition.status == TruthValue::Absent {
        return;
    }
    let condition = ConditionFacts { location: place, ..condition };
    if status.conditions.len() < MAX_CONDITIONS {
        status.conditions.push(condition);
        return;
    }
    let rank = readiness::condition_priority(&condition.name);
    if let Some(lesser) =
        status.conditions.iter_mut().find(|kept| readiness::condition_priority(&kept.name) < rank)
    {
        *lesser = condition;
    }
}
