//! All objects of a cluster, their history, and the next revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::controller_work::ControllerWork;
use super::kind::{SandboxKind, StorageId};
use super::kind_store::{KindStore, StoredChange};
use super::message::EpochMillis;
use super::meta;
use super::registry::KindRegistry;

/// Largest number of changes of one kind that are kept for resumed watches and continued lists.
const MAX_KEPT_CHANGES: usize = 50_000;

/// Time for which changes are kept: five minutes, the compaction interval that the real server sets for etcd.
const CHANGE_HISTORY_MILLIS: EpochMillis = 300_000;

/// All objects of a cluster and their history.
#[derive(Debug)]
pub struct SandboxStore {
    pub(super) seed: u64,
    pub(super) numbers_drawn: u64,
    pub(super) revision: u64,
    pub(super) registry: KindRegistry,
    pub(super) kind_stores: BTreeMap<StorageId, KindStore>,
    /// Objects by the UID of an owner that their ownerReferences name.
    pub(super) dependents: BTreeMap<String, BTreeSet<(StorageId, String)>>,
    /// Storage and key of each existing UID.
    pub(super) living: BTreeMap<String, (StorageId, String)>,
    pub(super) work: BTreeSet<ControllerWork>,
    pub(super) controllers: bool,
    /// The last revision of each second with a revision, oldest first; used to forget changes by age.
    pub(super) revision_ages: std::collections::VecDeque<(EpochMillis, u64)>,
}

impl SandboxStore {
    /// A cluster with the namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease`.
    pub fn new(seed: u64) -> SandboxStore {
        SandboxStore::new_at(seed, 0)
    }

    /// Like [`SandboxStore::new`], with the namespaces created at this time.
    pub fn new_at(seed: u64, now: EpochMillis) -> SandboxStore {
        let mut store = SandboxStore {
            seed,
            numbers_drawn: 0,
            revision: 1,
            registry: KindRegistry::new(),
            kind_stores: BTreeMap::new(),
            dependents: BTreeMap::new(),
            living: BTreeMap::new(),
            work: BTreeSet::new(),
            controllers: true,
            revision_ages: std::collections::VecDeque::new(),
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            store
                .create_object(now, namespace)
                .expect("invariant: an empty store takes its first namespaces");
        }
        store
    }

    /// Sets the time at which garbage collection and namespace deletion run: within each call (the default), or only
    /// when [`SandboxStore::run_controllers`] is called.
    pub fn set_controllers(&mut self, at_once: bool) {
        self.controllers = at_once;
    }

    /// Newest revision. It increases with every change of any object, and only then.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn stored_object(&self, storage: StorageId, key: &str) -> Option<&Arc<Value>> {
        self.kind_stores.get(&storage)?.objects.get(key)
    }

    /// Writes an object under the next revision.
    pub(super) fn commit_object(
        &mut self,
        now: EpochMillis,
        kind: &SandboxKind,
        mut object: Value,
    ) -> Arc<Value> {
        meta::remove_empty_fields(&mut object);
        let key = kind.storage_key(meta::namespace(&object), meta::name(&object));
        let before = self.stored_object(kind.storage, &key).cloned();
        let revision = self.advance_revision(now);
        meta::meta_mut(&mut object).insert("resourceVersion".into(), json!(revision.to_string()));
        let after = Arc::new(object);
        self.index_owners(kind.storage, &key, before.as_deref(), Some(&after));
        let change = StoredChange { revision, key, before, after: after.clone(), deleted: false };
        self.kind_stores.entry(kind.storage).or_default().commit_change(change, MAX_KEPT_CHANGES);
        after
    }

    /// Removes an object; returns its last state under the revision of the deletion.
    pub(super) fn erase_object(
        &mut self,
        now: EpochMillis,
        storage: StorageId,
        key: &str,
    ) -> Option<Arc<Value>> {
        let before = self.stored_object(storage, key).cloned()?;
        let revision = self.advance_revision(now);
        let mut last = (*before).clone();
        meta::meta_mut(&mut last).insert("resourceVersion".into(), json!(revision.to_string()));
        let after = Arc::new(last);
        self.index_owners(storage, key, Some(&before), None);
        let change = StoredChange {
            revision,
            key: key.to_owned(),
            before: Some(before),
            after: after.clone(),
            deleted: true,
        };
        self.kind_stores.entry(storage).or_default().commit_change(change, MAX_KEPT_CHANGES);
        self.after_erase(now, storage, &after);
        Some(after)
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

    /// Forgets all changes up to this revision: older watches and continued lists then answer 410.
    pub fn compact(&mut self, revision: u64) {
        for shelf in self.kind_stores.values_mut() {
            shelf.compact(revision);
        }
    }

    /// Returns the next number of the seed's sequence (SplitMix64).
    pub(super) fn draw_number(&mut self) -> u64 {
        self.numbers_drawn += 1;
        let mut z = self.seed.wrapping_add(self.numbers_drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn new_uid(&mut self) -> String {
        let (a, b) = (self.draw_number(), self.draw_number());
        let (high, mid, low) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
        format!(
            "{high:08x}-{mid:04x}-4{low:03x}-{:04x}-{:012x}",
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }
}
