//! Changes of finalizers. A row keeps two bytes for them; only an object whose finalizers have just changed costs more,
//! until the change is taken.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use aggregator::ObjectId;
use rustc_hash::FxHasher;

use super::rows::Rows;
use super::slots::RowSlot;
use super::uid_key::UidKey;
use crate::wire::WireMeta;

/// Largest number of changes that wait to be taken; further ones are not counted.
const MAX_WAITING_FINALIZER_CHANGES: usize = 4_096;

/// Change of the finalizers of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalizerChange {
    /// The object.
    pub object: ObjectId,
    /// Finalizers that the object has now.
    pub names: Vec<Box<str>>,
    /// Manager of each finalizer, if the object's managedFields record it.
    pub managers: BTreeMap<Box<str>, Box<str>>,
}

/// Fingerprint of a set of finalizers; 0 if there are none.
pub(super) fn finalizer_fingerprint(meta: &WireMeta) -> u16 {
    let one = |name: &str| {
        let mut hash = FxHasher::default();
        name.hash(&mut hash);
        hash.finish()
    };
    let all = meta.finalizers.iter().fold(0_u64, |sum, name| sum.wrapping_add(one(name)));
    // The upper bits are mixed better.
    ((all >> 48) as u16).max(u16::from(!meta.finalizers.is_empty()))
}

/// Changes of finalizers that have not been taken yet.
#[derive(Default)]
pub(super) struct FinalizerLog(Mutex<Vec<(UidKey, FinalizerChange)>>);

impl FinalizerLog {
    /// Takes the changes since the last call, of objects that still exist.
    pub(super) fn take_changes(&self, rows: &Rows) -> Vec<FinalizerChange> {
        let changes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let same = |slot: &mut RowSlot, uid| slot.uid == uid && slot.row.is_some();
        let mine =
            |(uid, c): &(_, FinalizerChange)| rows.with_slot(c.object, |s| same(s, *uid)) == Some(true);
        changes.into_iter().filter(mine).map(|(_, change)| change).collect()
    }

    /// Records a change. Finalizers cannot be added to an object that is being deleted, only removed.
    pub(super) fn record_change(&self, rows: &Rows, object: ObjectId, meta: &WireMeta) {
        if meta.deleted.is_some() {
            return;
        }
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() < MAX_WAITING_FINALIZER_CHANGES {
            let managers = meta.setters.iter().cloned().collect();
            let change = FinalizerChange { object, names: meta.finalizers.clone(), managers };
            changes.push((UidKey::from_text(&meta.uid), change));
            drop(changes);
            rows.wake();
        }
    }
}
