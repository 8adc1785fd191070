//! One object as the checks need it: identity, size, and field managers. Its full text is not kept.

use inspect::field_managers::{FieldManager, field_managers, finalizer_manager};
use inspect::kubectl::KubectlObject;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::status::{
    ListShape, OwnTypes, ParentStatus, PatchGuard, WantedConditions, guarded_patch, raw_json,
};
use watcher::wire::{ChildObject, WireMeta};
use watcher::{ApiKind, WireObject};

use crate::eval::{decode_json, object_title};

/// One object.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckedObject {
    pub(super) meta: WireMeta,
    /// Set by the lister, as list items do not always contain it.
    pub(super) group: String,
    pub(super) kind: String,
    /// `true` if the kind has no status subresource.
    pub(super) without_status_subresource: bool,
    /// Size of the object as the server wrote it; `None` if only the metadata was read.
    pub(super) bytes: Option<usize>,
    /// Names and sizes of its annotations.
    pub(super) annotations: Vec<(String, usize)>,
    pub(super) managers: Vec<FieldWriter>,
    pub(super) observed: ReportedGeneration,
    /// Types of Rollcall's conditions.
    pub(super) own_conditions: Vec<String>,
    /// Conditions of others: type and manager.
    pub(super) foreign_conditions: Vec<(String, String)>,
    /// Patch that removes Rollcall's conditions.
    pub(super) release: Option<Value>,
    /// Reason why conditions cannot be written into the status.
    pub(super) unwritable: Option<&'static str>,
    /// Time of the last write of `status.kopf.progress`; empty if it is present but the time is unknown.
    pub(super) kopf_progress: Option<String>,
    /// `true` for a finished Job.
    pub(super) ended: bool,
    /// Images of its pods' containers and init containers.
    pub(super) images: Vec<String>,
    /// The finalizers that have exactly one known manager.
    pub(super) finalizer_managers: Vec<(String, String)>,
}

/// A field manager and the fields it owns, as far as checks need them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldWriter {
    pub(super) name: String,
    /// `true` if it owns the list of conditions as a whole, not an entry of it.
    pub(super) owns_conditions: bool,
    /// `true` if it wrote the main resource, not the status.
    pub(super) wrote_main: bool,
    /// `true` if it wrote the spec.
    pub(super) wrote_spec: bool,
    pub(super) time: String,
}

/// `status.observedGeneration`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ReportedGeneration {
    #[default]
    Absent,
    Number(i64),
    /// Not a number: the value as it stands there.
    Odd(String),
}

impl<'de> Deserialize<'de> for CheckedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|text| CheckedObject::from_json(&text))
    }
}

impl WireObject for CheckedObject {
    fn meta(&self) -> &WireMeta {
        &self.meta
    }
}

impl CheckedObject {
    pub(super) fn from_json(object: &RawValue) -> CheckedObject {
        let child = ChildObject::from_raw(object);
        let status = ParentStatus::read(object, &OwnTypes::any());
        let generation = (child.meta.generation > 0).then_some(child.meta.generation);
        let uid = &*child.meta.uid;
        let guarded = PatchGuard { uid, generation, version: 0, status: &status, requires_list: false };
        let release = guarded_patch(&guarded, &WantedConditions::default());
        // Deeper than any real object; too deep a part is read as empty.
        let part = |key: &str| {
            raw_json::get_member(object, key).and_then(|part| decode_json(part.get())).unwrap_or_default()
        };
        let metadata = serde_json::json!({ "metadata": part("metadata") });
        let ended = child.facts.status.conditions.iter().any(|condition| {
            matches!(&*condition.name, "Complete" | "Failed")
                && condition.status == readiness::TruthValue::True
        });
        let mut seen = CheckedObject {
            bytes: Some(object.get().len()),
            annotations: annotation_sizes(&metadata),
            managers: field_writers(&metadata),
            observed: reported_generation(object),
            own_conditions: status.written().map(|owned| owned.kind().to_owned()).collect(),
            foreign_conditions: status
                .foreign
                .iter()
                .map(|(kind, by, _)| (kind.to_string(), by.to_string()))
                .collect(),
            release,
            unwritable: match status.list {
                ListShape::Unwritable(why) => Some(why.as_str()),
                _ => None,
            },
            kopf_progress: raw_json::get_path(object, &["status", "kopf", "progress"])
                .filter(|progress| !raw_json::is_null(progress))
                .map(|_| last_written(&metadata, &["f:status", "f:kopf"]).unwrap_or_default()),
            ended,
            images: container_images(object),
            ..CheckedObject::default()
        };
        for name in &child.meta.finalizers {
            if let Some(manager) = finalizer_manager(&metadata, name) {
                seen.finalizer_managers.push((name.to_string(), manager.to_owned()));
            }
        }
        seen.meta = child.meta;
        seen
    }

