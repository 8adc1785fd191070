//! Rows indexed by small integers, in chunks that are neither doubled nor moved, and by uid.

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aggregator::{MAX_LINK_TARGETS, ObjectId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::row::ObjectRow;
use super::row_place::{PlaceFilter, RowPlace};
use super::selector_interner::name_hash;
use super::uid_key::UidKey;

/// Number of shards; a power of two. The watch of one kind rarely waits for another.
const SLOT_SHARDS: u32 = 16;
/// Each shard has up to one chunk that is not full.
const SLOTS_PER_CHUNK: usize = 64;

/// Slot of an object, which may be known by its uid alone, as an owner.
#[derive(Debug, Default)]
pub(super) struct RowSlot {
    pub(super) row: Option<ObjectRow>,
    pub(super) uid: UidKey,
    /// Number of links of other objects that refer to it.
    pub(super) refs: u32,
    /// Namespace of the objects that refer to it, as far as they agree ([`HOME_MIXED_BIT`] if they do not); a
    /// namespaced owner lives there too. [`HOME_TAKEN_BIT`] if the slot is taken, [`HOME_BOUND_BIT`] if some of them do not
    /// count for a cluster-scoped owner.
    home: u32,
}

const HOME_TAKEN_BIT: u32 = 1 << 31;
const HOME_MIXED_BIT: u32 = 1 << 30;
const HOME_BOUND_BIT: u32 = 1 << 29;

impl RowSlot {
    /// Adds a reference from an object in this namespace, as its owner; `is_within_own_namespace` if it does not count for a
    /// cluster-scoped one.
    pub(super) fn add_reference(&mut self, namespace: &str, is_within_own_namespace: bool) {
        if self.refs > 0 && !self.is_home(namespace) {
            self.home |= HOME_MIXED_BIT;
        }
        if self.refs == 0 {
            self.home = HOME_TAKEN_BIT | hash_home(namespace);
        }
        if is_within_own_namespace {
            self.home |= HOME_BOUND_BIT;
        }
        self.refs += 1;
    }

    fn is_home(&self, namespace: &str) -> bool {
        self.home & !(HOME_TAKEN_BIT | HOME_BOUND_BIT) == hash_home(namespace)
    }

    fn is_taken(&self) -> bool {
        self.home & HOME_TAKEN_BIT != 0
    }

    /// Returns `true` if some objects that refer to it do not count for it if it lives in this namespace, or in none.
    pub(super) fn has_references_outside(&self, namespace: &str) -> bool {
        let is_bound = self.home & HOME_BOUND_BIT != 0;
        self.refs > 0 && if namespace.is_empty() { is_bound } else { !self.is_home(namespace) }
    }
}

/// Hash of a namespace in 29 bits: enough to detect that two differ, which is then checked exactly.
#[expect(clippy::cast_possible_truncation, reason = "any bits of a hash will do")]
fn hash_home(namespace: &str) -> u32 {
    name_hash(namespace) as u32 & !(HOME_TAKEN_BIT | HOME_MIXED_BIT | HOME_BOUND_BIT)
}

/// Slots side by side, and what may be among them: a list brings its objects kind by kind and namespace by namespace, so that
/// whoever looks for those of one place passes most chunks by.
#[derive(Debug)]
struct SlotChunk {
    slots: Box<[RowSlot]>,
    holds: PlaceFilter,
}

impl Default for SlotChunk {
    fn default() -> Self {
        let slots = (0..SLOTS_PER_CHUNK).map(|_| RowSlot::default()).collect();
        SlotChunk { slots, holds: PlaceFilter::default() }
    }
}

#[derive(Debug, Default)]
struct SlotShard {
    chunks: Vec<SlotChunk>,
    /// Taken slots by uid. The uid itself stands in the slot alone: a table that doubles had better be small.
    by_uid: HashTable<u32>,
    free: Vec<u32>,
    used: u32,
}

impl SlotShard {
    fn slot_mut(&mut self, at: u32) -> Option<&mut RowSlot> {
        self.chunks.get_mut(at as usize / SLOTS_PER_CHUNK)?.slots.get_mut(at as usize % SLOTS_PER_CHUNK)
    }

    /// Notes where the object of this slot is.
    fn note_place(&mut self, at: u32) {
        let Some(chunk) = self.chunks.get_mut(at as usize / SLOTS_PER_CHUNK) else { return };
        if let Some(row) = chunk.slots.get(at as usize % SLOTS_PER_CHUNK).and_then(|slot| slot.row.as_ref()) {
            chunk.holds.add(row);
        }
    }

    fn find(&self, uid: UidKey) -> Option<u32> {
        self.by_uid.find(hash_uid(uid), |at| uid_at(&self.chunks, *at) == uid).copied()
    }

    /// Takes a slot for a uid that has none.
    fn take(&mut self, uid: UidKey) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            // A process that ends is better than two objects of one number. It takes more than a server can hold.
            assert!(self.used < MAX_LINK_TARGETS / SLOT_SHARDS, "more than {MAX_LINK_TARGETS} objects");
            self.used += 1;
            self.used - 1
        });
        if at as usize / SLOTS_PER_CHUNK >= self.chunks.len() {
            self.chunks.push(SlotChunk::default());
        }
        let SlotShard { chunks, by_uid, .. } = self;
        chunks[at as usize / SLOTS_PER_CHUNK].slots[at as usize % SLOTS_PER_CHUNK] =
            RowSlot { uid, home: HOME_TAKEN_BIT, ..RowSlot::default() };
        by_uid.insert_unique(hash_uid(uid), at, |held| hash_uid(uid_at(chunks, *held)));
        at
    }
}

