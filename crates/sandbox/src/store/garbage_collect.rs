//! The garbage collector: deletes what its ownerReferences no longer justify.

use serde_json::{Value, json};

use super::cluster_objects::ClusterObjects;
use super::deletion_options::{DeletionOptions, DeletionPropagation};
use super::kind::SandboxKind;
use super::managed_fields::{self, ObjectWrite};
use super::message::EpochMillis;
use super::meta::{self, meta_mut};
use super::owner_index::StoredAt;

/// The controller of ownerReferences at one instant.
pub(super) struct GarbageCollector<'a> {
    pub(super) now: EpochMillis,
    pub(super) objects: &'a mut ClusterObjects,
}

impl GarbageCollector<'_> {
    /// Deletes an object whose owners are all gone. If some owners remain, only the references to the missing ones are
    /// removed.
    pub(super) fn collect_orphaned(&mut self, at: &StoredAt) {
        let Some((kind, object)) = self.objects.find_stored(at) else { return };
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
                let write = ObjectWrite::by_manager(self.now, &kind, "kube-controller-manager");
                self.objects.commit_object(self.now, &kind, without_owners(&write, &object, &gone));
            }
            return;
        }
        if waiting + gone.len() > 0 && !meta::is_deleting(&object) {
            let has_dependents = !self.objects.owners().dependents_of(meta::uid(&object)).is_empty();
            let how = if waiting > 0 && has_dependents {
                DeletionPropagation::Foreground
            } else {
                DeletionPropagation::Background
            };
            let options = DeletionOptions::with_propagation(how);
            // A refusal means that the object is already gone.
            let _ = self.objects.delete_object(self.now, &kind, &object, &options);
        }
    }

    fn owner_state(&self, kind: &SandboxKind, object: &Value, owner: &Value) -> OwnerState {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let Some(owning) = self.objects.registry().by_group_kind(group, text("kind")) else {
            return OwnerState::Unresolvable;
        };
        if owning.namespaced && !kind.namespaced {
            return OwnerState::Unresolvable;
        }
        let at = (owning.storage, owning.storage_key(meta::namespace(object), text("name")));
        if self.objects.owners().find_uid(text("uid")) != Some(&at) {
            return OwnerState::Gone;
        }
        let waits = |owner: &Value| is_deleting_with(owner, "foregroundDeletion");
        if self.objects.storage().object(at.0, &at.1).is_some_and(|owner| waits(owner)) {
            OwnerState::Waiting
        } else {
            OwnerState::Solid
        }
    }

    /// Collects the dependents of an object that waits for them, and frees it once none blocks its deletion.
    pub(super) fn collect_foreground(&mut self, at: &StoredAt) {
        let Some((kind, object)) = self.objects.find_stored(at) else { return };
        if !is_deleting_with(&object, "foregroundDeletion") {
            return;
        }
        let uid = meta::uid(&object);
        for dependent in self.objects.owners().dependents_of(uid) {
            self.collect_orphaned(&dependent);
        }
        let blocks = |at: &StoredAt| {
            let dependent = self.objects.storage().object(at.0, &at.1);
            let owners = dependent.map(|dependent| meta::owner_references(dependent)).unwrap_or_default();
            owners.iter().any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
        };
        if !self.objects.owners().dependents_of(uid).iter().any(blocks) {
            self.objects.remove_finalizer(self.now, &kind, &object, "foregroundDeletion");
        }
    }

    /// Removes an owner from its dependents' ownerReferences, and frees it.
    pub(super) fn orphan_dependents(&mut self, at: &StoredAt) {
        let Some((kind, object)) = self.objects.find_stored(at) else { return };
        let uid = json!(meta::uid(&object));
        for at in self.objects.owners().dependents_of(meta::uid(&object)) {
            if let Some((kind, dependent)) = self.objects.find_stored(&at) {
                let write = ObjectWrite::by_manager(self.now, &kind, "kube-controller-manager");
                let orphaned = without_owners(&write, &dependent, std::slice::from_ref(&uid));
                self.objects.commit_object(self.now, &kind, orphaned);
            }
        }
        self.objects.remove_finalizer(self.now, &kind, &object, "orphan");
    }
}

/// Returns the object without its references to the owners of these UIDs.
fn without_owners(write: &ObjectWrite, before: &Value, uids: &[Value]) -> Value {
    let mut object = before.clone();
    if let Some(owners) = meta_mut(&mut object).get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| !uids.contains(&owner["uid"]));
    }
    meta::remove_empty_fields(&mut object);
    managed_fields::update_managed_fields(write, before, &mut object);
    object
}

fn is_deleting_with(object: &Value, finalizer: &str) -> bool {
    meta::is_deleting(object) && meta::has_finalizer(object, finalizer)
}

enum OwnerState {
    /// The owner cannot be resolved, so nothing may be deleted because of it.
    Unresolvable,
    Gone,
    /// The owner waits for its dependents to be deleted first.
    Waiting,
    Solid,
}
