//! Namespaces: what may be created in them, and how they are emptied.

use serde_json::{Value, json};

use super::kind::{Kind, StorageId};
use super::message::Millis;
use super::refusal::Refusal;
use super::{Store, meta};

impl Store {
    /// Refuses to create in a namespace that is not there or on its way out.
    pub(super) fn open_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
        let found =
            self.registry.find("", "v1", "namespaces").and_then(|kind| self.object(kind.storage, namespace));
        let Some(found) = found else { return Err(Refusal::not_found("", "namespaces", namespace)) };
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
        Err(Refusal::forbidden(message, details))
    }

    /// Deletes the content of a namespace that is being deleted; once it is empty, the namespace.
    pub(super) fn empty_namespace(&mut self, now: Millis, name: &str) {
        let Some(kind) = self.registry.find("", "v1", "namespaces").cloned() else { return };
        let deleting = |object: &std::sync::Arc<Value>| meta::is_deleting(object);
        if self.object(kind.storage, name).is_none_or(|object| !deleting(object)) {
            return;
        }
        let prefix = format!("{name}/");
        let namespaced: Vec<StorageId> = self.shelves.keys().copied().collect();
        let namespaced: Vec<StorageId> = namespaced
            .into_iter()
            .filter(|id| self.registry.of(*id).is_some_and(|kind| kind.namespaced))
            .collect();
        for storage in &namespaced {
            self.delete_all(now, *storage, &prefix);
        }
        let holds = |storage: &StorageId| {
            let from =
                self.shelves.get(storage).and_then(|shelf| shelf.objects.range(prefix.clone()..).next());
            from.is_some_and(|(key, _)| key.starts_with(&prefix))
        };
        if !namespaced.iter().any(holds) {
            let Some(object) = self.object(kind.storage, name).cloned() else { return };
            if meta::finalizers(&object).is_empty() {
                self.erase(now, kind.storage, name);
            }
        }
    }
}
