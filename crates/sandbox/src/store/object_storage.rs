//! The storage of all objects under one sequence of revisions, as etcd keeps them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::StorageId;
use super::kind_store::{KindStore, StoredChange};
use super::message::EpochMillis;
use super::meta;

/// Largest number of changes of one kind that are kept for resumed watches and continued lists.
const MAX_KEPT_CHANGES: usize = 50_000;

/// Time for which changes are kept: five minutes, the compaction interval that the real server sets for etcd.
const CHANGE_HISTORY_MILLIS: EpochMillis = 300_000;

/// An object before and after a committed change.
pub(super) struct CommittedChange {
    /// `None` if the object was created.
    pub(super) before: Option<Arc<Value>>,
    /// After a deletion, the last state under the revision of the deletion.
    pub(super) after: Arc<Value>,
}

/// The objects of every kind, the history of their changes, and the newest revision.
#[derive(Debug)]
pub(super) struct ObjectStorage {
    revision: u64,
    kind_stores: BTreeMap<StorageId, KindStore>,
    /// The last revision of each second with a revision, oldest first; used to forget changes by age.
    revision_ages: VecDeque<(EpochMillis, u64)>,
}

impl ObjectStorage {
    /// Returns an empty storage.
    pub(super) fn new() -> ObjectStorage {
        ObjectStorage { revision: 1, kind_stores: BTreeMap::new(), revision_ages: VecDeque::new() }
    }

    /// Newest revision. It increases with every change of any object, and only then.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn object(&self, storage: StorageId, key: &str) -> Option<&Arc<Value>> {
        self.kind_store(storage)?.objects.get(key)
    }

    pub(super) fn kind_store(&self, storage: StorageId) -> Option<&KindStore> {
        self.kind_stores.get(&storage)
    }

    /// Returns the id of every storage that was ever written to.
    pub(super) fn storage_ids(&self) -> impl Iterator<Item = StorageId> {
        self.kind_stores.keys().copied()
    }

    /// Returns the objects of one kind whose key starts with `prefix`, in key order.
    pub(super) fn current_objects(&self, storage: StorageId, prefix: &str) -> Vec<Arc<Value>> {
        let Some(kind_store) = self.kind_store(storage) else { return Vec::new() };
        kind_store.objects_at(self.revision, prefix, "").map(|(_, object)| object.clone()).collect()
    }

    /// Returns `true` if one of the kind's objects has a key that starts with `prefix`.
    pub(super) fn has_objects(&self, storage: StorageId, prefix: &str) -> bool {
        let next = self.kind_store(storage).and_then(|kept| kept.objects.range(prefix.to_owned()..).next());
        next.is_some_and(|(key, _)| key.starts_with(prefix))
    }

    /// Returns `true` if a change of the kind after this revision has been forgotten.
    pub(super) fn has_forgotten(&self, storage: StorageId, revision: u64) -> bool {
        self.kind_store(storage).is_some_and(|kind_store| kind_store.has_forgotten(revision))
    }

    /// Returns the kind's storage; a new one has no history up to the newest revision.
    pub(super) fn open_kind_store(&mut self, storage: StorageId) -> &mut KindStore {
        self.kind_stores.entry(storage).or_insert_with(|| KindStore::starting_after(self.revision))
    }

    /// Writes an object under the next revision.
    pub(super) fn commit_object(
        &mut self,
        now: EpochMillis,
        storage: StorageId,
        key: &str,
        object: Value,
    ) -> CommittedChange {
        let before = self.object(storage, key).cloned();
        self.commit_change(now, storage, key, before, object, false)
    }

    /// Removes an object under the next revision.
    pub(super) fn erase_object(
        &mut self,
        now: EpochMillis,
        storage: StorageId,
        key: &str,
    ) -> Option<CommittedChange> {
        let before = self.object(storage, key).cloned()?;
        let last = (*before).clone();
        Some(self.commit_change(now, storage, key, Some(before), last, true))
    }

    fn commit_change(
        &mut self,
        now: EpochMillis,
        storage: StorageId,
        key: &str,
        before: Option<Arc<Value>>,
        mut object: Value,
        deleted: bool,
    ) -> CommittedChange {
        let revision = self.advance_revision(now);
        meta::meta_mut(&mut object).insert("resourceVersion".into(), json!(revision.to_string()));
        let after = Arc::new(object);
        let change = StoredChange {
            revision,
            key: key.to_owned(),
            before: before.clone(),
            after: after.clone(),
            deleted,
        };
        self.kind_stores.entry(storage).or_default().commit_change(change, MAX_KEPT_CHANGES);
        CommittedChange { before, after }
    }

    fn advance_revision(&mut self, now: EpochMillis) -> u64 {
        self.revision += 1;
        match self.revision_ages.back_mut() {
            Some((at, last)) if now - *at < 1_000 => *last = self.revision,
            _ => self.revision_ages.push_back((now, self.revision)),
        }
        self.revision
    }

    /// Forgets changes older than five minutes.
    pub(super) fn forget_aged_changes(&mut self, now: EpochMillis) {
        let mut upto = 0;
        while self.revision_ages.front().is_some_and(|(at, _)| now - at > CHANGE_HISTORY_MILLIS) {
            upto = self.revision_ages.pop_front().map_or(upto, |(_, revision)| revision);
        }
        if upto > 0 {
            self.compact(upto);
        }
    }

    /// Forgets all changes up to this revision.
    pub(super) fn compact(&mut self, revision: u64) {
        for kind_store in self.kind_stores.values_mut() {
            kind_store.compact(revision);
        }
    }
}
