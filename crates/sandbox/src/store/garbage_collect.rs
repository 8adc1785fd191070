//! The controllers of the control plane: garbage collection by ownerReferences, deletion of namespaces' contents and of
//! deleted CRDs' objects. They run within [`SandboxStore::run_controllers`], in a fixed order, until no work is left.

use std::sync::Arc;

use serde_json::{Value, json};

use super::controller_work::ControllerWork;
use super::definition::{self, CRD_CLEANUP_FINALIZER};
use super::delete::{DeletionOptions, DeletionPropagation};
use super::kind::{SandboxKind, StorageId};
use super::message::EpochMillis;
use super::meta::{self, meta_mut};
use super::{SandboxStore, managed_fields};

impl SandboxStore {
    /// Runs the controllers until no work is left.
    pub fn run_controllers(&mut self, now: EpochMillis) {
        while let Some(work) = self.work.pop_first() {
            match work {
                ControllerWork::Owned(storage, key) => self.collect_orphaned(now, storage, &key),
                ControllerWork::Foreground(storage, key) => self.collect_foreground(now, storage, &key),
                ControllerWork::Orphan(storage, key) => self.orphan_dependents(now, storage, &key),
                ControllerWork::Namespace(name) => self.empty_namespace(now, &name),
                ControllerWork::Definition(name) => self.empty_definition(now, &name),
            }
        }
    }

    /// Updates the index of dependents by owner; called with every change.
    pub(super) fn index_owners(
        &mut self,
        storage: StorageId,
        key: &str,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        let place = (storage, key.to_owned());
        for owner in before.map(meta::owner_references).unwrap_or_default() {
            if let Some(set) = self.dependents.get_mut(owner["uid"].as_str().unwrap_or_default()) {
                set.remove(&place);
            }
        }
        if let (Some(before), None) = (before, after) {
            self.living.remove(meta::uid(before));
        }
        let Some(after) = after else { return };
        self.living.insert(meta::uid(after).to_owned(), place.clone());
        for owner in meta::owner_references(after) {
            self.dependents
                .entry(owner["uid"].as_str().unwrap_or_default().to_owned())
                .or_default()
                .insert(place.clone());
        }
    }

    /// Enqueues the controllers' work after a write.
    pub(super) fn after_write(&mut self, now: EpochMillis, kind: &Arc<SandboxKind>, object: &Arc<Value>) {
        let place = || (kind.storage, kind.storage_key(meta::namespace(object), meta::name(object)));
        if !meta::owner_references(object).is_empty() {
            let (storage, key) = place();
            self.work.insert(ControllerWork::Owned(storage, key));
        }
        if meta::is_deleting(object) {
            let (storage, key) = place();
            if meta::has_finalizer(object, "foregroundDeletion") {
                self.work.insert(ControllerWork::Foreground(storage, key));
            } else if meta::has_finalizer(object, "orphan") {
                self.work.insert(ControllerWork::Orphan(storage, key));
            }
        }
        if kind.traits.custom {
            return;
        }
        match (kind.plural.as_str(), meta::is_deleting(object)) {
            ("namespaces", true) => {
                _ = self.work.insert(ControllerWork::Namespace(meta::name(object).into()));
            }
            ("customresourcedefinitions", true) => {
                _ = self.work.insert(ControllerWork::Definition(meta::name(object).into()));
            }
            ("customresourcedefinitions", false) => self.install_definition(now, kind, object),
            _ => {}
        }
    }

    /// Enqueues the controllers' work after a removal.
    pub(super) fn after_erase(&mut self, _now: EpochMillis, storage: StorageId, last: &Value) {
        if let Some(left) = self.dependents.remove(meta::uid(last)) {
            self.work.extend(left.into_iter().map(|(storage, key)| ControllerWork::Owned(storage, key)));
        }
        for owner in meta::owner_references(last) {
            if let Some((storage, key)) = self.living.get(owner["uid"].as_str().unwrap_or_default()) {
                self.work.insert(ControllerWork::Foreground(*storage, key.clone()));
            }
        }
        if !meta::namespace(last).is_empty() {
            self.work.insert(ControllerWork::Namespace(meta::namespace(last).into()));
        }
        let Some(kind) = self.registry.by_storage(storage) else { return };
        if kind.traits.custom {
            self.work.insert(ControllerWork::Definition(format!("{}.{}", kind.plural, kind.group)));
        } else if kind.plural == "customresourcedefinitions" {
            self.registry.remove_kinds(meta::name(last));
        }
    }

