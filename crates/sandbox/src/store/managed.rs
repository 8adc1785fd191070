//! `metadata.managedFields`: who wrote which field. Updates only; server-side apply is refused before it gets here.

use std::sync::Arc;

use serde_json::{Value, json};

use super::fieldset::{Difference, FieldSet};
use super::kind::Kind;
use super::message::{Millis, Request};
use super::meta::{self, meta_mut};
use super::route::Sub;
use super::schema::Shape;

/// One write: who, when, to which part.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) now: Millis,
    pub(super) kind: Arc<Kind>,
    pub(super) manager: String,
    pub(super) sub: Option<Sub>,
    pub(super) dry: bool,
}

impl Write {
    pub(super) fn new(now: Millis, kind: &Arc<Kind>, request: &Request) -> Write {
        Write { now, kind: kind.clone(), manager: request.manager(), sub: None, dry: request.dry() }
    }

    /// By the server itself, as its own controllers write.
    pub(super) fn by(now: Millis, kind: &Arc<Kind>, manager: &str) -> Write {
        Write { now, kind: kind.clone(), manager: manager.into(), sub: None, dry: false }
    }

    fn subresource(&self) -> &'static str {
        match self.sub {
            None => "",
            Some(Sub::Status) => "status",
            Some(Sub::Finalize) => "finalize",
        }
    }

    /// Whether a write to this part may own this top-level field.
    fn may_own(&self, field: &str) -> bool {
        match self.sub {
            None => !(field == "status" && self.kind.status),
            Some(Sub::Status) if self.kind.traits.custom => field == "status",
            Some(Sub::Status) => field != "spec",
            Some(Sub::Finalize) => field == "spec",
        }
    }
}

struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: String,
    fields: FieldSet,
}

/// Gives `new` the owners that follow from this write: what it set or changed is the writer's and nobody else's, what
/// it removed is nobody's.
pub(super) fn update(write: &Write, old: &Value, new: &mut Value) {
    let mut entries: Vec<Entry> = read(&old["metadata"]["managedFields"]);
    let given = meta_mut(new).remove("managedFields");
    // Whoever created it without owning anything, or cleared the list, is not tracked: until an apply, which there is not.
    if entries.is_empty() && !meta::uid(old).is_empty() {
        return;
    }
    if given.is_some_and(|given| given == json!([]) || given == json!([{}])) && !meta::uid(old).is_empty() {
        entries.clear();
    }
    let mut difference =
        Difference::between(&without_identity(old), &without_identity(new), Shape::of(&write.kind));
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
                && entry.subresource == write.subresource()
        });
        let time = meta::time(write.now);
        match mine {
            Some(entry) => {
                entry.fields.union(&difference.touched);
                entry.time = time;
            }
            None => entries.push(Entry {
                manager: write.manager.clone(),
                operation: "Update".into(),
                api_version,
                subresource: write.subresource().into(),
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
        meta_mut(new).insert("managedFields".into(), entries.iter().map(written).collect());
    }
}

/// The object without what nobody can own.
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

fn read(list: &Value) -> Vec<Entry> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = list.as_array().into_iter().flatten();
    entries
        .map(|entry| Entry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: text(entry, "time"),
            fields: FieldSet::from_json(&entry["fieldsV1"]),
        })
        .collect()
}

fn written(entry: &Entry) -> Value {
    let mut written = json!({
        "manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version, "time": entry.time,
        "fieldsType": "FieldsV1", "fieldsV1": entry.fields.to_json(),
    });
    if !entry.subresource.is_empty() {
        written["subresource"] = json!(entry.subresource);
    }
    written
}
