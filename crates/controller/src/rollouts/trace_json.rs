//! A rollout as a trace of OpenTelemetry: OTLP in its JSON encoding.
//!
//! The names of spans are few, as the conventions of OpenTelemetry ask for; what they are about stands in their attributes.
//! The ids are made from the rollout: who exports it again exports the same trace.

use std::fmt::Write as _;

use inspect::rollout::PathPart;
use readiness::Time;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::build_info;
use crate::page::RolloutReport;

/// A span that is not part of a call between services (`SPAN_KIND_INTERNAL`).
const INTERNAL_SPAN: u8 = 1;
/// `STATUS_CODE_OK`.
const STATUS_OK: u8 = 1;

/// The body of a request to `/v1/traces`.
pub(super) fn trace_request(report: &RolloutReport) -> Value {
    let ids = TraceIds::of(report);
    let parts = (1..).zip(&report.parts).map(|(number, part)| part_span(&ids, number, part));
    let spans: Vec<_> = std::iter::once(root_span(&ids, report)).chain(parts).collect();
    let version = build_info::VERSION;
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text_attribute("service.name", "rollcall"), text_attribute("service.version", version),
        ] },
        "scopeSpans": [{ "scope": { "name": "rollcall", "version": version }, "spans": spans }],
    }] })
}

/// Ids of a trace and its spans, in hexadecimal digits.
struct TraceIds {
    trace: String,
}

impl TraceIds {
    fn of(report: &RolloutReport) -> TraceIds {
        let of = [&report.uid, &report.generation.to_string(), &report.policy].map(String::as_str).join("\n");
        TraceIds { trace: hex_hash(&of, 16) }
    }

    /// Of the root (0), or of a part by its number.
    fn span(&self, number: usize) -> String {
        hex_hash(&format!("{} {number}", self.trace), 8)
    }
}

fn root_span(ids: &TraceIds, report: &RolloutReport) -> Value {
    let mut attributes = vec![
        text_attribute("rollcall.parent.kind", &report.kind),
        text_attribute("rollcall.parent.name", &report.name),
        text_attribute("rollcall.parent.uid", &report.uid),
        text_attribute("rollcall.policy", &report.policy),
        json!({ "key": "rollcall.parent.generation", "value": { "intValue": report.generation.to_string() } }),
    ];
    if !report.namespace.is_empty() {
        attributes.push(text_attribute("k8s.namespace.name", &report.namespace));
    }
    if !report.not_read.is_empty() {
        attributes.push(text_attribute("rollcall.not_read", &report.not_read.join("; ")));
    }
    json!({
        "traceId": ids.trace, "spanId": ids.span(0), "name": format!("rollout {}", report.kind), "kind": INTERNAL_SPAN,
        "startTimeUnixNano": nanoseconds(report.from), "endTimeUnixNano": nanoseconds(report.to),
        "attributes": attributes, "status": { "code": STATUS_OK },
    })
}

fn part_span(ids: &TraceIds, number: usize, part: &PathPart) -> Value {
    let mut attributes = vec![
        text_attribute("rollcall.object", &part.object),
        text_attribute("rollcall.cause", part.cause.label()),
    ];
    if !part.detail.is_empty() {
        attributes.push(text_attribute("rollcall.detail", &part.detail));
    }
    json!({
        "traceId": ids.trace, "spanId": ids.span(number), "parentSpanId": ids.span(0), "name": part.cause.text(),
        "kind": INTERNAL_SPAN,
        "startTimeUnixNano": nanoseconds(part.from), "endTimeUnixNano": nanoseconds(part.to),
        "attributes": attributes,
    })
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Nanoseconds since the Unix epoch, as text: the encoding has no numbers of 64 bits.
fn nanoseconds(at: Time) -> String {
    (i128::from(at.0.max(0)) * 1_000_000).to_string()
}

/// The first bytes of a hash.
fn hex_hash(text: &str, bytes: usize) -> String {
    let mut hex = String::with_capacity(2 * bytes);
    for byte in digest(&SHA256, text.as_bytes()).as_ref().iter().take(bytes) {
        _ = write!(hex, "{byte:02x}");
    }
    hex
}
