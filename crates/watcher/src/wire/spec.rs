//! `spec`.

use readiness::{Count, Spec};

use super::cursor::Cursor;

/// So many numbers at the top are kept.
const COUNTS: usize = 32;

pub(super) const UNREAD: [&str; 6] =
    ["containers", "initContainers", "volumes", "template", "affinity", "tolerations"];

pub(super) fn field(key: &str, value: &mut Cursor<'_>, spec: &mut Spec) {
    match key {
        "replicas" => spec.replicas = value.integer(),
        "paused" | "pause" => spec.paused = value.flag().or(spec.paused),
        "suspend" | "suspended" => spec.suspended = value.flag().or(spec.suspended),
        "unschedulable" => spec.unschedulable = value.flag(),
        "completions" => spec.completions = value.integer(),
        "parallelism" => spec.parallelism = value.integer(),
        "updateStrategy" => strategy(value, spec),
        "type" => spec.load_balancer = value.string().is_some_and(|text| text == "LoadBalancer"),
        "storageClassName" => spec.storage_class = value.string().is_some_and(|text| !text.is_empty()),
        "volumeName" => spec.volume = value.string().is_some_and(|text| !text.is_empty()),
        _ => {
            if spec.counts.len() < COUNTS
                && value.peek().is_ascii_digit()
                && readiness::counts(key)
                && let Some(number) = value.integer()
            {
                spec.counts.push(Count { name: key.into(), value: number });
            }
        }
    }
}

fn strategy(object: &mut Cursor<'_>, spec: &mut Spec) {
    object.members(|key, value| match key {
        "type" => spec.on_delete = value.string().is_some_and(|text| text == "OnDelete"),
        "rollingUpdate" => {
            value.members(|key, value| {
                if key == "partition" {
                    spec.partition = value.integer();
                }
            });
        }
        _ => {}
    });
}
