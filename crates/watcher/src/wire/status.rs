//! `status`: the fields that rules know by name, and those that describe a state by their name.

use std::borrow::Cow;

use readiness::{ConditionFacts, ConditionLocation, CountField, StateField, StatusFacts, WellKnownName};

use super::cursor::JsonCursor;
use super::{conditions, containers};

/// Largest number of texts, and of numbers, that is kept.
const MAX_STATUS_VALUES: usize = 64;
/// Longest kept part of a text, in bytes.
const MAX_STATUS_WORD_BYTES: usize = 160;
/// Largest number of list elements that is inspected.
const MAX_STATUS_LIST_ELEMENTS: usize = 16;
/// Deepest level of parts of parts that is inspected.
const MAX_PART_DEPTH: usize = 3;

/// Fields that are read only to be compared.
#[derive(Default)]
pub(super) struct ComparedFields<'a> {
    current_revision: Option<Cow<'a, str>>,
    update_revision: Option<Cow<'a, str>>,
    current_healthy: Option<i64>,
    desired_healthy: Option<i64>,
}

impl ComparedFields<'_> {
    pub(super) fn compare_into(self, status: &mut StatusFacts) {
        let revisions = self.current_revision.zip(self.update_revision);
        status.revisions_match = revisions.map(|(current, update)| current == update);
        status.healthy = self.current_healthy.zip(self.desired_healthy);
    }
}

/// Handles a status that is a single text.
pub(super) fn set_text_status(status: &mut StatusFacts, text: &str) {
    let word = &text[..text.floor_char_boundary(MAX_STATUS_WORD_BYTES)];
    status.state_fields.push(StateField { path: Cow::Borrowed(""), value: word.into() });
}

pub(super) fn read_status_field<'a>(
    key: &str,
    value: &mut JsonCursor<'a>,
    status: &mut StatusFacts,
    pairs: &mut ComparedFields<'a>,
) {
    match key {
        "phase" => keep_word(status, Cow::Borrowed("phase"), value),
        "conditions" => conditions::read_conditions(value, None, status),
        "observedGeneration" => status.observed = value.read_integer(),
        "containerStatuses" => containers::read_container_statuses(value, false, &mut status.containers),
        "initContainerStatuses" => containers::read_container_statuses(value, true, &mut status.containers),
        "currentRevision" => pairs.current_revision = value.read_string(),
        "updateRevision" => pairs.update_revision = value.read_string(),
        "currentHealthy" => pairs.current_healthy = value.read_integer(),
        "desiredHealthy" => pairs.desired_healthy = value.read_integer(),
        "loadBalancer" => status.addresses = count_addresses(value),
        "reason" => status.reason = value.read_prefix(MAX_STATUS_WORD_BYTES).map(Into::into),
        "message" => status.message = value.read_prefix(MAX_STATUS_WORD_BYTES * 2).map(Into::into),
        // Pod fields that never carry a readiness signal.
        "hostIP" | "hostIPs" | "podIP" | "podIPs" | "qosClass" | "ephemeralContainerStatuses" => {}
        _ => {
            if !read_known_number(key, value, status) && !read_known_time(key, value, status) {
                read_unknown_field(key, value, status);
            }
        }
    }
}

/// Reads a number with a field of its own. `active` is a list in some kinds.
fn read_known_number(key: &str, value: &mut JsonCursor<'_>, status: &mut StatusFacts) -> bool {
    let field = match key {
        "replicas" | "currentNumberScheduled" => &mut status.replicas,
        "readyReplicas" | "numberReady" => &mut status.ready,
        "updatedReplicas" | "updatedNumberScheduled" => &mut status.updated,
        "availableReplicas" | "numberAvailable" => &mut status.available,
        "fullyLabeledReplicas" => &mut status.labeled,
        "desiredNumberScheduled" => &mut status.desired,
        "succeeded" if value.peek() != b't' && value.peek() != b'f' => &mut status.succeeded,
        "active" if value.peek() == b'[' => {
            let mut listed = 0;
            value.each_element(|_| listed += 1);
            status.active = Some(listed);
            return true;
        }
        "active" if value.peek().is_ascii_digit() => &mut status.active,
        _ => return false,
    };
    *field = value.read_integer().or(*field);
    true
}