    /// Deletes an object whose owners are all gone. If some owners remain, only the references to the missing ones are
    /// removed.
    fn collect_orphaned(&mut self, now: EpochMillis, storage: StorageId, key: &str) {
        let (Some(object), Some(kind)) =
            (self.stored_object(storage, key).cloned(), self.registry.by_storage(storage).cloned())
        else {
            return;
        };
        let (mut solid, mut waiting, mut gone) = (0, 0, Vec::new());
        for owner in meta::owner_references(&object) {
            match self.owner_state(&kind, &object, owner) {
                OwnerState::Unresolvable => return,
                OwnerState::Gone => gone.push(owner["uid"].clone()),
                OwnerState::Waiting => waiting += 1,
                OwnerState::Solid => solid += 1,
            }
        }
        if solid > 0 {
            if !gone.is_empty() {
                self.drop_owners(now, &kind, &object, &gone);
            }
            return;
        }
        if waiting + gone.len() > 0 && !meta::is_deleting(&object) {
            let has_dependents = self.dependents.get(meta::uid(&object)).is_some_and(|set| !set.is_empty());
            let how = if waiting > 0 && has_dependents {
                DeletionPropagation::Foreground
            } else {
                DeletionPropagation::Background
            };
            // A refusal means that the object is already gone.
            let _ = self.delete_or_mark(now, &kind, &object, &DeletionOptions::with_propagation(how));
        }
    }

    fn owner_state(&self, kind: &SandboxKind, object: &Value, owner: &Value) -> OwnerState {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let Some(owning) = self.registry.by_group_kind(group, text("kind")) else {
            return OwnerState::Unresolvable;
        };
        if owning.namespaced && !kind.namespaced {
            return OwnerState::Unresolvable;
        }
        let place = (owning.storage, owning.storage_key(meta::namespace(object), text("name")));
        if self.living.get(text("uid")) != Some(&place) {
            return OwnerState::Gone;
        }
        let waits =
            |owner: &Value| meta::is_deleting(owner) && meta::has_finalizer(owner, "foregroundDeletion");
        if self.stored_object(place.0, &place.1).is_some_and(|owner| waits(owner)) {
            OwnerState::Waiting
        } else {
            OwnerState::Solid
        }
    }

    fn drop_owners(&mut self, now: EpochMillis, kind: &Arc<SandboxKind>, before: &Value, uids: &[Value]) {
        let mut object = before.clone();
        if let Some(owners) = meta_mut(&mut object).get_mut("ownerReferences").and_then(Value::as_array_mut) {
            owners.retain(|owner| !uids.contains(&owner["uid"]));
        }
        meta::remove_empty_fields(&mut object);
        let write = managed_fields::ObjectWrite::by_manager(now, kind, "kube-controller-manager");
        managed_fields::update_managed_fields(&write, before, &mut object);
        self.commit_object(now, kind, object);
    }

    fn collect_foreground(&mut self, now: EpochMillis, storage: StorageId, key: &str) {
        let (Some(object), Some(kind)) =
            (self.stored_object(storage, key).cloned(), self.registry.by_storage(storage).cloned())
        else {
            return;
        };
        if !meta::is_deleting(&object) || !meta::has_finalizer(&object, "foregroundDeletion") {
            return;
        }
        let dependents = self.dependents.get(meta::uid(&object)).cloned().unwrap_or_default();
        for (storage, key) in &dependents {
            self.collect_orphaned(now, *storage, key);
        }
        let left = self.dependents.get(meta::uid(&object)).cloned().unwrap_or_default();
        let blocks = |place: &(StorageId, String)| {
            let owners = self
                .stored_object(place.0, &place.1)
                .map(|dependent| meta::owner_references(dependent))
                .unwrap_or_default();
            owners
                .iter()
                .any(|owner| owner["uid"] == meta::uid(&object) && owner["blockOwnerDeletion"] == true)
        };
        if !left.iter().any(blocks) {
            self.drop_finalizer(now, &kind, &object, "foregroundDeletion");
        }
    }

