//! `spec`.

use readiness::{CountField, ReplicaAmount, SpecFacts};

use super::cursor::JsonCursor;

/// Largest number of top-level numbers that is kept.
const MAX_SPEC_COUNTS: usize = 32;

pub(super) const UNREAD_SPEC_FIELDS: [&str; 5] =
    ["containers", "initContainers", "volumes", "affinity", "tolerations"];

/// Longest word for a wanted state, in bytes.
const MAX_STATE_BYTES: usize = 32;
/// Largest number of labels of pods that is kept.
const MAX_POD_LABELS: usize = 32;
/// Largest number of lists that can be compared with those of the status.
const MAX_SPEC_LISTS: usize = 8;

/// The lists at the top level of `spec`, each where it begins: they are counted only if the status has one of the same
/// name. A name is kept as its hash, which costs no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct SpecLists<'a> {
    lists: [Option<(u64, JsonCursor<'a>)>; MAX_SPEC_LISTS],
    count: usize,
}

impl<'a> SpecLists<'a> {
    pub(super) fn note_list(&mut self, key: &str, value: &JsonCursor<'a>) {
        if let Some(place) = self.lists.get_mut(self.count) {
            *place = Some((hash_name(key), value.clone()));
            self.count += 1;
        }
    }

    /// Returns the number of objects in the list of this name; 0 if there is none.
    pub(super) fn count_elements(&self, key: &str) -> usize {
        let wanted = hash_name(key);
        let found = self.lists.iter().flatten().find(|(name, _)| *name == wanted);
        let mut objects = 0;
        if let Some((_, list)) = found {
            list.clone().each_element(|element| objects += usize::from(element.peek() == b'{'));
        }
        objects
    }
}

/// FNV-1a.
fn hash_name(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

pub(super) fn read_spec_field<'a>(
    key: &str,
    value: &mut JsonCursor<'a>,
    spec: &mut SpecFacts,
    lists: &mut SpecLists<'a>,
) {
    match key {
        "replicas" => spec.replicas = value.read_integer(),
        "hibernation" | "pause" | "suspend" | "suspension" if value.peek() == b'{' => {
            value.each_member(|key, value| {
                spec.off |= key == "enabled" && value.read_flag() == Some(true);
            });
        }
        "paused" | "pause" => spec.paused = value.read_flag().or(spec.paused),
        "suspend" | "suspended" => spec.suspended = value.read_flag().or(spec.suspended),
        "disabled" | "disable" | "hibernate" | "hibernated" | "hibernating" | "stopped" | "shutdown" => {
            spec.off |= value.read_flag() == Some(true);
        }
        "lifecycle" if value.peek() == b'{' => {
            value.each_member(|key, value| {
                spec.off |= key == "desiredPhase"
                    && value.read_prefix(MAX_STATE_BYTES).is_some_and(|word| readiness::says_at_rest(&word));
            });
        }
        "managementState" if value.peek() == b'"' => {
            let word = value.read_prefix(MAX_STATE_BYTES);
            spec.off |= word.is_some_and(|word| matches!(&*word, "Unmanaged" | "Removed"));
        }
        // Nothing is to be done to the object outside: by Crossplane's convention the same as its pausing annotation.
        "managementPolicies" if value.peek() == b'[' => {
            let mut listed = false;
            value.each_element(|_| listed = true);
            spec.off |= !listed;
        }
        "enable" | "enabled" | "running" => spec.off |= value.read_flag() == Some(false),
        "state" | "desiredState" | "runStrategy" | "powerState" if value.peek() == b'"' => {
            spec.off |= value.read_prefix(MAX_STATE_BYTES).is_some_and(|word| readiness::says_at_rest(&word));
        }
        "forProvider" | "compositionRef" | "crossplane" => spec.external |= value.peek() == b'{',
        "unschedulable" => spec.unschedulable = value.read_flag(),
        "completions" => spec.completions = value.read_integer(),
        "parallelism" => spec.parallelism = value.read_integer(),
        "updateStrategy" => read_update_strategy(value, spec),
        "template" => read_pod_labels(value.clone(), spec),
        "type" => spec.load_balancer = value.read_string().is_some_and(|text| text == "LoadBalancer"),
        "storageClassName" => spec.storage_class = value.read_string().is_some_and(|text| !text.is_empty()),
        "volumeName" => spec.volume = value.read_string().is_some_and(|text| !text.is_empty()),
        _ if value.peek() == b't' => spec.off |= readiness::is_rest_switch(key),
        _ if value.peek() == b'[' => lists.note_list(key, value),
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

/// Reads the labels of a template of pods. It is long, and what follows them is not looked at.
fn read_pod_labels(mut template: JsonCursor<'_>, spec: &mut SpecFacts) {
    if template.enter_member("metadata") && template.enter_member("labels") {
        template.each_member(|label, value| {
            if spec.pod_labels.len() < MAX_POD_LABELS
                && let Some(value) = value.read_string()
            {
                spec.pod_labels.push((label.into(), (&*value).into()));
            }
        });
    }
}

/// Reads a number or a percentage.
fn read_max_unavailable(value: &mut JsonCursor<'_>) -> Option<ReplicaAmount> {
    if value.peek().is_ascii_digit() {
        return value.read_integer().map(ReplicaAmount::Count);
    }
    value.read_string().and_then(|text| ReplicaAmount::from_text(&text))
}