    pub(super) fn with_kind(mut self, api: &ApiKind) -> CheckedObject {
        self.group.clone_from(&api.group);
        self.kind.clone_from(&api.kind);
        self.without_status_subresource = !api.has_status;
        self
    }

    /// Marks that only the metadata was read.
    pub(super) fn metadata_only(mut self) -> CheckedObject {
        self.bytes = None;
        self
    }

    pub(super) fn display_title(&self) -> String {
        object_title(&self.kind, &self.meta.namespace, &self.meta.name)
    }

    pub(super) fn object_ref(&self) -> KubectlObject<'_> {
        KubectlObject {
            group: &self.group,
            kind: &self.kind,
            namespace: &self.meta.namespace,
            name: &self.meta.name,
        }
    }

    pub(super) fn is_kind(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub(super) fn label_value(&self, key: &str) -> Option<&str> {
        self.meta.labels.iter().find(|(known, _)| **known == *key).map(|(_, value)| &**value)
    }

    pub(super) fn has_annotation(&self, key: &str) -> bool {
        self.annotations.iter().any(|(known, _)| known == key)
    }

    /// Returns the time of the last write by a manager that owns part of the spec.
    pub(super) fn spec_changed_at(&self) -> Option<readiness::Time> {
        let last =
            self.managers.iter().filter(|writer| writer.wrote_spec).map(|writer| &*writer.time).max()?;
        watcher::status::time::parse_rfc3339(last)
    }
}

fn annotation_sizes(object: &Value) -> Vec<(String, usize)> {
    let all = object["metadata"]["annotations"].as_object().into_iter().flatten();
    all.map(|(key, value)| (key.clone(), value.as_str().map_or(0, str::len))).collect()
}

fn field_writers(object: &Value) -> Vec<FieldWriter> {
    let writer = |manager: FieldManager<'_>| FieldWriter {
        name: manager.name.to_owned(),
        owns_conditions: manager.owns_leaf(&["f:status", "f:conditions"]),
        wrote_main: manager.subresource.is_empty(),
        wrote_spec: manager.subresource.is_empty() && manager.owns_path(&["f:spec"]),
        time: manager.time.to_owned(),
    };
    field_managers(object).map(writer).collect()
}

/// Returns the time of the last write to a field by its owner.
fn last_written(object: &Value, path: &[&str]) -> Option<String> {
    field_managers(object)
        .filter(|manager| manager.owns_path(path))
        .map(|manager| manager.time.to_owned())
        .max()
}

fn reported_generation(object: &RawValue) -> ReportedGeneration {
    match raw_json::get_path(object, &["status", "observedGeneration"])
        .filter(|value| !raw_json::is_null(value))
    {
        None => ReportedGeneration::Absent,
        Some(value) => raw_json::integer_value(value).map_or_else(
            || ReportedGeneration::Odd(value.get().chars().take(40).collect()),
            ReportedGeneration::Number,
        ),
    }
}

fn container_images(object: &RawValue) -> Vec<String> {
    let spec = raw_json::get_path(object, &["spec", "template", "spec"]);
    let mut images = Vec::new();
    for list in ["initContainers", "containers"] {
        let containers = spec
            .and_then(|spec| raw_json::get_member(spec, list))
            .and_then(raw_json::list_elements)
            .unwrap_or_default();
        let image = |container: &RawValue| {
            raw_json::get_member(container, "image").and_then(raw_json::string_value).map(Into::into)
        };
        images.extend(containers.into_iter().filter_map(image));
    }
    images.sort();
    images.dedup();
    images
}
