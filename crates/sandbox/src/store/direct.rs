//! The same requests without paths and bytes, for tests and for the simulator.

use std::sync::Arc;

use serde_json::{Value, json};

use super::managed::Write;
use super::message::{Millis, Request};
use super::refusal::Refusal;
use super::{Kind, Store, decode, meta};

/// Who writes where nothing else is said.
const MANAGER: &str = "sandbox";

impl Store {
    /// Creates an object from its full manifest. A namespaced object without a namespace goes to `default`.
    pub fn create(&mut self, now: Millis, object: Value) -> Result<Arc<Value>, Refusal> {
        let kind = self.kind_of(&object)?;
        let namespace =
            if meta::namespace(&object).is_empty() { "default" } else { meta::namespace(&object) }.to_owned();
        let mut object = object;
        decode::claims(&kind, &mut object)?;
        let created = self.admit(&Write::by(now, &kind, MANAGER), &namespace, object)?;
        self.settle(now);
        Ok(created)
    }

    /// Creates an object together with its status, as if its controller had written it at once.
    pub fn create_with_status(&mut self, now: Millis, object: Value) -> Result<Arc<Value>, Refusal> {
        let status = object["status"].clone();
        let created = self.create(now, object)?;
        if status.is_null() {
            return Ok(created);
        }
        let kind = self.kind_of(&created)?;
        self.patch_status(
            now,
            &kind.api_version(),
            &kind.kind,
            meta::namespace(&created),
            meta::name(&created),
            &json!({ "status": status }),
        )
    }

    /// The object as it is now.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let kind = self.registry.by_object(api_version, kind)?;
        self.object(kind.storage, &kind.key(namespace, name)).map(|object| kind.render(object))
    }

    /// All objects of a kind, of one namespace or (empty) of all, in key order.
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(kind) = self.registry.by_object(api_version, kind) else { return Vec::new() };
        let Some(shelf) = self.shelves.get(&kind.storage) else { return Vec::new() };
        let within = |object: &Value| namespace.is_empty() || meta::namespace(object) == namespace;
        shelf.objects.values().filter(|object| within(object)).map(|object| kind.render(object)).collect()
    }

    /// A merge patch on the main resource.
    pub fn patch(
        &mut self,
        now: Millis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, Refusal> {
        self.patched(now, api_version, kind, namespace, name, patch, "")
    }

    /// A merge patch on the status; where the kind has no status subresource, on the main resource.
    pub fn patch_status(
        &mut self,
        now: Millis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, Refusal> {
        let own = self.registry.by_object(api_version, kind).is_some_and(|kind| kind.status);
        self.patched(now, api_version, kind, namespace, name, patch, if own { "/status" } else { "" })
    }

    #[expect(clippy::too_many_arguments, reason = "the address of an object has four parts")]
    fn patched(
        &mut self,
        now: Millis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
        sub: &str,
    ) -> Result<Arc<Value>, Refusal> {
        let path = self.path(api_version, kind, namespace, name)?;
        let request = Request::with("PATCH", &format!("{path}{sub}"), "application/merge-patch+json", patch)
            .by(MANAGER);
        let response = self.answer(now, &request)?;
        self.settle(now);
        Ok(Arc::new(response.value()))
    }

    /// Deletes an object as a plain DELETE does; true when it is gone and not only marked.
    pub fn delete(
        &mut self,
        now: Millis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<bool, Refusal> {
        let path = self.path(api_version, kind, namespace, name)?;
        self.answer(now, &Request::new("DELETE", &path).by(MANAGER))?;
        self.settle(now);
        Ok(self.get(api_version, kind, namespace, name).is_none())
    }

    /// Where an object is served.
    pub fn path(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, Refusal> {
        let kind = self.registry.by_object(api_version, kind).ok_or_else(Refusal::no_such_path)?;
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let within = if kind.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        Ok(format!("{root}/{api_version}{within}/{}/{name}", kind.plural))
    }

    fn kind_of(&self, object: &Value) -> Result<Arc<Kind>, Refusal> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        self.registry.by_object(text("apiVersion"), text("kind")).cloned().ok_or_else(Refusal::no_such_path)
    }

    fn settle(&mut self, now: Millis) {
        if self.controllers {
            self.tick(now);
        }
        self.age(now);
    }
}