fn uid_at(chunks: &[SlotChunk], at: u32) -> UidKey {
    chunks[at as usize / SLOTS_PER_CHUNK].slots[at as usize % SLOTS_PER_CHUNK].uid
}

fn hash_uid(uid: UidKey) -> u64 {
    FxBuildHasher.hash_one(uid)
}

/// All slots.
#[derive(Debug)]
pub(super) struct SlotTable {
    shards: Vec<Mutex<SlotShard>>,
}

impl Default for SlotTable {
    fn default() -> Self {
        SlotTable { shards: (0..SLOT_SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl SlotTable {
    fn lock_shard(&self, shard: u32) -> MutexGuard<'_, SlotShard> {
        self.shards[shard as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object with this uid.
    pub(super) fn find(&self, uid: UidKey) -> Option<ObjectId> {
        let shard_number = uid.low_bits() % SLOT_SHARDS;
        let at = self.lock_shard(shard_number).find(uid)?;
        Some(ObjectId(at * SLOT_SHARDS + shard_number))
    }

    /// Runs `f` under its shard's lock on the slot of `uid`, which is taken if there is none. It may put a row there.
    pub(super) fn with_slot_of<R>(&self, uid: UidKey, f: impl FnOnce(&mut RowSlot) -> R) -> (ObjectId, R) {
        let shard_number = uid.low_bits() % SLOT_SHARDS;
        let mut shard = self.lock_shard(shard_number);
        let at = shard.find(uid).unwrap_or_else(|| shard.take(uid));
        let done = f(shard.slot_mut(at).expect("invariant: a slot that is indexed is there"));
        shard.note_place(at);
        (ObjectId(at * SLOT_SHARDS + shard_number), done)
    }

    /// Runs `f` on a slot under its shard's lock; `None` if the slot was never taken.
    pub(super) fn with_slot<R>(&self, id: ObjectId, f: impl FnOnce(&mut RowSlot) -> R) -> Option<R> {
        let mut shard = self.lock_shard(id.0 % SLOT_SHARDS);
        let slot = shard.slot_mut(id.0 / SLOT_SHARDS)?;
        slot.is_taken().then(|| f(slot))
    }

    /// Frees a slot if it is empty and has no references. Returns its uid if it did.
    pub(super) fn give_back_slot(&self, id: ObjectId) -> Option<UidKey> {
        let mut shard = self.lock_shard(id.0 % SLOT_SHARDS);
        let at = id.0 / SLOT_SHARDS;
        let slot = shard.slot_mut(at)?;
        if !slot.is_taken() || slot.row.is_some() || slot.refs > 0 {
            return None;
        }
        slot.home = 0;
        let uid = slot.uid;
        if let Ok(indexed) = shard.by_uid.find_entry(hash_uid(uid), |held| *held == at) {
            indexed.remove();
        }
        shard.free.push(at);
        Some(uid)
    }

    /// Number of taken slots.
    pub(super) fn len(&self) -> usize {
        (0..SLOT_SHARDS).map(|number| self.lock_shard(number).by_uid.len()).sum()
    }

    /// Every taken slot, shard by shard.
    pub(super) fn for_each_slot(&self, mut f: impl FnMut(ObjectId, &mut RowSlot)) {
        for number in 0..SLOT_SHARDS {
            let mut shard = self.lock_shard(number);
            for (first, chunk) in (0..=u32::MAX).step_by(SLOTS_PER_CHUNK).zip(&mut shard.chunks) {
                for (at, slot) in (first..=u32::MAX).zip(chunk.slots.iter_mut()).filter(|(_, s)| s.is_taken())
                {
                    f(ObjectId(at * SLOT_SHARDS + number), slot);
                }
            }
        }
    }

    /// Every row of a place, shard by shard. Returns how many slots it looked into.
    pub(super) fn for_each_row_in(
        &self,
        place: RowPlace<'_>,
        mut f: impl FnMut(ObjectId, &mut ObjectRow),
    ) -> usize {
        let mut looked_into = 0;
        for number in 0..SLOT_SHARDS {
            let mut shard = self.lock_shard(number);
            for (first, chunk) in (0..=u32::MAX).step_by(SLOTS_PER_CHUNK).zip(&mut shard.chunks) {
                if !chunk.holds.may_hold(place) {
                    continue;
                }
                looked_into += chunk.slots.len();
                // Objects that have gone since are not looked for again.
                chunk.holds = PlaceFilter::default();
                for (at, slot) in (first..=u32::MAX).zip(chunk.slots.iter_mut()) {
                    let Some(row) = &mut slot.row else { continue };
                    chunk.holds.add(row);
                    if place.contains(row) {
                        f(ObjectId(at * SLOT_SHARDS + number), row);
                    }
                }
            }
        }
        looked_into
    }
}

#[cfg(test)]
mod tests;
