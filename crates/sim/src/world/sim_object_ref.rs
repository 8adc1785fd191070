//! The name of a simulated object.

use serde_json::Value;

/// The location of an object.
#[derive(Clone, Debug)]
pub(crate) struct SimObjectRef {
    pub(crate) kind: usize,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl SimObjectRef {
    /// Returns the location of this object.
    pub(crate) fn of_object(kind: usize, object: &Value) -> SimObjectRef {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        SimObjectRef { kind, namespace: text("namespace"), name: text("name") }
    }
}
