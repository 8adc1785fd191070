//! `metadata.managedFields`: the field managers of an object. Updates only; server-side apply is refused earlier.

use std::sync::Arc;

use serde_json::{Value, json};

use super::field_set::{FieldDifference, FieldSet};
use super::kind::SandboxKind;
use super::message::{EpochMillis, StoreRequest};
use super::meta::{self, meta_mut};
use super::route::SubresourceKind;
use super::schema::SchemaShape;

/// One write: its field manager, time and subresource.
#[derive(Clone, Debug)]
pub(super) struct ObjectWrite {
    pub(super) now: EpochMillis,
    pub(super) kind: Arc<SandboxKind>,
    pub(super) manager: String,
    pub(super) subresource: Option<SubresourceKind>,
    pub(super) dry_run: bool,
}

impl ObjectWrite {
    pub(super) fn new(now: EpochMillis, kind: &Arc<SandboxKind>, request: &StoreRequest) -> ObjectWrite {
        ObjectWrite {
            now,
            kind: kind.clone(),
            manager: request.field_manager(),
            subresource: None,
            dry_run: request.is_dry_run(),
        }
    }

    /// A write by the server itself, as its own controllers do.
    pub(super) fn by_manager(now: EpochMillis, kind: &Arc<SandboxKind>, manager: &str) -> ObjectWrite {
        ObjectWrite { now, kind: kind.clone(), manager: manager.into(), subresource: None, dry_run: false }
    }

    /// A write to the status by the server itself.
    pub(super) fn to_status(now: EpochMillis, kind: &Arc<SandboxKind>, manager: &str) -> ObjectWrite {
        let subresource = Some(SubresourceKind::Status);
        ObjectWrite { subresource, ..ObjectWrite::by_manager(now, kind, manager) }
    }

    fn subresource_name(&self) -> &'static str {
        match self.subresource {
            None => "",
            Some(SubresourceKind::Status) => "status",
            Some(SubresourceKind::Finalize) => "finalize",
            Some(SubresourceKind::Scale) => "scale",
        }
    }

    /// Returns `true` if a write to this subresource may own this top-level field.
    fn may_own(&self, field: &str) -> bool {
        match self.subresource {
            None => !(field == "status" && self.kind.status),
            Some(SubresourceKind::Status) if self.kind.traits.custom => field == "status",
            Some(SubresourceKind::Status) => field != "spec",
            Some(SubresourceKind::Finalize | SubresourceKind::Scale) => field == "spec",
        }
    }
}

struct ManagedFieldsEntry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: String,
    fields: FieldSet,
}

/// Updates the field ownership of `new` for this write: the writer becomes the only owner of all fields that it set or
/// changed; removed fields lose their owners.
pub(super) fn update_managed_fields(write: &ObjectWrite, old: &Value, new: &mut Value) {
    let mut entries: Vec<ManagedFieldsEntry> = read_entries(&old["metadata"]["managedFields"]);
    let given = meta_mut(new).remove("managedFields");
    // The field ownership of an object created without owned fields, or whose list was cleared, is not tracked until
    // the next apply, which the sandbox does not have.
    if entries.is_empty() && !meta::uid(old).is_empty() {
        return;
    }
    if given.is_some_and(|given| given == json!([]) || given == json!([{}])) && !meta::uid(old).is_empty() {
        entries.clear();
    }
    let mut difference = FieldDifference::between(
        &without_identity(old),
        &without_identity(new),
        SchemaShape::of_kind(&write.kind),
    );
    difference.touched.retain_top(|field| write.may_own(field));
    difference.removed.retain_top(|field| write.may_own(field));
    for entry in &mut entries {
        entry.fields.subtract(&difference.touched);
        entry.fields.subtract(&difference.removed);
    }
    let api_version = write.kind.api_version();
    if !difference.touched.is_empty() {
        let mine = entries.iter_mut().find(|entry| {
            entry.manager == write.manager
                && entry.operation == "Update"
                && entry.api_version == api_version
                && entry.subresource == write.subresource_name()
        });
        let time = meta::format_time(write.now);
        match mine {
            Some(entry) => {
                entry.fields.union(&difference.touched);
                entry.time = time;
            }
            None => entries.push(ManagedFieldsEntry {
                manager: write.manager.clone(),
                operation: "Update".into(),
                api_version,
                subresource: write.subresource_name().into(),
                time,
                fields: difference.touched,
            }),
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    entries.sort_by(|a, b| {
        (&a.operation, &a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
            &b.operation,
            &b.time,
            &b.manager,
            &b.api_version,
            &b.subresource,
        ))
    });
    if !entries.is_empty() {
        meta_mut(new).insert("managedFields".into(), entries.iter().map(entry_to_json).collect());
    }
}

/// Returns the object without the fields that no manager can own.
fn without_identity(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    let meta = meta_mut(&mut object);
    for field in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        meta.remove(field);
    }
    object
}

fn read_entries(list: &Value) -> Vec<ManagedFieldsEntry> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = list.as_array().into_iter().flatten();
    entries
        .map(|entry| ManagedFieldsEntry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: text(entry, "time"),
            fields: FieldSet::from_json(&entry["fieldsV1"]),
        })
        .collect()
}

fn entry_to_json(entry: &ManagedFieldsEntry) -> Value {
    let mut written = json!({
        "manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version, "time": entry.time,
        "fieldsType": "FieldsV1", "fieldsV1": entry.fields.to_json(),
    });
    if !entry.subresource.is_empty() {
        written["subresource"] = json!(entry.subresource);
    }
    written
}
