//! POST on a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::Kind;
use super::managed::{self, Write};
use super::message::{Millis, Request, Response};
use super::meta::{self, meta_mut};
use super::refusal::{Cause, Refusal};
use super::route::Target;
use super::{Store, decode, defaults, limits, prune, validate, view};

/// What generated names are made of: no vowels, so no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Store {
    pub(super) fn create_request(
        &mut self,
        now: Millis,
        target: &Target,
        request: &Request,
    ) -> Result<Response, Refusal> {
        if target.kind.namespaced && target.namespace.is_none() {
            return Err(Refusal::not_allowed());
        }
        let object = decode::object(&target.kind, request)?;
        let write = Write::new(now, &target.kind, request);
        let created = self.admit(&write, target.namespace(), object)?;
        Ok(Response::json(201, &view::one(request, &target.kind.render(&created))))
    }

    /// Takes an object in: names it, fills it, checks it, and keeps it.
    pub(super) fn admit(
        &mut self,
        write: &Write,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Value>, Refusal> {
        let kind = &write.kind;
        self.place(kind, namespace, &mut object)?;
        self.name(kind, &mut object)?;
        if !meta::text(&object, "resourceVersion").is_empty() {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.fresh_metadata(write, &mut object);
        prune::object(kind, &mut object);
        if kind.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        defaults::fill(kind, &mut object, true);
        managed::update(write, &json!({}), &mut object);
        defaults::allocate(kind, &mut object, Some(self.draw()));
        validate::object(kind, &object)?;
        validate::custom_definition(kind, &object)?;
        limits::event(kind, &object)?;
        limits::size(&object)?;
        let (name, key) =
            (meta::name(&object).to_owned(), kind.key(meta::namespace(&object), meta::name(&object)));
        if self.object(kind.storage, &key).is_some() {
            return Err(Refusal::already_exists(&kind.group, &kind.plural, &name));
        }
        if write.dry {
            return Ok(Arc::new(object));
        }
        let created = self.commit(write.now, kind, object);
        self.after_write(write.now, kind, &created);
        Ok(created)
    }

    /// The namespace of the path wins, has to agree with the body, and has to exist.
    fn place(&self, kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Refusal> {
        let said = meta::namespace(object).to_owned();
        if !kind.namespaced {
            meta_mut(object).remove("namespace");
            return Ok(());
        }
        if !said.is_empty() && said != namespace {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Refusal::bad_request(message));
        }
        meta_mut(object).insert("namespace".into(), json!(namespace));
        self.open_namespace(kind, namespace, meta::name(object))
    }

    fn name(&mut self, kind: &Kind, object: &mut Value) -> Result<(), Refusal> {
        let prefix = meta::text(object, "generateName").to_owned();
        if meta::name(object).is_empty() {
            if prefix.is_empty() {
                let cause = Cause::required("metadata.name", "name or generateName is required");
                return Err(Refusal::invalid(&kind.group, &kind.kind, "", vec![cause]));
            }
            let mut number = self.draw();
            let prefix: String = prefix.chars().take(58).collect();
            let mut name = prefix;
            for _ in 0..5 {
                name.push(char::from(LETTERS[(number % LETTERS.len() as u64) as usize]));
                number /= LETTERS.len() as u64;
            }
            meta_mut(object).insert("name".into(), json!(name));
        }
        Ok(())
    }

    /// What the server alone decides.
    fn fresh_metadata(&mut self, write: &Write, object: &mut Value) {
        let uid = self.new_uid();
        let meta = meta_mut(object);
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation"]
        {
            meta.remove(field);
        }
        meta.insert("uid".into(), json!(uid));
        meta.insert("creationTimestamp".into(), json!(meta::time(write.now)));
        if write.kind.traits.generation || write.kind.traits.custom {
            meta.insert("generation".into(), json!(1));
        }
    }
}