fn read_known_time(key: &str, value: &mut JsonCursor<'_>, status: &mut StatusFacts) -> bool {
    let field = match key {
        "startTime" | "startedAt" | "startTimestamp" => &mut status.started,
        "completionTime"
        | "completedAt"
        | "completionTimestamp"
        | "finishTime"
        | "finishedAt"
        | "endTime" => &mut status.finished,
        "lastScheduleTime" => &mut status.last_schedule,
        "lastSuccessfulTime" => &mut status.last_success,
        _ => return false,
    };
    *field = value.read_time().or(*field);
    true
}

/// Reads a field that no rule knows by name.
fn read_unknown_field(key: &str, value: &mut JsonCursor<'_>, status: &mut StatusFacts) {
    match value.peek() {
        b'"' if readiness::is_state_field(key) => keep_word(status, Cow::Owned(key.to_owned()), value),
        b't' | b'f' => keep_boolean(status, key, None, value),
        b'-' | b'0'..=b'9' if status.counts.len() < MAX_STATUS_VALUES && readiness::is_count_field(key) => {
            if let Some(number) = value.read_integer() {
                status.counts.push(CountField { name: key.into(), value: number });
            }
        }
        b'{' if readiness::is_current_field(key) => read_nested_object(status, key, value),
        b'[' if readiness::is_current_field(key) => read_listed_parts(status, key, MAX_PART_DEPTH, value),
        _ => value.skip_value(),
    }
}

/// Reads an object one level down.
fn read_nested_object(status: &mut StatusFacts, path: &str, object: &mut JsonCursor<'_>) {
    let mut parts = 0;
    object.each_member(|key, value| match value.peek() {
        b'[' | b'{' if key == "conditions" => conditions::read_conditions(value, Some(path), status),
        b'"' if readiness::is_state_field_within(path, key) => {
            keep_word(status, Cow::Owned(format!("{path}.{key}")), value);
        }
        b't' | b'f' => keep_boolean(status, key, Some(path), value),
        b'[' | b'{' => read_parts(status, (path, key), MAX_PART_DEPTH, &mut parts, value),
        _ => value.skip_value(),
    });
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
        return read_part(status, &format!("{path}.{key}"), depth, value);
    }
    read_listed_parts(status, &format!("{path}.{key}"), depth, value);
}

fn read_listed_parts(status: &mut StatusFacts, path: &str, depth: usize, list: &mut JsonCursor<'_>) {
    let mut at = 0;
    list.each_element(|element| {
        if at < MAX_STATUS_LIST_ELEMENTS && element.peek() == b'{' {
            read_part(status, &format!("{path}[{at}]"), depth, element);
        }
        at += 1;
    });
}

/// Reads a part of the object, an element of a list or of a map: its conditions, what it says of its state, and its own
/// parts. Anything else in lists is mostly an inventory.
fn read_part(status: &mut StatusFacts, path: &str, depth: usize, object: &mut JsonCursor<'_>) {
    let mut parts = 0;
    object.each_member(|key, value| match value.peek() {
        b'[' | b'{' if key == "conditions" => conditions::read_conditions(value, Some(path), status),
        b'"' if readiness::is_part_state_field(path, key) => {
            keep_word(status, Cow::Owned(format!("{path}.{key}")), value);
        }
        b'[' | b'{' => read_parts(status, (path, key), depth - 1, &mut parts, value),
        _ => value.skip_value(),
    });
}

fn keep_word(status: &mut StatusFacts, path: WellKnownName, value: &mut JsonCursor<'_>) {
    if status.state_fields.len() < MAX_STATUS_VALUES
        && let Some(word) = value.read_prefix(MAX_STATUS_WORD_BYTES)
        && !word.trim().is_empty()
    {
        status.state_fields.push(StateField { path, value: word.trim().into() });
    }
}

fn keep_boolean(status: &mut StatusFacts, key: &str, below: Option<&str>, value: &mut JsonCursor<'_>) {
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

/// Number of entries in `loadBalancer.ingress`.
fn count_addresses(object: &mut JsonCursor<'_>) -> Option<u32> {
    let mut addresses = None;
    object.each_member(|key, value| {
        if key == "ingress" {
            let mut count = 0;
            let is_list = value.each_element(|_| count += 1);
            addresses = is_list.then_some(count);
        }
    });
    addresses
}
