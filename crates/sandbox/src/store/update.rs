//! Updates: what a PUT must say, and what the server makes of a new state of an object before it stores it.

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::managed_fields::{self, ObjectWrite};
use super::message::StoreRequest;
use super::meta::{self, meta_mut};
use super::refusal::{StatusCause, StoreRefusal};
use super::route::{RequestTarget, SubresourceKind};
use super::{decode, defaults, limits, prune, validate};

/// Decodes the body of a PUT, which must name the object that its path names.
pub(super) fn decode_replacement(
    target: &RequestTarget,
    request: &StoreRequest,
) -> Result<Value, StoreRefusal> {
    let kind = &target.kind;
    let mut object = decode::decode_object(kind, request)?;
    let name = target.name();
    let said = meta::name(&object).to_owned();
    if said.is_empty() && kind.traits.custom {
        return Err(StoreRefusal::bad_request("name must be provided"));
    }
    if !said.is_empty() && said != name {
        return Err(StoreRefusal::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    let space = meta::namespace(&object).to_owned();
    if !space.is_empty() && space != target.namespace() {
        return Err(StoreRefusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let meta = meta_mut(&mut object);
    meta.insert("name".into(), json!(name));
    if kind.namespaced {
        meta.insert("namespace".into(), json!(target.namespace()));
    }
    Ok(object)
}

/// Checks the identity and the version that a PUT names against the stored object.
pub(super) fn check_replaces(kind: &SandboxKind, old: &Value, new: &Value) -> Result<(), StoreRefusal> {
    require_version(kind, meta::name(old), new)?;
    check_same_uid(kind, old, new)
}

/// Result of an update.
pub(super) enum AdmittedUpdate {
    /// The update changes nothing.
    Unchanged,
    /// The object is to be stored.
    Changed(Value),
    /// Nothing holds the object that is being deleted any more: it is to be removed.
    Released(Value),
}

/// Admits a new state of an object, as far as this write may change it. Both states are in the version of the write.
pub(super) fn admit_update(
    write: &ObjectWrite,
    old: &Value,
    mut new: Value,
) -> Result<AdmittedUpdate, StoreRefusal> {
    let kind = &write.kind;
    check_version(kind, old, &new)?;
    if !(write.subresource == Some(SubresourceKind::Status) && kind.traits.custom) {
        check_uid_unchanged(kind, old, &new)?;
    }
    prune::prune_object(kind, &mut new);
    keep_identity(old, &mut new);
    keep_other_half(write, old, &mut new);
    defaults::fill_defaults(kind, &mut new, false);
    managed_fields::update_managed_fields(write, old, &mut new);
    defaults::allocate_fields(kind, &mut new, None);
    bump_generation(kind, old, &mut new);
    validate::check_no_new_finalizers(kind, old, &new)?;
    validate::check_object(kind, &new)?;
    limits::check_size(&new)?;
    meta::remove_empty_fields(&mut new);
    meta_mut(&mut new).insert("resourceVersion".into(), json!(meta::text_field(old, "resourceVersion")));
    Ok(if new == *old {
        AdmittedUpdate::Unchanged
    } else if last_finalizer_went(kind, &new) {
        AdmittedUpdate::Released(new)
    } else {
        AdmittedUpdate::Changed(new)
    })
}

fn last_finalizer_went(kind: &SandboxKind, new: &Value) -> bool {
    let grace = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let held = kind.plural == "namespaces"
        && new["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    meta::is_deleting(new) && meta::finalizers(new).is_empty() && grace == 0 && !held
}

/// Requires a resourceVersion for custom resources: they are never replaced unconditionally.
fn require_version(kind: &SandboxKind, name: &str, object: &Value) -> Result<(), StoreRefusal> {
    let said = meta::text_field(object, "resourceVersion");
    if !said.is_empty() && said != "0" || kind.traits.blind_put {
        return Ok(());
    }
    let cause =
        StatusCause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
    Err(StoreRefusal::invalid(&kind.group, &kind.plural, name, vec![cause]))
}

/// Checks the writer's resourceVersion against the stored one.
fn check_version(kind: &SandboxKind, old: &Value, new: &Value) -> Result<(), StoreRefusal> {
    let name = meta::name(old);
    let said = meta::text_field(new, "resourceVersion");
    if !said.is_empty() && said != "0" && said != meta::text_field(old, "resourceVersion") {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(StoreRefusal::conflict(&kind.group, &kind.plural, name, why));
    }
    Ok(())
}

/// Checks the UID of a PUT: if it names one, it must be that of the stored object.
fn check_same_uid(kind: &SandboxKind, old: &Value, new: &Value) -> Result<(), StoreRefusal> {
    let (said, is) = (meta::uid(new), meta::uid(old));
    if said.is_empty() || said == is {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {said}, UID in object meta: {is}");
    Err(StoreRefusal::conflict(&kind.group, &kind.plural, meta::name(old), &why))
}

/// Refuses a patch that changes the UID.
fn check_uid_unchanged(kind: &SandboxKind, old: &Value, new: &Value) -> Result<(), StoreRefusal> {
    let said = meta::uid(new);
    if said.is_empty() || said == meta::uid(old) {
        return Ok(());
    }
    // The real server validates metadata twice and reports each error twice.
    let cause = StatusCause::invalid("metadata.uid", &json!(said), "field is immutable");
    Err(StoreRefusal::invalid(&kind.group, &kind.kind, meta::name(old), vec![cause.clone(), cause]))
}

fn keep_identity(old: &Value, new: &mut Value) {
    let fixed = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ];
    let meta = meta_mut(new);
    for field in fixed {
        match &old["metadata"][field] {
            Value::Null => meta.remove(field),
            value => meta.insert(field.into(), value.clone()),
        };
    }
}

/// Keeps the part that this write must not change: a write to the main resource keeps the status, a write to the status
/// keeps everything else.
fn keep_other_half(write: &ObjectWrite, old: &Value, new: &mut Value) {
    let kind = &write.kind;
    match write.subresource {
        None if kind.status => set_field(new, "status", &old["status"]),
        Some(SubresourceKind::Status) if kind.traits.custom => {
            let (status, managed) = (new["status"].take(), new["metadata"]["managedFields"].take());
            *new = old.clone();
            set_field(new, "status", &status);
            set_field(&mut new["metadata"], "managedFields", &managed);
        }
        Some(SubresourceKind::Status) => {
            set_field(new, "spec", &old["spec"]);
            let labels = old["metadata"]["labels"].clone();
            set_field(&mut new["metadata"], "labels", &labels);
        }
        Some(SubresourceKind::Finalize) => {
            let finalizers = new["spec"]["finalizers"].take();
            *new = old.clone();
            set_field(&mut new["spec"], "finalizers", &finalizers);
        }
        // Nothing else was taken from its body.
        None | Some(SubresourceKind::Scale) => {}
    }
    if kind.plural == "namespaces" && !kind.traits.custom && write.subresource.is_none() {
        set_field(new, "spec", &old["spec"]);
    }
}

fn set_field(object: &mut Value, field: &str, value: &Value) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Value::Null => fields.remove(field),
        value => fields.insert(field.into(), value.clone()),
    };
}

fn bump_generation(kind: &SandboxKind, old: &Value, new: &mut Value) {
    if !(kind.traits.custom || kind.traits.generation) {
        return;
    }
    let counts = |field: &str| field != "metadata" && !(field == "status" && kind.status);
    let essence = |object: &Value| -> serde_json::Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(field, _)| counts(field))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    };
    // A Deployment's annotations are copied to its ReplicaSets, so they count.
    let annotated =
        kind.plural == "deployments" && old["metadata"]["annotations"] != new["metadata"]["annotations"];
    if annotated || essence(old) != essence(new) {
        let next = meta::generation(old) + 1;
        meta_mut(new).insert("generation".into(), json!(next));
    }
}
