//! Custom resource definitions in the shapes that real operators ship.

use serde_json::{Value, json};

/// Builder of a definition: by default conditions are a list-map in a status subresource.
#[derive(Clone, Debug)]
pub struct CrdBuilder {
    kind: String,
    status: Value,
    subresource: bool,
    categories: Vec<String>,
}

impl CrdBuilder {
    /// Returns `kind` with conditions as the API conventions define them.
    pub fn new(kind: &str) -> Self {
        let conditions = json!({
            "type": "array", "items": condition(),
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        });
        Self {
            kind: kind.to_owned(),
            status: status_with(Some(conditions)),
            subresource: true,
            categories: Vec::new(),
        }
    }

    /// Makes conditions an atomic list, which any writer replaces as a whole.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.status = status_with(Some(json!({ "type": "array", "items": condition() })));
        self
    }

    /// Removes conditions from the status's schema: the server silently prunes them.
    #[must_use]
    pub fn pruning(mut self) -> Self {
        self.status = status_with(None);
        self
    }

    /// Removes these fields from the conditions: older CRDs have no `observedGeneration` there, and some have less.
    #[must_use]
    pub fn without_fields_of_conditions(mut self, fields: &[&str]) -> Self {
        if let Some(Value::Object(known)) = self.status.pointer_mut("/properties/conditions/items/properties")
        {
            known.retain(|name, _| !fields.contains(&name.as_str()));
        }
        self
    }

    /// Makes the status free-form.
    #[must_use]
    pub fn shapeless(mut self) -> Self {
        self.status = json!({ "x-kubernetes-preserve-unknown-fields": true });
        self
    }

    /// Sets a field of the status's schema, at a JSON pointer.
    #[must_use]
    pub fn with_schema(mut self, pointer: &str, value: Value) -> Self {
        let (schema, field) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(known)) = self.status.pointer_mut(schema) {
            known.insert(field.to_owned(), value);
        }
        self
    }

    /// Removes the status subresource: the status is written on the object itself, and each write changes the
    /// generation.
    #[must_use]
    pub fn without_status_subresource(mut self) -> Self {
        self.subresource = false;
        self
    }

    /// Adds the kind to a category.
    #[must_use]
    pub fn in_category(mut self, category: &str) -> Self {
        self.categories.push(category.to_owned());
        self
    }

    /// Returns the manifest.
    pub fn manifest(&self, group: &str) -> Value {
        let kind = crate::kind::ManifestKind::new(&format!("{group}/v1"), &self.kind);
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
                    "categories": self.categories,
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
