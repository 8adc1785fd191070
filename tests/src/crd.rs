//! Custom resource definitions in the shapes that operators really ship.

use serde_json::{Value, json};

/// A definition in the making: list-map conditions under a status subresource, unless it is said otherwise.
#[derive(Clone, Debug)]
pub struct Crd {
    kind: String,
    status: Value,
    subresource: bool,
}

impl Crd {
    /// `kind` with conditions as the API conventions want them.
    pub fn new(kind: &str) -> Self {
        let conditions = json!({
            "type": "array", "items": condition(),
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        });
        Self { kind: kind.to_owned(), status: status_with(Some(conditions)), subresource: true }
    }

    /// Conditions as a plain list, which any writer replaces as a whole.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.status = status_with(Some(json!({ "type": "array", "items": condition() })));
        self
    }

    /// A status that knows no conditions: the server silently drops them.
    #[must_use]
    pub fn pruning(mut self) -> Self {
        self.status = status_with(None);
        self
    }

    /// Conditions as they were before they had an `observedGeneration`.
    #[must_use]
    pub fn without_generation_of_conditions(mut self) -> Self {
        if let Some(Value::Object(known)) = self.status.pointer_mut("/properties/conditions/items/properties")
        {
            known.remove("observedGeneration");
        }
        self
    }

    /// A status that may be anything at all.
    #[must_use]
    pub fn shapeless(mut self) -> Self {
        self.status = json!({ "x-kubernetes-preserve-unknown-fields": true });
        self
    }

    /// Status written through the object itself, so that each write of it moves the generation.
    #[must_use]
    pub fn without_status_subresource(mut self) -> Self {
        self.subresource = false;
        self
    }

    /// The manifest.
    pub fn manifest(&self, group: &str) -> Value {
        let kind = crate::kind::Kind::new(&format!("{group}/v1"), &self.kind);
        let scope = if kind.is_cluster_scoped() { "Cluster" } else { "Namespaced" };
        let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let column = |name: &str, field: &str| {
            let path = format!(".status.conditions[?(@.type==\"Ready\")].{field}");
            json!({ "name": name, "type": "string", "jsonPath": path })
        };
        let mut version = json!({
            "name": "v1", "served": true, "storage": true,
            "additionalPrinterColumns": [column("Ready", "status"), column("Reason", "reason"), column("Message", "message")],
            "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": free, "status": self.status },
            } },
        });
        if self.subresource {
            version["subresources"] = json!({ "status": {} });
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.{group}", kind.plural()) },
            "spec": {
                "group": group, "scope": scope, "versions": [version],
                "names": {
                    "kind": self.kind, "plural": kind.plural(), "singular": self.kind.to_lowercase(),
                },
            },
        })
    }
}

fn status_with(conditions: Option<Value>) -> Value {
    let mut properties = json!({
        "observedGeneration": { "type": "integer", "format": "int64" },
        "phase": { "type": "string" },
    });
    if let Some(conditions) = conditions {
        properties["conditions"] = conditions;
    }
    json!({ "type": "object", "properties": properties })
}

fn condition() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object", "required": ["type", "status"],
        "properties": {
            "type": text, "status": text, "reason": text, "message": text,
            "lastTransitionTime": { "type": "string", "format": "date-time" },
            "observedGeneration": { "type": "integer", "format": "int64" },
        },
    })
}
