//! Requests on objects and collections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster_objects::ClusterObjects;
use super::deletion_options::DeletionOptions;
use super::kind::SandboxKind;
use super::managed_fields::ObjectWrite;
use super::message::{EpochMillis, StoreRequest, StoreResponse};
use super::meta::{self, meta_mut};
use super::patch::{self, PatchType};
use super::refusal::StoreRefusal;
use super::route::{RequestTarget, SubresourceKind};
use super::selector::ListSelector;
use super::{decode, list, response_form, scale, update};

/// One request on stored objects, and the objects that it reads or writes.
pub(super) struct ResourceRequest<'a> {
    pub(super) now: EpochMillis,
    pub(super) target: &'a RequestTarget,
    pub(super) request: &'a StoreRequest,
    pub(super) objects: &'a mut ClusterObjects,
}

impl ResourceRequest<'_> {
    /// Answers the request by its method.
    pub(super) fn answer(self) -> Result<StoreResponse, StoreRefusal> {
        match (self.request.method.as_str(), &self.target.name) {
            ("GET", Some(_)) => self.get(),
            ("GET", None) => list::answer_list(self.objects.storage(), self.target, self.request),
            ("POST", None) => self.create(),
            ("POST", Some(_)) if self.target.subresource.is_some() => {
                Err(StoreRefusal::not_implemented(&self.target.describe_request()))
            }
            ("PUT", Some(_)) => self.put(),
            ("PATCH", Some(_)) => self.patch(),
            ("DELETE", Some(_)) => self.delete(),
            ("DELETE", None) => self.delete_collection(),
            _ => Err(StoreRefusal::method_not_allowed()),
        }
    }

    fn get(self) -> Result<StoreResponse, StoreRefusal> {
        self.check_not_ahead()?;
        let key = self.target.key();
        // Without a resourceVersion a read is consistent, whatever the state of the cache.
        let cached = self.request.query_param("resourceVersion").and(self.request.as_of);
        let found =
            self.objects.storage().kind_store(self.target.kind.storage).and_then(|kept| match cached {
                Some(revision) => kept.object_at(revision, &key),
                None => kept.objects.get(&key).cloned(),
            });
        let object = found.ok_or_else(|| self.target.not_found())?;
        Ok(self.show_object(200, &object))
    }

    /// Refuses a read of a revision that does not exist yet.
    fn check_not_ahead(&self) -> Result<(), StoreRefusal> {
        let Some(asked) = self.request.query_param("resourceVersion") else { return Ok(()) };
        let asked: u64 = asked.parse().map_err(|_| list::invalid_revision(asked))?;
        let current = self.request.as_of.unwrap_or(self.objects.storage().revision());
        if asked > current { Err(StoreRefusal::too_large_revision(asked, current)) } else { Ok(()) }
    }

    fn create(self) -> Result<StoreResponse, StoreRefusal> {
        if self.target.kind.namespaced && self.target.namespace.is_none() {
            return Err(StoreRefusal::method_not_allowed());
        }
        let object = decode::decode_object(&self.target.kind, self.request)?;
        let write = ObjectWrite::new(self.now, &self.target.kind, self.request);
        let created = self.objects.create_object(&write, self.target.namespace(), object)?;
        Ok(self.show_object(201, &created))
    }

    fn put(self) -> Result<StoreResponse, StoreRefusal> {
        let (kind, target) = (&self.target.kind, self.target);
        if self.is_scale() {
            return Err(StoreRefusal::not_implemented(&target.describe_request()));
        }
        let mut object = update::decode_replacement(target, self.request)?;
        let write = self.object_write();
        let Some(old) = self.stored_object() else {
            if kind.traits.create_on_put && target.subresource.is_none() && meta::uid(&object).is_empty() {
                meta_mut(&mut object).remove("resourceVersion");
                let created = self.objects.create_object(&write, target.namespace(), object)?;
                return Ok(self.show_object(201, &created));
            }
            return Err(target.not_found());
        };
        update::check_replaces(kind, &old, &object)?;
        let updated = self.objects.replace_object(&write, &old, object)?;
        Ok(self.show_object(200, &updated))
    }

    fn patch(self) -> Result<StoreResponse, StoreRefusal> {
        let kind = &self.target.kind;
        let how = PatchType::from_request(kind, self.request)?;
        let old = self.stored_object().ok_or_else(|| self.target.not_found())?;
        let shown = kind.render_version(&old);
        let new = if self.is_scale() {
            scale::patch_replicas(how, self.target, self.request, &shown)?
        } else {
            patch::patch_object(how, self.target, self.request, &shown)?
        };
        let updated = self.objects.replace_object(&self.object_write(), &old, new)?;
        Ok(self.show_object(200, &updated))
    }

    fn delete(self) -> Result<StoreResponse, StoreRefusal> {
        if self.target.subresource.is_some() {
            return Err(StoreRefusal::method_not_allowed());
        }
        let options = DeletionOptions::from_request(self.request)?;
        let kind = &self.target.kind;
        let object = self.stored_object().ok_or_else(|| self.target.not_found())?;
        let outcome = self.objects.delete_object(self.now, kind, &object, &options)?;
        if outcome.deleted && !kind.traits.returns_deleted {
            return Ok(StoreResponse::json(200, &success_status(kind, &outcome.object)));
        }
        Ok(self.show_object(200, &outcome.object))
    }

    fn delete_collection(self) -> Result<StoreResponse, StoreRefusal> {
        let kind = &self.target.kind;
        if kind.namespaced && self.target.namespace.is_none() || kind.plural == "namespaces" {
            return Err(StoreRefusal::method_not_allowed());
        }
        let options = DeletionOptions::from_request(self.request)?;
        let selector = ListSelector::from_request(kind, self.request)?;
        let listed = self.objects.storage().revision().to_string();
        let mut items = Vec::new();
        for object in self.objects.storage().current_objects(kind.storage, &self.target.key_prefix()) {
            if selector.matches(&object) {
                items.push(list::whole_list_item(kind, &object));
                self.objects.delete_object(self.now, kind, &object, &options)?;
            }
        }
        let mut body = json!({"kind": kind.list_kind, "apiVersion": kind.api_version(), "metadata": {"resourceVersion": listed}, "items": items});
        if kind.traits.custom {
            body["metadata"]["continue"] = json!("");
        }
        Ok(StoreResponse::json(200, &body))
    }

    fn stored_object(&self) -> Option<Arc<Value>> {
        self.objects.storage().object(self.target.kind.storage, &self.target.key()).cloned()
    }

    fn is_scale(&self) -> bool {
        self.target.subresource == Some(SubresourceKind::Scale)
    }

    fn object_write(&self) -> ObjectWrite {
        let write = ObjectWrite::new(self.now, &self.target.kind, self.request);
        ObjectWrite { subresource: self.target.subresource, ..write }
    }

    /// Shows one object in the version and the representation that the client asks for.
    fn show_object(&self, status: u16, object: &Arc<Value>) -> StoreResponse {
        let object = self.target.kind.render_version(object);
        if self.is_scale() {
            return StoreResponse::json(status, &scale::to_scale(&object));
        }
        StoreResponse::json(status, &*response_form::render_one(self.request, &object))
    }
}

fn success_status(kind: &SandboxKind, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": kind.plural, "uid": meta::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
