//! Registry of the kinds that are served now.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::builtin;
use super::kind::{SandboxKind, StorageId};

/// Every served version of every kind.
#[derive(Debug)]
pub(crate) struct KindRegistry {
    kinds: Vec<Arc<SandboxKind>>,
    /// Storage ids of custom kinds, by CRD name.
    custom: BTreeMap<String, StorageId>,
    next: StorageId,
}

impl KindRegistry {
    pub(crate) fn new() -> KindRegistry {
        let kinds: Vec<Arc<SandboxKind>> = builtin::builtin_kinds().into_iter().map(Arc::new).collect();
        let next = builtin::next_storage(kinds.len());
        KindRegistry { kinds, custom: BTreeMap::new(), next }
    }

    pub(crate) fn all_kinds(&self) -> impl Iterator<Item = &Arc<SandboxKind>> {
        self.kinds.iter()
    }

    pub(crate) fn find_kind(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<SandboxKind>> {
        self.kinds.iter().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
    }

    /// Finds a kind by an object's apiVersion and kind.
    pub(crate) fn by_object(&self, api_version: &str, kind: &str) -> Option<&Arc<SandboxKind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds
            .iter()
            .find(|served| served.group == group && served.version == version && served.kind == kind)
    }

    /// Finds any version of the kind of this group, as an owner reference names it.
    pub(crate) fn by_group_kind(&self, group: &str, kind: &str) -> Option<&Arc<SandboxKind>> {
        self.kinds.iter().find(|served| served.group == group && served.kind == kind)
    }

    /// Finds any version of the kind of a storage; versions differ by name only.
    pub(crate) fn by_storage(&self, storage: StorageId) -> Option<&Arc<SandboxKind>> {
        self.kinds.iter().find(|kind| kind.storage == storage)
    }

    pub(crate) fn is_served(&self, storage: StorageId) -> bool {
        self.by_storage(storage).is_some()
    }

    pub(crate) fn group_exists(&self, group: &str) -> bool {
        self.kinds.iter().any(|kind| kind.group == group)
    }

    /// Returns `true` if the group holds custom kinds only: unknown paths in it then belong to no API.
    pub(crate) fn is_custom(&self, group: &str) -> bool {
        self.kinds.iter().filter(|kind| kind.group == group).all(|kind| kind.traits.custom)
    }

    /// Serves the kinds that a CRD defines, replacing its earlier ones.
    pub(crate) fn install_kinds(&mut self, crd: &str, mut kinds: Vec<SandboxKind>) -> StorageId {
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

    /// Stops serving the kinds that a CRD defines.
    pub(crate) fn remove_kinds(&mut self, crd: &str) -> Option<StorageId> {
        let storage = self.custom.remove(crd)?;
        self.kinds.retain(|kind| kind.storage != storage);
        Some(storage)
    }

    /// Returns the storage of the kind that this CRD defines.
    pub(crate) fn custom_storage(&self, crd: &str) -> Option<StorageId> {
        self.custom.get(crd).copied()
    }
}
