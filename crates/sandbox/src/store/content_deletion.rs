//! The controllers that empty what is being deleted: a namespace of its objects, a CRD of the objects of its kind.

use super::cluster_objects::ClusterObjects;
use super::definition::{self, CRD_CLEANUP_FINALIZER};
use super::kind::StorageId;
use super::managed_fields::{self, ObjectWrite};
use super::message::EpochMillis;
use super::meta;

/// The controllers of namespaces and of CRDs at one instant.
pub(super) struct ContentDeletion<'a> {
    pub(super) now: EpochMillis,
    pub(super) objects: &'a mut ClusterObjects,
}

impl ContentDeletion<'_> {
    /// Deletes the contents of a namespace that is being deleted; removes the namespace once it is empty.
    pub(super) fn empty_namespace(&mut self, name: &str) {
        let Some(kind) = self.objects.registry().find_kind("", "v1", "namespaces").cloned() else { return };
        let namespace = self.objects.storage().object(kind.storage, name);
        if namespace.is_none_or(|namespace| !meta::is_deleting(namespace)) {
            return;
        }
        let prefix = format!("{name}/");
        let is_namespaced = |storage: &StorageId| {
            self.objects.registry().by_storage(*storage).is_some_and(|kind| kind.namespaced)
        };
        let namespaced: Vec<StorageId> =
            self.objects.storage().storage_ids().filter(|storage| is_namespaced(storage)).collect();
        for storage in &namespaced {
            self.objects.delete_contents(self.now, *storage, &prefix);
        }
        if namespaced.iter().any(|storage| self.objects.storage().has_objects(*storage, &prefix)) {
            return;
        }
        let emptied = self.objects.storage().object(kind.storage, name);
        if emptied.is_some_and(|namespace| meta::finalizers(namespace).is_empty()) {
            self.objects.erase_object(self.now, kind.storage, name);
        }
    }

    /// Deletes the objects of the kind of a CRD that is being deleted; frees the CRD once there are none.
    pub(super) fn empty_definition(&mut self, name: &str) {
        let definitions =
            self.objects.registry().find_kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let Some(kind) = definitions.cloned() else { return };
        let definition = self.objects.storage().object(kind.storage, name).cloned();
        let Some(definition) = definition.filter(|definition| meta::is_deleting(definition)) else { return };
        if let Some(storage) = self.objects.registry().custom_storage(name) {
            self.objects.delete_contents(self.now, storage, "");
            if self.objects.storage().has_objects(storage, "") {
                let mut emptying = (*definition).clone();
                definition::mark_emptying(&mut emptying);
                if emptying != *definition {
                    let write = ObjectWrite::to_status(self.now, &kind, "kube-apiserver");
                    managed_fields::update_managed_fields(&write, &definition, &mut emptying);
                    self.objects.commit_object(self.now, &kind, emptying);
                }
                return;
            }
        }
        self.objects.remove_finalizer(self.now, &kind, &definition, CRD_CLEANUP_FINALIZER);
    }
}
