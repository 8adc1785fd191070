//! The objects of a cluster, with what is derived from them at every write: the kinds that are served, the index of
//! owners and the controllers' work.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::controller_queue::{ControllerQueue, ControllerWork};
use super::crd;
use super::create;
use super::delete::{self, DeletionStep};
use super::deletion_options::DeletionOptions;
use super::identity_source::IdentitySource;
use super::kind::{SandboxKind, StorageId};
use super::managed_fields::ObjectWrite;
use super::message::EpochMillis;
use super::meta;
use super::object_storage::ObjectStorage;
use super::owner_index::{OwnerIndex, StoredAt};
use super::refusal::StoreRefusal;
use super::registry::KindRegistry;
use super::update::{self, AdmittedUpdate};

/// Result of a deletion.
pub(super) struct DeletionOutcome {
    /// The object is gone, not only marked as being deleted.
    pub(super) deleted: bool,
    pub(super) object: Arc<Value>,
}

/// All objects of a cluster. Every write goes through it, a client's as well as a controller's.
#[derive(Debug)]
pub(super) struct ClusterObjects {
    identities: IdentitySource,
    registry: KindRegistry,
    storage: ObjectStorage,
    owners: OwnerIndex,
    queue: ControllerQueue,
}

impl ClusterObjects {
    /// Returns a cluster with the built-in kinds and no objects.
    pub(super) fn new(seed: u64) -> ClusterObjects {
        ClusterObjects {
            identities: IdentitySource::new(seed),
            registry: KindRegistry::new(),
            storage: ObjectStorage::new(),
            owners: OwnerIndex::default(),
            queue: ControllerQueue::default(),
        }
    }

    pub(super) fn registry(&self) -> &KindRegistry {
        &self.registry
    }

    pub(super) fn storage(&self) -> &ObjectStorage {
        &self.storage
    }

    pub(super) fn owners(&self) -> &OwnerIndex {
        &self.owners
    }

    /// Takes the next item of the controllers' workqueue.
    pub(super) fn take_work(&mut self) -> Option<ControllerWork> {
        self.queue.take_next()
    }

    /// Forgets all changes up to this revision.
    pub(super) fn compact(&mut self, revision: u64) {
        self.storage.compact(revision);
    }

    /// Forgets changes older than five minutes.
    pub(super) fn forget_aged_changes(&mut self, now: EpochMillis) {
        self.storage.forget_aged_changes(now);
    }

    /// Returns an object and any version of its kind, if the kind is still served.
    pub(super) fn find_stored(&self, at: &StoredAt) -> Option<(Arc<SandboxKind>, Arc<Value>)> {
        let object = self.storage.object(at.0, &at.1)?.clone();
        Some((self.registry.by_storage(at.0)?.clone(), object))
    }