    /// Removes a finalizer; removing the last one removes the object too.
    fn drop_finalizer(&mut self, now: EpochMillis, kind: &Arc<SandboxKind>, object: &Value, finalizer: &str) {
        let mut freed = object.clone();
        meta::remove_finalizer(&mut freed, finalizer);
        if meta::finalizers(&freed).is_empty() {
            self.erase_object(
                now,
                kind.storage,
                &kind.storage_key(meta::namespace(object), meta::name(object)),
            );
        } else {
            self.commit_object(now, kind, freed);
        }
    }

    fn orphan_dependents(&mut self, now: EpochMillis, storage: StorageId, key: &str) {
        let (Some(object), Some(kind)) =
            (self.stored_object(storage, key).cloned(), self.registry.by_storage(storage).cloned())
        else {
            return;
        };
        let uid = json!(meta::uid(&object));
        for (storage, key) in self.dependents.get(meta::uid(&object)).cloned().unwrap_or_default() {
            if let (Some(dependent), Some(kind)) =
                (self.stored_object(storage, &key).cloned(), self.registry.by_storage(storage).cloned())
            {
                self.drop_owners(now, &kind, &dependent, std::slice::from_ref(&uid));
            }
        }
        self.drop_finalizer(now, &kind, &object, "orphan");
    }

    fn empty_definition(&mut self, now: EpochMillis, name: &str) {
        let Some(kind) =
            self.registry.find_kind("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned()
        else {
            return;
        };
        let Some(definition) = self
            .stored_object(kind.storage, name)
            .cloned()
            .filter(|definition| meta::is_deleting(definition))
        else {
            return;
        };
        if let Some(storage) = self.registry.custom_storage(name) {
            self.delete_all(now, storage, "");
            if self.kind_stores.get(&storage).is_some_and(|shelf| !shelf.objects.is_empty()) {
                self.commit_terminating(now, &kind, &definition);
                return;
            }
        }
        self.drop_finalizer(now, &kind, &definition, CRD_CLEANUP_FINALIZER);
    }

    /// Reports in the status of a definition that its objects are being deleted.
    fn commit_terminating(&mut self, now: EpochMillis, kind: &Arc<SandboxKind>, definition: &Arc<Value>) {
        let mut told = (**definition).clone();
        definition::mark_emptying(&mut told);
        if told != **definition {
            let write = managed_fields::ObjectWrite {
                subresource: Some(super::route::SubresourceKind::Status),
                ..managed_fields::ObjectWrite::by_manager(now, kind, "kube-apiserver")
            };
            managed_fields::update_managed_fields(&write, definition, &mut told);
            self.commit_object(now, kind, told);
        }
    }

    /// Deletes every object of one kind whose key starts with `prefix`.
    pub(super) fn delete_all(&mut self, now: EpochMillis, storage: StorageId, prefix: &str) {
        let Some(kind) = self.registry.by_storage(storage).cloned() else { return };
        let Some(shelf) = self.kind_stores.get(&storage) else { return };
        for object in shelf.snapshot(self.revision, prefix, "").into_values() {
            if !meta::is_deleting(&object) {
                // A refusal means that the object is already gone.
                let _ = self.delete_or_mark(now, &kind, &object, &DeletionOptions::without_grace());
            }
        }
    }
}

enum OwnerState {
    /// The owner cannot be resolved, so nothing may be deleted because of it.
    Unresolvable,
    Gone,
    /// The owner waits for its dependents to be deleted first.
    Waiting,
    Solid,
}
