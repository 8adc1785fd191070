//! Index of objects by UID and by the owners that their ownerReferences name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kind::StorageId;
use super::meta;

/// Storage and key of an object.
pub(super) type StoredAt = (StorageId, String);

/// Who owns whom, among the objects that exist.
#[derive(Debug, Default)]
pub(super) struct OwnerIndex {
    /// Objects by the UID of an owner that their ownerReferences name.
    dependents: BTreeMap<String, BTreeSet<StoredAt>>,
    /// Storage and key of each existing UID.
    living: BTreeMap<String, StoredAt>,
}

impl OwnerIndex {
    /// Updates the index for an object that was written.
    pub(super) fn index_object(&mut self, at: &StoredAt, before: Option<&Value>, after: &Value) {
        self.drop_references(at, before);
        self.living.insert(meta::uid(after).to_owned(), at.clone());
        for owner in owner_uids(after) {
            self.dependents.entry(owner.to_owned()).or_default().insert(at.clone());
        }
    }

    /// Updates the index for an object that was removed; returns the dependents that it leaves.
    pub(super) fn forget_object(&mut self, at: &StoredAt, last: &Value) -> BTreeSet<StoredAt> {
        self.drop_references(at, Some(last));
        self.living.remove(meta::uid(last));
        self.dependents.remove(meta::uid(last)).unwrap_or_default()
    }

    fn drop_references(&mut self, at: &StoredAt, before: Option<&Value>) {
        for owner in before.into_iter().flat_map(owner_uids) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(at);
            }
        }
    }

    /// Returns where the object with this UID is stored, if it exists.
    pub(super) fn find_uid(&self, uid: &str) -> Option<&StoredAt> {
        self.living.get(uid)
    }

    /// Returns the objects that name this UID as an owner.
    pub(super) fn dependents_of(&self, uid: &str) -> BTreeSet<StoredAt> {
        self.dependents.get(uid).cloned().unwrap_or_default()
    }

    /// Returns the existing owners of an object.
    pub(super) fn living_owners_of<'a>(&'a self, object: &'a Value) -> impl Iterator<Item = &'a StoredAt> {
        owner_uids(object).filter_map(|uid| self.living.get(uid))
    }
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    meta::owner_references(object).iter().map(|owner| owner["uid"].as_str().unwrap_or_default())
}
