//! The custom resources that the cases use, and the placeholders of paths.

use serde_json::{Value, json};

/// The API group of the custom resources.
pub(super) const FIXTURE_GROUP: &str = "conformance.rollcall.dev";

/// Collections by placeholder: path, and apiVersion and kind of the objects.
const FIXTURE_COLLECTIONS: [(&str, &str, &str, &str); 22] = [
    ("maps", "/apis/conformance.rollcall.dev/v1/namespaces/{ns}/maps", "conformance.rollcall.dev/v1", "Map"),
    (
        "atoms",
        "/apis/conformance.rollcall.dev/v1/namespaces/{ns}/atoms",
        "conformance.rollcall.dev/v1",
        "Atom",
    ),
    (
        "plains",
        "/apis/conformance.rollcall.dev/v1/namespaces/{ns}/plains",
        "conformance.rollcall.dev/v1",
        "Plain",
    ),
    (
        "prunes",
        "/apis/conformance.rollcall.dev/v1/namespaces/{ns}/prunes",
        "conformance.rollcall.dev/v1",
        "Prune",
    ),
    (
        "defaults",
        "/apis/conformance.rollcall.dev/v1/namespaces/{ns}/defaults",
        "conformance.rollcall.dev/v1",
        "Default",
    ),
    (
        "olds",
        "/apis/conformance.rollcall.dev/v1alpha1/namespaces/{ns}/twins",
        "conformance.rollcall.dev/v1alpha1",
        "Twin",
    ),
    (
        "twins",
        "/apis/conformance.rollcall.dev/v1/namespaces/{ns}/twins",
        "conformance.rollcall.dev/v1",
        "Twin",
    ),
    ("wides", "/apis/conformance.rollcall.dev/v1/wides", "conformance.rollcall.dev/v1", "Wide"),
    ("cms", "/api/v1/namespaces/{ns}/configmaps", "v1", "ConfigMap"),
    ("pods", "/api/v1/namespaces/{ns}/pods", "v1", "Pod"),
    ("services", "/api/v1/namespaces/{ns}/services", "v1", "Service"),
    ("pvcs", "/api/v1/namespaces/{ns}/persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    ("coreevents", "/api/v1/namespaces/{ns}/events", "v1", "Event"),
    ("newevents", "/apis/events.k8s.io/v1/namespaces/{ns}/events", "events.k8s.io/v1", "Event"),
    ("namespaces", "/api/v1/namespaces", "v1", "Namespace"),
    ("deployments", "/apis/apps/v1/namespaces/{ns}/deployments", "apps/v1", "Deployment"),
    ("statefulsets", "/apis/apps/v1/namespaces/{ns}/statefulsets", "apps/v1", "StatefulSet"),
    ("jobs", "/apis/batch/v1/namespaces/{ns}/jobs", "batch/v1", "Job"),
    ("pdbs", "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
    ("leases", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", "coordination.k8s.io/v1", "Lease"),
    ("secrets", "/api/v1/namespaces/{ns}/secrets", "v1", "Secret"),
    (
        "crds",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ),
];

/// Placeholders of collections, with their paths.
pub(super) fn collection_words() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIXTURE_COLLECTIONS.iter().map(|(word, path, ..)| (*word, *path))
}

/// Expands the short form of an object for the collection that a request names.
pub(super) fn expand_object(request: &str, short: &Value) -> Value {
    let word =
        request.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(word, _)| word);
    let found = FIXTURE_COLLECTIONS.iter().find(|(name, ..)| *name == word);
    let mut object = short.clone();
    let name = object.as_object_mut().and_then(|fields| fields.remove("name"));
    if let Some(name) = name {
        object["metadata"]["name"] = name;
    }
    if let Some((_, _, api_version, kind)) = found {
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
    }
    object
}

/// CustomResourceDefinitions to install before the first case.
pub(super) fn fixture_definitions() -> Vec<Value> {
    let condition = json!({
        "type": "object", "required": ["type", "status"],
        "properties": {
            "type": {"type": "string"}, "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"}, "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer"},
        },
    });
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": condition});
    let atomic = json!({"type": "array", "items": condition});
    let mut defaulted = keyed.clone();
    defaulted["default"] = json!([{"type": "Ready", "status": "Unknown", "reason": "ChildrenPending", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}]);
    let loose = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let status = |conditions: &Value| json!({"type": "object", "properties": {"phase": {"type": "string"}, "observedGeneration": {"type": "integer"}, "conditions": conditions}});
    let mut defaulted = status(&defaulted);
    defaulted["default"] = json!({});
    defaulted["properties"]["observedGeneration"]["default"] = json!(0);
    vec![
        fixture_definition(
            "maps",
            "Map",
            true,
            &["v1"],
            &json!({"spec": fixture_spec(), "status": status(&keyed)}),
        ),
        fixture_definition(
            "atoms",
            "Atom",
            true,
            &["v1"],
            &json!({"spec": loose, "status": status(&atomic)}),
        ),
        fixture_definition("plains", "Plain", false, &["v1"], &json!({"spec": loose, "status": loose})),
        fixture_definition(
            "prunes",
            "Prune",
            true,
            &["v1"],
            &json!({"spec": fixture_spec(), "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}),
        ),
        fixture_definition(
            "defaults",
            "Default",
            true,
            &["v1"],
            &json!({"spec": fixture_spec(), "status": defaulted}),
        ),
        fixture_definition(
            "twins",
            "Twin",
            true,
            &["v1", "v1alpha1"],
            &json!({"spec": loose, "status": loose}),
        ),
        fixture_definition("wides", "Wide", true, &["v1"], &json!({"spec": loose, "status": loose})),
    ]
}

fn fixture_spec() -> Value {
    json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer", "minimum": 0, "maximum": 100},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "any": {"x-kubernetes-int-or-string": true},
            "maybe": {"type": "string", "nullable": true},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 3},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "nested": {"type": "object", "required": ["must"], "properties": {"must": {"type": "string"}, "level": {"type": "integer", "default": 3}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "integer"}}},
        },
    })
}

fn fixture_definition(
    plural: &str,
    kind: &str,
    status: bool,
    versions: &[&str],
    properties: &Value,
) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, version)| {
            let subresources = if status { json!({"status": {}}) } else { json!({}) };
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": properties}});
            json!({"name": version, "served": true, "storage": at == 0, "subresources": subresources, "schema": schema})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{FIXTURE_GROUP}")},
        "spec": {
            "group": FIXTURE_GROUP, "scope": if plural == "wides" { "Cluster" } else { "Namespaced" },
            "names": {"plural": plural, "kind": kind, "shortNames": [format!("c{}", &plural[..2])]}, "versions": versions,
        },
    })
}
