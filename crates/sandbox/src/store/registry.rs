//! Which kinds are served now.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::builtin;
use super::kind::{Kind, StorageId};

/// Every served version of every kind.
#[derive(Debug)]
pub(crate) struct Registry {
    kinds: Vec<Arc<Kind>>,
    /// Storage ids of what CRDs added, by CRD name.
    custom: BTreeMap<String, StorageId>,
    next: StorageId,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        let kinds: Vec<Arc<Kind>> = builtin::kinds().into_iter().map(Arc::new).collect();
        let next = kinds.len() as u32;
        Registry { kinds, custom: BTreeMap::new(), next }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter()
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// By what an object says it is.
    pub(crate) fn by_object(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds
            .iter()
            .find(|served| served.group == group && served.version == version && served.kind == kind)
    }

    /// Some version of the kind of this group, as an owner reference names it.
    pub(crate) fn by_group_kind(&self, group: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|served| served.group == group && served.kind == kind)
    }

    /// The version an object is kept in: any, because versions differ by name only.
    pub(crate) fn of(&self, storage: StorageId) -> Option<&Arc<Kind>> {
        self.kinds.iter().find(|kind| kind.storage == storage)
    }

    pub(crate) fn served(&self, storage: StorageId) -> bool {
        self.of(storage).is_some()
    }

    pub(crate) fn group_exists(&self, group: &str) -> bool {
        self.kinds.iter().any(|kind| kind.group == group)
    }

    /// Whether the group holds custom kinds only: unknown paths in it are nobody's.
    pub(crate) fn is_custom(&self, group: &str) -> bool {
        self.kinds.iter().filter(|kind| kind.group == group).all(|kind| kind.traits.custom)
    }

    /// Serves what a CRD describes, in place of what it described before.
    pub(crate) fn install(&mut self, crd: &str, mut kinds: Vec<Kind>) -> StorageId {
        let storage = *self.custom.entry(crd.to_owned()).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.kinds.retain(|kind| kind.storage != storage);
        for kind in &mut kinds {
            kind.storage = storage;
        }
        self.kinds.extend(kinds.into_iter().map(Arc::new));
        storage
    }

    /// Stops serving what a CRD described.
    pub(crate) fn remove(&mut self, crd: &str) -> Option<StorageId> {
        let storage = self.custom.remove(crd)?;
        self.kinds.retain(|kind| kind.storage != storage);
        Some(storage)
    }

    /// The storage of the kind that this CRD describes.
    pub(crate) fn custom(&self, crd: &str) -> Option<StorageId> {
        self.custom.get(crd).copied()
    }
}
