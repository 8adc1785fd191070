//! Pruning: removal of fields that a structural schema does not specify, unless it preserves unknown fields.

use serde_json::Value;

use super::kind::SandboxKind;

/// Removes the fields of a custom resource that its schema does not specify.
pub(super) fn prune_object(kind: &SandboxKind, object: &mut Value) {
    let Some(schema) = &kind.schema else { return };
    prune_value(object, &schema.0, true);
}

fn prune_value(value: &mut Value, schema: &Value, resource: bool) {
    match value {
        Value::Object(map) => {
            let keep = schema["x-kubernetes-preserve-unknown-fields"] == true
                || schema["additionalProperties"] == true;
            let embedded = resource || schema["x-kubernetes-embedded-resource"] == true;
            let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
            map.retain(|name, _| {
                let own = embedded && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
                own || keep || !known[name].is_null() || others.is_object()
            });
            for (name, child) in map.iter_mut() {
                let below = if known[name].is_null() { others } else { &known[name] };
                if below.is_object() && !(embedded && name == "metadata") {
                    prune_value(child, below, false);
                }
            }
        }
        Value::Array(list) if schema["items"].is_object() => {
            for item in list {
                prune_value(item, &schema["items"], false);
            }
        }
        _ => {}
    }
}
