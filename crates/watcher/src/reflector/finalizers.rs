//! Finalizers as they come and go. A row keeps two bytes of them; only an object whose finalizers have just changed costs
//! more, until whoever counts the changes has taken them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use aggregator::ObjectId;
use rustc_hash::FxHasher;

use super::{Reflector, lock, slots};
use crate::wire::Meta;

/// So many changes wait at most; what is more is not counted.
const WAITING: usize = 4_096;

/// The finalizers of an object are others than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalizerChange {
    /// The object.
    pub object: ObjectId,
    /// Those that it has now.
    pub names: Vec<Box<str>>,
    /// Who holds each, where the object's managedFields say so.
    pub managers: BTreeMap<Box<str>, Box<str>>,
}

/// A fingerprint of a set of finalizers; 0 where there are none.
pub(super) fn fingerprint(meta: &Meta) -> u16 {
    let one = |name: &str| {
        let mut hash = FxHasher::default();
        name.hash(&mut hash);
        hash.finish()
    };
    let all = meta.finalizers.iter().fold(0_u64, |sum, name| sum.wrapping_add(one(name)));
    // The upper bits are the better mixed ones.
    ((all >> 48) as u16).max(u16::from(!meta.finalizers.is_empty()))
}

impl Reflector {
    /// Everything that has changed since this was last asked, of objects that are still there.
    pub fn take_finalizer_changes(&self) -> Vec<FinalizerChange> {
        let changes = std::mem::take(&mut *lock(&self.finalizers));
        let same = |slot: &mut slots::Slot, uid| slot.uid == uid && slot.row.is_some();
        let mine =
            |(uid, c): &(_, FinalizerChange)| self.slots.with(c.object, |s| same(s, *uid)) == Some(true);
        changes.into_iter().filter(mine).map(|(_, change)| change).collect()
    }

    /// Nothing can be put back on what is being deleted: there they only go.
    pub(super) fn note_finalizers(&self, object: ObjectId, meta: &Meta) {
        if meta.deleted.is_some() {
            return;
        }
        let mut changes = lock(&self.finalizers);
        if changes.len() < WAITING {
            let managers = meta.setters.iter().cloned().collect();
            let change = FinalizerChange { object, names: meta.finalizers.clone(), managers };
            changes.push((slots::Uid::of(&meta.uid), change));
            drop(changes);
            (self.wake)();
        }
    }
}
