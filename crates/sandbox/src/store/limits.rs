//! Limits that apply to objects of every kind.

use std::io;

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::meta;
use super::refusal::{StatusCause, StoreRefusal};

/// Largest request that etcd accepts. 1.5 MiB.
const MAX_ETCD_REQUEST_BYTES: usize = 1_572_864;

/// Refuses objects that etcd would refuse as too large. The exact size is only measured if the estimate does not rule
/// it out.
pub(super) fn check_size(object: &Value) -> Result<(), StoreRefusal> {
    struct ByteCounter(usize);
    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    if estimate_size(object) < MAX_ETCD_REQUEST_BYTES / 8 {
        return Ok(());
    }
    let mut count = ByteCounter(0);
    if serde_json::to_writer(&mut count, object).is_err() || count.0 > MAX_ETCD_REQUEST_BYTES {
        return Err(StoreRefusal::new(500, "", "etcdserver: request is too large"));
    }
    Ok(())
}

/// Estimates an object's size by the length of its strings: at least an eighth of its serialized size.
fn estimate_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 2 + estimate_size(item)).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| 4 + name.len() + estimate_size(value)).sum()
        }
        _ => 4,
    }
}

/// Checks an Event's namespace: that of the object it is about, or `default` for a cluster-scoped one.
pub(super) fn check_event_namespace(kind: &SandboxKind, event: &Value) -> Result<(), StoreRefusal> {
    if kind.plural != "events" || kind.traits.custom {
        return Ok(());
    }
    let field = if kind.group.is_empty() { "involvedObject" } else { "regarding" };
    let about = event[field]["namespace"].as_str().unwrap_or_default();
    let beside = if about.is_empty() { "default" } else { about };
    if beside == meta::namespace(event) {
        return Ok(());
    }
    let cause =
        StatusCause::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace");
    Err(StoreRefusal::invalid(&kind.group, &kind.kind, meta::name(event), vec![cause]))
}
