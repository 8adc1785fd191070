//! Conditions, in the shapes in which they are seen.

use std::borrow::Cow;

use readiness::{Condition, Name, Place, Status, Truth};

use super::cursor::Cursor;

/// So many conditions of one object are kept.
const KEPT: usize = 64;
/// So many bytes of a type or a reason are kept.
const TOKEN: usize = 320;
/// So many bytes of a message are kept.
const MESSAGE: usize = 320;

/// Types that most objects have: no memory of their own.
const KNOWN: [&str; 24] = [
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

/// A name, without memory of its own where it is well known.
pub(super) fn name(text: Cow<'_, str>) -> Name {
    match KNOWN.iter().find(|known| **known == text) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(text.into_owned()),
    }
}

/// A list of conditions, or a map from their types. `below` is the path of the object that has them, if not `status`.
pub(super) fn read(value: &mut Cursor<'_>, below: Option<&str>, status: &mut Status) {
    let place = || below.map_or(Place::Conditions, |path| Place::Below(path.into()));
    match value.peek() {
        b'[' => {
            status.conditions.reserve(8);
            value.elements(|element| keep(status, condition(element), place()));
        }
        b'{' => {
            value.members(|key, value| {
                let condition = if value.peek() == b'{' {
                    condition(value)
                } else {
                    Condition { status: value.truth(), ..Condition::default() }
                };
                keep(status, Condition { name: name(key.into()), ..condition }, place());
            });
        }
        _ => value.skip(),
    }
}

fn condition(object: &mut Cursor<'_>) -> Condition {
    let mut condition = Condition::default();
    object.members(|key, value| match key {
        "type" => condition.name = value.beginning(TOKEN).map(name).unwrap_or_default(),
        "status" => condition.status = value.truth(),
        "reason" => condition.reason = value.beginning(TOKEN).unwrap_or_default().into(),
        "message" => condition.message = value.beginning(MESSAGE).unwrap_or_default().into(),
        "observedGeneration" => condition.observed = value.integer(),
        "lastTransitionTime" => condition.since = value.time(),
        "severity" => condition.info = value.string().is_some_and(|text| text.eq_ignore_ascii_case("info")),
        _ => {}
    });
    condition
}

/// Keeps a condition. Of too many, those stay whose type says most.
pub(super) fn keep(status: &mut Status, condition: Condition, place: Place) {
    if condition.name.is_empty() || condition.status == Truth::Absent {
        return;
    }
    let condition = Condition { place, ..condition };
    if status.conditions.len() < KEPT {
        status.conditions.push(condition);
        return;
    }
    let rank = readiness::weight(&condition.name);
    if let Some(lesser) = status.conditions.iter_mut().find(|kept| readiness::weight(&kept.name) < rank) {
        *lesser = condition;
    }
}
