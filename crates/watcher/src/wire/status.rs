//! `status`: the fields that rules know by name, and those that describe a state by their name.

use std::borrow::Cow;

use readiness::{CountField, StateField, StatusFacts};

use super::cursor::JsonCursor;
use super::kept_values::{
    MAX_STATUS_VALUES, MAX_STATUS_WORD_BYTES, keep_boolean, keep_trouble_list, keep_word,
};
use super::spec::SpecLists;
use super::text_pairs::TextPairs;
use super::{conditions, containers, parts};

/// Fields that are read only to be compared.
#[derive(Default)]
pub(super) struct ComparedFields<'a> {
    current_revision: Option<Cow<'a, str>>,
    update_revision: Option<Cow<'a, str>>,
    current_healthy: Option<i64>,
    desired_healthy: Option<i64>,
    texts: TextPairs<'a>,
}

impl ComparedFields<'_> {
    pub(super) fn compare_into(self, status: &mut StatusFacts) {
        let revisions = self.current_revision.zip(self.update_revision);
        status.revisions_match = revisions.map(|(current, update)| current == update);
        status.healthy = self.current_healthy.zip(self.desired_healthy);
        status.lag = self.texts.find_lag().map(Box::new);
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
    (pairs, spec): (&mut ComparedFields<'a>, &SpecLists<'a>),
) {
    match key {
        "phase" => keep_word(status, Cow::Borrowed("phase"), value),
        "conditions" => conditions::read_conditions(value, None, status),
        "observedGeneration"
        | "observed_generation"
        | "lastObservedGeneration"
        | "lastEvaluatedGeneration"
        | "lastHandledGeneration"
        | "lastProcessedGeneration"
        | "lastReconciledGeneration"
        | "processedGeneration"
        | "reconciledGeneration" => {
            // Of several the oldest: not all of the status is about the present.
            let observed = value.read_integer();
            status.observed =
                status.observed.zip(observed).map(|(a, b)| a.min(b)).or(observed).or(status.observed);
        }
        "containerStatuses" => containers::read_container_statuses(value, false, &mut status.containers),
        "initContainerStatuses" => containers::read_container_statuses(value, true, &mut status.containers),
        "currentRevision" => pairs.current_revision = value.read_string(),
        "updateRevision" => pairs.update_revision = value.read_string(),
        "currentHealthy" => {
            pairs.current_healthy = value.read_integer();
            status.counts.extend(pairs.current_healthy.map(|n| CountField { name: key.into(), value: n }));
        }
        "desiredHealthy" => pairs.desired_healthy = value.read_integer(),
        "loadBalancer" => status.addresses = Some(count_addresses(value)),
        "reason" => status.reason = value.read_prefix(MAX_STATUS_WORD_BYTES).map(Into::into),
        "message" => status.message = value.read_prefix(MAX_STATUS_WORD_BYTES * 2).map(Into::into),
        // Pod fields that never carry a readiness signal.
        "hostIP" | "hostIPs" | "podIP" | "podIPs" | "qosClass" | "ephemeralContainerStatuses" => {}
        _ => {
            if value.peek() == b'"' {
                pairs.texts.note_text(key, || value.clone().read_string());
            }
            if !read_known_number(key, value, status) && !read_known_time(key, value, status) {
                read_unknown_field(key, value, status, spec);
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
fn read_unknown_field(key: &str, value: &mut JsonCursor<'_>, status: &mut StatusFacts, spec: &SpecLists<'_>) {
    match value.peek() {
        b'"' if readiness::is_state_field(key) => keep_word(status, Cow::Owned(key.to_owned()), value),
        b'"' => parts::keep_plain_text(status, "", key, value),
        b't' | b'f' => keep_boolean(status, key, None, value),
        b'-' | b'0'..=b'9' if status.counts.len() < MAX_STATUS_VALUES && readiness::is_count_field(key) => {
            if let Some(number) = value.read_integer() {
                status.counts.push(CountField { name: key.into(), value: number });
            }
        }
        b'[' | b'{' if readiness::is_trouble_list(key) => keep_trouble_list(status, key, None, value),
        b'[' if readiness::is_condition_list(key) => conditions::read_conditions(value, Some(key), status),
        b'{' if readiness::is_current_field(key) => parts::read_nested_object(status, key, value),
        b'[' if readiness::is_current_field(key) => {
            let listed = parts::read_listed_parts(status, key, parts::MAX_PART_DEPTH, value);
            if listed.are_parts() && spec.count_elements(key) > listed.elements {
                parts::keep_silence(status, format!("{key}[{}]", listed.elements));
            }
        }
        _ => value.skip_value(),
    }
}

/// Number of entries in `loadBalancer.ingress`.
fn count_addresses(object: &mut JsonCursor<'_>) -> u32 {
    let mut count = 0;
    object.each_member(|key, value| {
        if key == "ingress" {
            value.each_element(|_| count += 1);
        }
    });
    count
}
