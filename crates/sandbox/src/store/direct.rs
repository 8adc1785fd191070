//! Direct access to the store without paths and bytes, for tests and for the simulator.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::managed_fields::ObjectWrite;
use super::message::{EpochMillis, StoreRequest};
use super::refusal::StoreRefusal;
use super::{SandboxStore, decode, meta};

/// Default field manager.
const DEFAULT_MANAGER: &str = "sandbox";

impl SandboxStore {
    /// Creates an object from its full manifest. A namespaced object without a namespace goes to `default`.
    pub fn create_object(&mut self, now: EpochMillis, object: Value) -> Result<Arc<Value>, StoreRefusal> {
        let kind = self.kind_of_object(&object)?;
        let namespace =
            if meta::namespace(&object).is_empty() { "default" } else { meta::namespace(&object) }.to_owned();
        let mut object = object;
        decode::check_type_meta(&kind, &mut object)?;
        let created =
            self.admit_object(&ObjectWrite::by_manager(now, &kind, DEFAULT_MANAGER), &namespace, object)?;
        self.settle_controllers(now);
        Ok(created)
    }

    /// Creates an object together with its status, as if its controller had written the status at once.
    pub fn create_with_status(
        &mut self,
        now: EpochMillis,
        object: Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let status = object["status"].clone();
        let created = self.create_object(now, object)?;
        if status.is_null() {
            return Ok(created);
        }
        let kind = self.kind_of_object(&created)?;
        self.patch_status(
            now,
            &kind.api_version(),
            &kind.kind,
            meta::namespace(&created),
            meta::name(&created),
            &json!({ "status": status }),
        )
    }

    /// Returns the current object.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let kind = self.registry.by_object(api_version, kind)?;
        self.stored_object(kind.storage, &kind.storage_key(namespace, name))
            .map(|object| kind.render_version(object))
    }

    /// Returns all objects of a kind, of one namespace or (empty) of all, in key order.
    pub fn list_objects(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(kind) = self.registry.by_object(api_version, kind) else { return Vec::new() };
        let Some(shelf) = self.kind_stores.get(&kind.storage) else { return Vec::new() };
        let within = |object: &Value| namespace.is_empty() || meta::namespace(object) == namespace;
        shelf
            .objects
            .values()
            .filter(|object| within(object))
            .map(|object| kind.render_version(object))
            .collect()
    }

    /// Applies a merge patch to the main resource.
    pub fn patch_object(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        self.send_merge_patch(now, api_version, kind, namespace, name, patch, "")
    }

    /// Applies a merge patch to the status; to the main resource if the kind has no status subresource.
    pub fn patch_status(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let own = self.registry.by_object(api_version, kind).is_some_and(|kind| kind.status);
        self.send_merge_patch(
            now,
            api_version,
            kind,
            namespace,
            name,
            patch,
            if own { "/status" } else { "" },
        )
    }

    #[expect(clippy::too_many_arguments, reason = "the address of an object has four parts")]
    fn send_merge_patch(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
        sub: &str,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let path = self.object_path(api_version, kind, namespace, name)?;
        let request =
            StoreRequest::with_body("PATCH", &format!("{path}{sub}"), "application/merge-patch+json", patch)
                .with_user_agent(DEFAULT_MANAGER);
        let response = self.answer_request(now, &request)?;
        self.settle_controllers(now);
        Ok(Arc::new(response.body_value()))
    }

    /// Deletes an object as a plain DELETE does. Returns `true` if it is gone, `false` if it is only marked as being
    /// deleted.
    pub fn delete_object(
        &mut self,
        now: EpochMillis,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<bool, StoreRefusal> {
        let path = self.object_path(api_version, kind, namespace, name)?;
        self.answer_request(now, &StoreRequest::new("DELETE", &path).with_user_agent(DEFAULT_MANAGER))?;
        self.settle_controllers(now);
        Ok(self.get(api_version, kind, namespace, name).is_none())
    }

    /// Returns the path at which an object is served.
    pub fn object_path(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, StoreRefusal> {
        let kind = self.registry.by_object(api_version, kind).ok_or_else(StoreRefusal::no_such_path)?;
        let root = if kind.group.is_empty() { "/api" } else { "/apis" };
        let within = if kind.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        Ok(format!("{root}/{api_version}{within}/{}/{name}", kind.plural))
    }

    fn kind_of_object(&self, object: &Value) -> Result<Arc<SandboxKind>, StoreRefusal> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        self.registry
            .by_object(text("apiVersion"), text("kind"))
            .cloned()
            .ok_or_else(StoreRefusal::no_such_path)
    }

    fn settle_controllers(&mut self, now: EpochMillis) {
        if self.controllers {
            self.run_controllers(now);
        }
        self.forget_aged_changes(now);
    }
}
