//! Requests to the events API.

use readiness::Time;
use serde_json::json;
use watcher::status::time;

use super::correlator::{EventSeries, NewEvent};

/// Method, target, body.
pub(super) type EventCall = (&'static str, String, Vec<u8>);

/// `reportingController` of the Events, by which they can be filtered.
const REPORTING_CONTROLLER: &str = "rollcall.dev/controller";
/// Maximum size of a note, in bytes.
const MAX_NOTE_BYTES: usize = 1_024;

/// `metav1.MicroTime`.
fn micro_time(at: Time) -> String {
    let millis = time::format_millis(at);
    format!("{}000Z", millis.trim_end_matches('Z'))
}

pub(super) fn create_request(event: &NewEvent, instance: &str) -> anyhow::Result<EventCall> {
    let notice = &event.notice;
    let about = &notice.about;
    let namespace = if about.namespace.is_empty() { "default" } else { about.namespace.as_str() };
    let version = if about.group.is_empty() {
        notice.version.clone()
    } else {
        format!("{}/{}", about.group, notice.version)
    };
    let mut regarding =
        json!({ "apiVersion": version, "kind": about.kind, "name": about.name, "uid": notice.uid });
    if !about.namespace.is_empty() {
        regarding["namespace"] = json!(about.namespace);
    }
    let body = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": event.name, "namespace": namespace },
        "eventTime": micro_time(event.at),
        "reportingController": REPORTING_CONTROLLER, "reportingInstance": instance,
        "action": "Judge", "reason": notice.reason, "regarding": regarding,
        "note": truncate_note(&notice.note), "type": if notice.warning { "Warning" } else { "Normal" },
    });
    let target = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events?fieldManager=rollcall");
    Ok(("POST", target, serde_json::to_vec(&body)?))
}

pub(super) fn series_request(series: &EventSeries) -> anyhow::Result<EventCall> {
    let EventSeries { namespace, name, count, last, .. } = series;
    let body = json!({ "series": { "count": count, "lastObservedTime": micro_time(*last) } });
    let target = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}?fieldManager=rollcall");
    Ok(("PATCH", target, serde_json::to_vec(&body)?))
}

fn truncate_note(note: &str) -> &str {
    let end = (0..=note.len().min(MAX_NOTE_BYTES)).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
    &note[..end]
}

/// Host name, in a cluster the pod's name; an Event's `reportingInstance` has at most 128 characters.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().take(128).collect();
    if name.is_empty() { "rollcall".to_owned() } else { name }
}

/// Identity of this process, unique among all its predecessors and usable in a file name.
pub(crate) fn instance_name(now: Time) -> String {
    let host = host_name().to_lowercase();
    let host: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(63).collect();
    format!("{host}-{:x}-{:x}", now.0, std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_microseconds_as_the_api_wants_them() {
        assert_eq!(micro_time(Time(1_767_225_600_090)), "2026-01-01T00:00:00.090000Z");
    }

    #[test]
    fn a_note_is_cut_on_a_characters_boundary() {
        assert_eq!(truncate_note("short"), "short");
        let long = "é".repeat(600);
        assert_eq!(truncate_note(&long).len(), 1_024);
        let odd = format!("a{long}");
        assert_eq!(truncate_note(&odd).len(), 1_023);
    }
}
