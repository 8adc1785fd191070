//! What goes to the server.

use readiness::Time;
use serde_json::json;
use watcher::status::time;

use super::ledger::{NewEvent, Series};

/// Method, target, body.
pub(super) type Call = (&'static str, String, Vec<u8>);

/// Who reports, as people filter by it.
const CONTROLLER: &str = "rollcall.dev/controller";
/// A note may have so many bytes.
const NOTE: usize = 1_024;

/// `metav1.MicroTime`.
fn micro(at: Time) -> String {
    let millis = time::precise(at);
    format!("{}000Z", millis.trim_end_matches('Z'))
}

pub(super) fn create(event: &NewEvent, instance: &str) -> anyhow::Result<Call> {
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
        "eventTime": micro(event.at),
        "reportingController": CONTROLLER, "reportingInstance": instance,
        "action": "Judge", "reason": notice.reason, "regarding": regarding,
        "note": cut(&notice.note), "type": if notice.warning { "Warning" } else { "Normal" },
    });
    let target = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events?fieldManager=rollcall");
    Ok(("POST", target, serde_json::to_vec(&body)?))
}

pub(super) fn repeat(series: &Series) -> anyhow::Result<Call> {
    let Series { namespace, name, count, last, .. } = series;
    let body = json!({ "series": { "count": count, "lastObservedTime": micro(*last) } });
    let target = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}?fieldManager=rollcall");
    Ok(("PATCH", target, serde_json::to_vec(&body)?))
}

fn cut(note: &str) -> &str {
    let end = (0..=note.len().min(NOTE)).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
    &note[..end]
}

/// What this machine, in a cluster this pod, calls itself; an Event's `reportingInstance` has at most 128 characters.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().take(128).collect();
    if name.is_empty() { "rollcall".to_owned() } else { name }
}

/// This process among all that there ever were, as a part of a file's name.
pub(crate) fn instance(now: Time) -> String {
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
        assert_eq!(micro(Time(1_767_225_600_090)), "2026-01-01T00:00:00.090000Z");
    }

    #[test]
    fn a_note_is_cut_on_a_characters_boundary() {
        assert_eq!(cut("short"), "short");
        let long = "é".repeat(600);
        assert_eq!(cut(&long).len(), 1_024);
        let odd = format!("a{long}");
        assert_eq!(cut(&odd).len(), 1_023);
    }
}