    /// Admits and stores a new object.
    pub(super) fn create_object(
        &mut self,
        write: &ObjectWrite,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let kind = &write.kind;
        let namespaces = self.registry.find_kind("", "v1", "namespaces");
        let stored = namespaces.and_then(|kind| self.storage.object(kind.storage, namespace));
        let stored = stored.map(|object| &**object);
        let object = create::admit_object(write, namespace, stored, &mut self.identities, object)?;
        let name = meta::name(&object);
        if self.storage.object(kind.storage, &kind.key_of(&object)).is_some() {
            return Err(StoreRefusal::already_exists(&kind.group, &kind.plural, name));
        }
        if write.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.commit_client_write(write.now, kind, object))
    }

    /// Replaces the stored object `old` by `new`, as far as this write may change it.
    pub(super) fn replace_object(
        &mut self,
        write: &ObjectWrite,
        old: &Arc<Value>,
        new: Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        let kind = &write.kind;
        let old = kind.render_version(old);
        Ok(match update::admit_update(write, &old, new)? {
            AdmittedUpdate::Unchanged => old,
            AdmittedUpdate::Changed(new) | AdmittedUpdate::Released(new) if write.dry_run => Arc::new(new),
            AdmittedUpdate::Changed(new) => self.commit_client_write(write.now, kind, new),
            AdmittedUpdate::Released(new) => {
                self.erase_object(write.now, kind.storage, &kind.key_of(&old));
                Arc::new(new)
            }
        })
    }

    /// Deletes an object, or marks it as being deleted if a finalizer or a grace period holds it.
    pub(super) fn delete_object(
        &mut self,
        now: EpochMillis,
        kind: &Arc<SandboxKind>,
        object: &Arc<Value>,
        options: &DeletionOptions,
    ) -> Result<DeletionOutcome, StoreRefusal> {
        options.check_preconditions(kind, object)?;
        if options.dry_run {
            return Ok(DeletionOutcome { deleted: true, object: object.clone() });
        }
        Ok(match delete::plan_deletion(kind, object, options, now) {
            DeletionStep::Unchanged => DeletionOutcome { deleted: false, object: object.clone() },
            DeletionStep::Mark(marked) => {
                DeletionOutcome { deleted: false, object: self.commit_client_write(now, kind, marked) }
            }
            DeletionStep::Remove { marked } => {
                if let Some(marked) = marked {
                    self.commit_object(now, kind, marked);
                }
                let last = self.erase_object(now, kind.storage, &kind.key_of(object));
                DeletionOutcome { deleted: true, object: last.unwrap_or_else(|| object.clone()) }
            }
        })
    }

    /// Deletes every object of one kind whose key starts with `prefix`.
    pub(super) fn delete_contents(&mut self, now: EpochMillis, storage: StorageId, prefix: &str) {
        let Some(kind) = self.registry.by_storage(storage).cloned() else { return };
        for object in self.storage.current_objects(storage, prefix) {
            if !meta::is_deleting(&object) {
                // A refusal means that the object is already gone.
                let _ = self.delete_object(now, &kind, &object, &DeletionOptions::without_grace());
            }
        }
    }

    /// Removes a finalizer; removing the last one removes the object too.
    pub(super) fn remove_finalizer(
        &mut self,
        now: EpochMillis,
        kind: &SandboxKind,
        object: &Value,
        finalizer: &str,
    ) {
        let mut freed = object.clone();
        meta::remove_finalizer(&mut freed, finalizer);
        if meta::finalizers(&freed).is_empty() {
            self.erase_object(now, kind.storage, &kind.key_of(object));
        } else {
            self.commit_object(now, kind, freed);
        }
    }

    /// Commits a write of a client, with what the control plane does about it.
    fn commit_client_write(
        &mut self,
        now: EpochMillis,
        kind: &Arc<SandboxKind>,
        object: Value,
    ) -> Arc<Value> {
        let written = self.commit_object(now, kind, object);
        self.queue.enqueue_written(kind, &(kind.storage, kind.key_of(&written)), &written);
        if kind.builtin_plural() == Some("customresourcedefinitions") && !meta::is_deleting(&written) {
            self.install_definition(now, kind, &written);
        }
        written
    }

    /// Writes an object under the next revision.
    pub(super) fn commit_object(
        &mut self,
        now: EpochMillis,
        kind: &SandboxKind,
        mut object: Value,
    ) -> Arc<Value> {
        meta::remove_empty_fields(&mut object);
        let at = (kind.storage, kind.key_of(&object));
        let change = self.storage.commit_object(now, at.0, &at.1, object);
        self.owners.index_object(&at, change.before.as_deref(), &change.after);
        change.after
    }

    /// Removes an object; returns its last state under the revision of the deletion.
    pub(super) fn erase_object(
        &mut self,
        now: EpochMillis,
        storage: StorageId,
        key: &str,
    ) -> Option<Arc<Value>> {
        let last = self.storage.erase_object(now, storage, key)?.after;
        let dependents: BTreeSet<StoredAt> = self.owners.forget_object(&(storage, key.to_owned()), &last);
        let kind = self.registry.by_storage(storage).map(|kind| &**kind);
        self.queue.enqueue_erased(kind, &last, dependents, self.owners.living_owners_of(&last));
        if kind.and_then(SandboxKind::builtin_plural) == Some("customresourcedefinitions") {
            self.registry.remove_kinds(meta::name(&last));
        }
        Some(last)
    }

    /// Serves the kinds that a CRD defines, and updates the CRD's status.
    fn install_definition(&mut self, now: EpochMillis, kind: &Arc<SandboxKind>, definition: &Value) {
        let storage = self.registry.install_kinds(meta::name(definition), crd::served_kinds(definition));
        let kind_store = self.storage.open_kind_store(storage);
        if let Some(served) = self.registry.by_storage(storage) {
            kind_store.reshape_objects(|object| crd::reshape_object(served, object));
        }
        if let Some(established) = crd::establish_definition(now, kind, definition) {
            self.commit_object(now, kind, established);
        }
    }
}
