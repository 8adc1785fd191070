//! Creation: POST on a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::managed_fields::{self, ObjectWrite};
use super::message::{EpochMillis, StoreRequest, StoreResponse};
use super::meta::{self, meta_mut};
use super::refusal::{StatusCause, StoreRefusal};
use super::route::RequestTarget;
use super::{SandboxStore, decode, defaults, limits, prune, response_form, validate};

/// Letters of generated names: no vowels, so that no words result.
const GENERATED_NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl SandboxStore {
    pub(super) fn create_request(
        &mut self,
        now: EpochMillis,
        target: &RequestTarget,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        if target.kind.namespaced && target.namespace.is_none() {
            return Err(StoreRefusal::method_not_allowed());
        }
        let object = decode::decode_object(&target.kind, request)?;
        let write = ObjectWrite::new(now, &target.kind, request);
        let created = self.admit_object(&write, target.namespace(), object)?;
        Ok(StoreResponse::json(
            201,
            &response_form::render_one(request, &target.kind.render_version(&created)),
        ))
    }

    /// Admits a new object: names, defaults, validates and stores it.
    pub(super) fn admit_object(
        &mut self,
        write: &ObjectWrite,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let kind = &write.kind;
        self.set_object_namespace(kind, namespace, &mut object)?;
        self.set_object_name(kind, &mut object)?;
        if !meta::text_field(&object, "resourceVersion").is_empty() {
            return Err(StoreRefusal::new(
                500,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.fresh_metadata(write, &mut object);
        prune::prune_object(kind, &mut object);
        if kind.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        defaults::fill_defaults(kind, &mut object, true);
        managed_fields::update_managed_fields(write, &json!({}), &mut object);
        defaults::allocate_fields(kind, &mut object, Some(self.draw_number()));
        validate::check_object(kind, &object)?;
        validate::check_custom_definition(kind, &object)?;
        limits::check_event_namespace(kind, &object)?;
        limits::check_size(&object)?;
        let (name, key) =
            (meta::name(&object).to_owned(), kind.storage_key(meta::namespace(&object), meta::name(&object)));
        if self.stored_object(kind.storage, &key).is_some() {
            return Err(StoreRefusal::already_exists(&kind.group, &kind.plural, &name));
        }
        if write.dry_run {
            return Ok(Arc::new(object));
        }
        let created = self.commit_object(write.now, kind, object);
        self.after_write(write.now, kind, &created);
        Ok(created)
    }

    /// Sets the namespace from the path. The body must agree with it, and the namespace must exist.
    fn set_object_namespace(
        &self,
        kind: &SandboxKind,
        namespace: &str,
        object: &mut Value,
    ) -> Result<(), StoreRefusal> {
        let said = meta::namespace(object).to_owned();
        if !kind.namespaced {
            meta_mut(object).remove("namespace");
            return Ok(());
        }
        if !said.is_empty() && said != namespace {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(StoreRefusal::bad_request(message));
        }
        meta_mut(object).insert("namespace".into(), json!(namespace));
        self.check_namespace_open(kind, namespace, meta::name(object))
    }

    fn set_object_name(&mut self, kind: &SandboxKind, object: &mut Value) -> Result<(), StoreRefusal> {
        let prefix = meta::text_field(object, "generateName").to_owned();
        if meta::name(object).is_empty() {
            if prefix.is_empty() {
                let cause = StatusCause::required("metadata.name", "name or generateName is required");
                return Err(StoreRefusal::invalid(&kind.group, &kind.kind, "", vec![cause]));
            }
            let mut number = self.draw_number();
            let prefix: String = prefix.chars().take(58).collect();
            let mut name = prefix;
            for _ in 0..5 {
                let at = usize::try_from(number % GENERATED_NAME_LETTERS.len() as u64).unwrap_or(0);
                name.push(char::from(GENERATED_NAME_LETTERS[at]));
                number /= GENERATED_NAME_LETTERS.len() as u64;
            }
            meta_mut(object).insert("name".into(), json!(name));
        }
        Ok(())
    }

    /// Sets the metadata that the server alone decides.
    fn fresh_metadata(&mut self, write: &ObjectWrite, object: &mut Value) {
        let uid = self.new_uid();
        let meta = meta_mut(object);
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation"]
        {
            meta.remove(field);
        }
        meta.insert("uid".into(), json!(uid));
        meta.insert("creationTimestamp".into(), json!(meta::format_time(write.now)));
        if write.kind.traits.generation || write.kind.traits.custom {
            meta.insert("generation".into(), json!(1));
        }
    }
}
