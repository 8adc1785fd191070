//! What a cluster cannot hold, whatever an object says.

use std::io;

use serde_json::{Value, json};

use super::kind::Kind;
use super::meta;
use super::refusal::{Cause, Refusal};

/// How much etcd takes in one request.
const ETCD: usize = 1_572_864;

/// Refuses what etcd would. Measured to the byte only where it may be too much.
pub(super) fn size(object: &Value) -> Result<(), Refusal> {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    if weight(object) < ETCD / 8 {
        return Ok(());
    }
    let mut count = Count(0);
    if serde_json::to_writer(&mut count, object).is_err() || count.0 > ETCD {
        return Err(Refusal::new(500, "", "etcdserver: request is too large"));
    }
    Ok(())
}

/// About as many bytes as the texts of an object have, and at least an eighth of those it is written with.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 2 + weight(item)).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| 4 + name.len() + weight(value)).sum(),
        _ => 4,
    }
}

/// An Event lies beside the object it is about; one about a cluster-scoped object in `default`.
pub(super) fn event(kind: &Kind, event: &Value) -> Result<(), Refusal> {
    if kind.plural != "events" || kind.traits.custom {
        return Ok(());
    }
    let field = if kind.group.is_empty() { "involvedObject" } else { "regarding" };
    let about = event[field]["namespace"].as_str().unwrap_or_default();
    let beside = if about.is_empty() { "default" } else { about };
    if beside == meta::namespace(event) {
        return Ok(());
    }
    let cause = Cause::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace");
    Err(Refusal::invalid(&kind.group, &kind.kind, meta::name(event), vec![cause]))
}
