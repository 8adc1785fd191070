//! Creation: what the server makes of a new object before it stores it.

use serde_json::{Value, json};

use super::identity_source::IdentitySource;
use super::kind::SandboxKind;
use super::managed_fields::{self, ObjectWrite};
use super::meta::{self, meta_mut};
use super::namespace_lifecycle;
use super::refusal::{StatusCause, StoreRefusal};
use super::{defaults, limits, prune, validate};

/// Admits a new object: names, defaults and validates it. Its namespace is passed as it is stored now.
pub(super) fn admit_object(
    write: &ObjectWrite,
    namespace: &str,
    stored_namespace: Option<&Value>,
    identities: &mut IdentitySource,
    mut object: Value,
) -> Result<Value, StoreRefusal> {
    let kind = &write.kind;
    set_object_namespace(kind, namespace, &mut object)?;
    if kind.namespaced {
        namespace_lifecycle::check_namespace_open(kind, namespace, stored_namespace, meta::name(&object))?;
    }
    set_object_name(kind, identities, &mut object)?;
    if !meta::text_field(&object, "resourceVersion").is_empty() {
        return Err(StoreRefusal::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    set_fresh_metadata(write, identities.new_uid(), &mut object);
    prune::prune_object(kind, &mut object);
    if kind.status
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    defaults::fill_defaults(kind, &mut object, true);
    managed_fields::update_managed_fields(write, &json!({}), &mut object);
    defaults::allocate_fields(kind, &mut object, Some(identities.draw_number()));
    validate::check_object(kind, &object)?;
    validate::check_custom_definition(kind, &object)?;
    limits::check_event_namespace(kind, &object)?;
    limits::check_size(&object)?;
    Ok(object)
}

/// Sets the namespace from the path. The body must agree with it.
fn set_object_namespace(kind: &SandboxKind, namespace: &str, object: &mut Value) -> Result<(), StoreRefusal> {
    let said = meta::namespace(object).to_owned();
    if !kind.namespaced {
        meta_mut(object).remove("namespace");
        return Ok(());
    }
    if !said.is_empty() && said != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(StoreRefusal::bad_request(message));
    }
    meta_mut(object).insert("namespace".into(), json!(namespace));
    Ok(())
}

fn set_object_name(
    kind: &SandboxKind,
    identities: &mut IdentitySource,
    object: &mut Value,
) -> Result<(), StoreRefusal> {
    if !meta::name(object).is_empty() {
        return Ok(());
    }
    let prefix = meta::text_field(object, "generateName").to_owned();
    if prefix.is_empty() {
        let cause = StatusCause::required("metadata.name", "name or generateName is required");
        return Err(StoreRefusal::invalid(&kind.group, &kind.kind, "", vec![cause]));
    }
    meta_mut(object).insert("name".into(), json!(identities.generate_name(&prefix)));
    Ok(())
}

/// Sets the metadata that the server alone decides.
fn set_fresh_metadata(write: &ObjectWrite, uid: String, object: &mut Value) {
    let meta = meta_mut(object);
    for field in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation"]
    {
        meta.remove(field);
    }
    meta.insert("uid".into(), uid.into());
    meta.insert("creationTimestamp".into(), json!(meta::format_time(write.now)));
    if write.kind.traits.generation || write.kind.traits.custom {
        meta.insert("generation".into(), json!(1));
    }
}
