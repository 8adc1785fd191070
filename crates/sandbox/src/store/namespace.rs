//! Namespaces: admission of objects into them, and deletion of their contents.

use serde_json::{Value, json};

use super::kind::{SandboxKind, StorageId};
use super::message::EpochMillis;
use super::refusal::StoreRefusal;
use super::{SandboxStore, meta};

impl SandboxStore {
    /// Refuses to create an object in a namespace that does not exist or is being deleted.
    pub(super) fn check_namespace_open(
        &self,
        kind: &SandboxKind,
        namespace: &str,
        name: &str,
    ) -> Result<(), StoreRefusal> {
        let found = self
            .registry
            .find_kind("", "v1", "namespaces")
            .and_then(|kind| self.stored_object(kind.storage, namespace));
        let Some(found) = found else { return Err(StoreRefusal::not_found("", "namespaces", namespace)) };
        if !meta::is_deleting(found) {
            return Ok(());
        }
        let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
        let message = format!(
            "{}{group} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            kind.plural
        );
        let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
        let mut details = json!({"name": name, "kind": kind.plural, "causes": [cause]});
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        Err(StoreRefusal::forbidden(message, details))
    }

    /// Deletes the contents of a namespace that is being deleted; removes the namespace once it is empty.
    pub(super) fn empty_namespace(&mut self, now: EpochMillis, name: &str) {
        let Some(kind) = self.registry.find_kind("", "v1", "namespaces").cloned() else { return };
        let deleting = |object: &std::sync::Arc<Value>| meta::is_deleting(object);
        if self.stored_object(kind.storage, name).is_none_or(|object| !deleting(object)) {
            return;
        }
        let prefix = format!("{name}/");
        let namespaced: Vec<StorageId> = self.kind_stores.keys().copied().collect();
        let namespaced: Vec<StorageId> = namespaced
            .into_iter()
            .filter(|id| self.registry.by_storage(*id).is_some_and(|kind| kind.namespaced))
            .collect();
        for storage in &namespaced {
            self.delete_all(now, *storage, &prefix);
        }
        let holds = |storage: &StorageId| {
            let from =
                self.kind_stores.get(storage).and_then(|shelf| shelf.objects.range(prefix.clone()..).next());
            from.is_some_and(|(key, _)| key.starts_with(&prefix))
        };
        if !namespaced.iter().any(holds) {
            let Some(object) = self.stored_object(kind.storage, name).cloned() else { return };
            if meta::finalizers(&object).is_empty() {
                self.erase_object(now, kind.storage, name);
            }
        }
    }
}
