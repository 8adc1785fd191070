//! The kinds that a CustomResourceDefinition adds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::definition::{complete_names, storage_versions, version_priority};
use super::kind::{KindTraits, SandboxKind};
use super::managed_fields::{self, ObjectWrite};
use super::message::EpochMillis;
use super::meta;
use super::structural_schema::StructuralSchema;
use super::{defaults, prune, table};

/// Gives a stored object the shape that the schema of its kind has now.
pub(super) fn reshape_object(served: &SandboxKind, object: &mut Value) {
    prune::prune_object(served, object);
    defaults::fill_defaults(served, object, false);
}

/// Returns the CRD with the status of one whose kinds are served; `None` if it has that status.
pub(super) fn establish_definition(
    now: EpochMillis,
    kind: &Arc<SandboxKind>,
    definition: &Value,
) -> Option<Value> {
    let mut established = definition.clone();
    established["status"] = definition_status(definition, now);
    if established["status"] == definition["status"] {
        return None;
    }
    let write = ObjectWrite::to_status(now, kind, "kube-apiserver");
    managed_fields::update_managed_fields(&write, definition, &mut established);
    Some(established)
}

/// Returns the served versions, the preferred one first.
pub(super) fn served_kinds(definition: &Value) -> Vec<SandboxKind> {
    let spec = &definition["spec"];
    let names = complete_names(definition);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| meta::list_strings(value).into_iter().map(str::to_owned).collect();
    let mut versions: Vec<&Value> = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["served"] == true)
        .collect();
    versions.sort_by_key(|version| {
        std::cmp::Reverse(version_priority(version["name"].as_str().unwrap_or_default()))
    });
    let described = versions.into_iter().map(|version| {
        let schema = &version["schema"]["openAPIV3Schema"];
        SandboxKind {
            storage: 0,
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&names["kind"]),
            list_kind: text(&names["listKind"]),
            plural: text(&names["plural"]),
            singular: text(&names["singular"]),
            short_names: list(&names["shortNames"]),
            categories: list(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            status: version["subresources"]["status"].is_object(),
            traits: KindTraits { custom: true, generation: true, ..KindTraits::default() },
            columns: table::parse_columns(version),
            schema: schema.is_object().then(|| Arc::new(StructuralSchema(schema.clone()))),
        }
    });
    described.collect()
}

fn definition_status(definition: &Value, now: EpochMillis) -> Value {
    let condition = |what: &str, reason: &str, message: &str| {
        let since = definition["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == what);
        let since = since.map_or_else(
            || json!(meta::format_time(now)),
            |condition| condition["lastTransitionTime"].clone(),
        );
        json!({"type": what, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since})
    };
    json!({
        "acceptedNames": complete_names(definition),
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": storage_versions(definition),
    })
}
