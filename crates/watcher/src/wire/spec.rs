//! `spec`.

use readiness::{CountField, MaxUnavailable, SpecFacts};

use super::cursor::JsonCursor;

/// Largest number of top-level numbers that is kept.
const MAX_SPEC_COUNTS: usize = 32;

pub(super) const UNREAD_SPEC_FIELDS: [&str; 6] =
    ["containers", "initContainers", "volumes", "template", "affinity", "tolerations"];

pub(super) fn read_spec_field(key: &str, value: &mut JsonCursor<'_>, spec: &mut SpecFacts) {
    match key {
        "replicas" => spec.replicas = value.read_integer(),
        "paused" | "pause" => spec.paused = value.read_flag().or(spec.paused),
        "suspend" | "suspended" => spec.suspended = value.read_flag().or(spec.suspended),
        "unschedulable" => spec.unschedulable = value.read_flag(),
        "completions" => spec.completions = value.read_integer(),
        "parallelism" => spec.parallelism = value.read_integer(),
        "updateStrategy" => read_update_strategy(value, spec),
        "type" => spec.load_balancer = value.read_string().is_some_and(|text| text == "LoadBalancer"),
        "storageClassName" => spec.storage_class = value.read_string().is_some_and(|text| !text.is_empty()),
        "volumeName" => spec.volume = value.read_string().is_some_and(|text| !text.is_empty()),
        _ => {
            if spec.counts.len() < MAX_SPEC_COUNTS
                && value.peek().is_ascii_digit()
                && readiness::is_count_field(key)
                && let Some(number) = value.read_integer()
            {
                spec.counts.push(CountField { name: key.into(), value: number });
            }
        }
    }
}

fn read_update_strategy(object: &mut JsonCursor<'_>, spec: &mut SpecFacts) {
    object.each_member(|key, value| match key {
        "type" => spec.on_delete = value.read_string().is_some_and(|text| text == "OnDelete"),
        "paused" => spec.paused = value.read_flag().or(spec.paused),
        "rollingUpdate" => {
            value.each_member(|key, value| match key {
                "partition" => spec.partition = value.read_integer(),
                "maxUnavailable" => spec.max_unavailable = read_max_unavailable(value),
                "paused" => spec.paused = value.read_flag().or(spec.paused),
                _ => {}
            });
        }
        _ => {}
    });
}

/// Reads a number or a percentage.
fn read_max_unavailable(value: &mut JsonCursor<'_>) -> Option<MaxUnavailable> {
    if value.peek().is_ascii_digit() {
        return value.read_integer().map(MaxUnavailable::Count);
    }
    value.read_string().and_then(|text| MaxUnavailable::from_text(&text))
}
