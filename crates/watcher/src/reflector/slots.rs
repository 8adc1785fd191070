//! Rows indexed by small integers, in chunks that are neither doubled nor moved.

use std::sync::Mutex;

use aggregator::ObjectId;

use super::row::ObjectRow;
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

#[derive(Debug, Default)]
struct SlotShard {
    chunks: Vec<Box<[RowSlot]>>,
    free: Vec<u32>,
    used: u32,
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
    fn lock_shard(&self, shard: u32) -> std::sync::MutexGuard<'_, SlotShard> {
        self.shards[shard as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes a slot for `uid`.
    pub(super) fn take_slot(&self, uid: UidKey) -> ObjectId {
        let shard_number = uid.low_bits() % SLOT_SHARDS;
        let mut shard = self.lock_shard(shard_number);
        let at = shard.free.pop().unwrap_or_else(|| {
            shard.used += 1;
            shard.used - 1
        });
        if at as usize / SLOTS_PER_CHUNK >= shard.chunks.len() {
            shard.chunks.push((0..SLOTS_PER_CHUNK).map(|_| RowSlot::default()).collect());
        }
        let slot = &mut shard.chunks[at as usize / SLOTS_PER_CHUNK][at as usize % SLOTS_PER_CHUNK];
        *slot = RowSlot { uid, home: HOME_TAKEN_BIT, ..RowSlot::default() };
        ObjectId(at * SLOT_SHARDS + shard_number)
    }

    /// Runs `f` on a slot under its shard's lock; `None` if the slot was never taken.
    pub(super) fn with_slot<R>(&self, id: ObjectId, f: impl FnOnce(&mut RowSlot) -> R) -> Option<R> {
        let mut shard = self.lock_shard(id.0 % SLOT_SHARDS);
        let at = (id.0 / SLOT_SHARDS) as usize;
        let slot = shard.chunks.get_mut(at / SLOTS_PER_CHUNK)?.get_mut(at % SLOTS_PER_CHUNK)?;
        slot.is_taken().then(|| f(slot))
    }

    /// Frees a slot if it is empty and has no references.
    pub(super) fn give_back_slot(&self, id: ObjectId) -> Option<UidKey> {
        let mut shard = self.lock_shard(id.0 % SLOT_SHARDS);
        let at = id.0 / SLOT_SHARDS;
        let slot =
            shard.chunks.get_mut(at as usize / SLOTS_PER_CHUNK)?.get_mut(at as usize % SLOTS_PER_CHUNK)?;
        if !slot.is_taken() || slot.row.is_some() || slot.refs > 0 {
            return None;
        }
        slot.home = 0;
        let uid = slot.uid;
        shard.free.push(at);
        Some(uid)
    }

    /// Every taken slot, shard by shard.
    pub(super) fn for_each_slot(&self, mut f: impl FnMut(ObjectId, &mut RowSlot)) {
        for number in 0..SLOT_SHARDS {
            let mut shard = self.lock_shard(number);
            for (first, slots) in (0..=u32::MAX).step_by(SLOTS_PER_CHUNK).zip(&mut shard.chunks) {
                for (at, slot) in (first..=u32::MAX).zip(slots.iter_mut()).filter(|(_, s)| s.is_taken()) {
                    f(ObjectId(at * SLOT_SHARDS + number), slot);
                }
            }
        }
    }
}
