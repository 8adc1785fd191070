//! Rows by uid and by id, which of them have changed, and what they hold. Never are two shards of slots locked at a time.

use std::sync::atomic::{AtomicBool, Ordering};

use aggregator::{KindId, LinkTarget, ObjectId};
use readiness::Time;
use rustc_hash::FxHashSet;

use super::dirty::DirtySet;
use super::kind_counts::KindCounts;
use super::memory_account::{MemoryAccount, slot_row_bytes};
use super::row::ObjectRow;
use super::row_place::RowPlace;
use super::slots::{RowSlot, SlotTable};
use super::uid_key::UidKey;

/// All rows: identity, version, and verdict of each object.
pub(super) struct Rows {
    slots: SlotTable,
    account: MemoryAccount,
    kind_counts: KindCounts,
    dirty: DirtySet,
    /// Owners that were observed only now, some of whose children do not count for them. They are looked for together.
    late_owners: DirtySet,
    /// There may be some: a turn of the loop looks at this alone.
    has_late_owners: AtomicBool,
    /// Parents that were read again, and show nothing else than before.
    reread: DirtySet,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Rows {
    /// No rows; `wake` is called when the dirty set becomes non-empty.
    pub(super) fn new(wake: impl Fn() + Send + Sync + 'static) -> Rows {
        Rows {
            slots: SlotTable::default(),
            account: MemoryAccount::default(),
            kind_counts: KindCounts::default(),
            dirty: DirtySet::default(),
            late_owners: DirtySet::default(),
            has_late_owners: AtomicBool::new(false),
            reread: DirtySet::default(),
            wake: Box::new(wake),
        }
    }

    /// The object with this uid.
    pub(super) fn find(&self, uid: &str) -> Option<ObjectId> {
        self.find_key(UidKey::from_text(uid))
    }

    /// The object with this uid.
    pub(super) fn find_key(&self, uid: UidKey) -> Option<ObjectId> {
        self.slots.find(uid)
    }

    /// Reads the row of an object.
    pub(super) fn read<R>(&self, id: ObjectId, f: impl FnOnce(&ObjectRow) -> R) -> Option<R> {
        self.slots.with_slot(id, |slot| slot.row.as_ref().map(f)).flatten()
    }

    /// Runs `f` on a slot whose row does not change.
    pub(super) fn with_slot<R>(&self, id: ObjectId, f: impl FnOnce(&mut RowSlot) -> R) -> Option<R> {
        self.slots.with_slot(id, f)
    }

    /// Returns `true` if this object is held in this version.
    pub(super) fn holds_version(&self, id: ObjectId, uid: &str, version: u64) -> bool {
        let uid = UidKey::from_text(uid);
        let holds = |slot: &mut RowSlot| {
            slot.uid == uid && slot.row.as_ref().is_some_and(|row| row.version == version)
        };
        self.with_slot(id, holds) == Some(true)
    }

    /// Runs `f` on a slot whose row may change, and updates the account.
    pub(super) fn change_slot<R>(&self, id: ObjectId, f: impl FnOnce(&mut RowSlot) -> R) -> Option<R> {
        self.slots.with_slot(id, |slot| self.account_change(slot, f))
    }

    /// Runs `f` on the slot of `uid`, created if there is none, and updates the account.
    pub(super) fn with_slot_of<R>(&self, uid: UidKey, f: impl FnOnce(&mut RowSlot) -> R) -> (ObjectId, R) {
        self.slots.with_slot_of(uid, |slot| self.account_change(slot, f))
    }

    fn account_change<R>(&self, slot: &mut RowSlot, f: impl FnOnce(&mut RowSlot) -> R) -> R {
        let (bytes, kind) = (slot_row_bytes(slot), kind_there(slot));
        let done = f(slot);
        self.account.add_bytes(slot_row_bytes(slot) - bytes);
        self.kind_counts.note_change(kind, kind_there(slot));
        done
    }

    /// Recycles the slot of a deleted object after the driver has removed it from the engine. Returns its uid if it did.
    pub(super) fn recycle_slot(&self, id: ObjectId) -> Option<UidKey> {
        self.slots.give_back_slot(id)
    }

    /// Calls `f` on every row.
    pub(super) fn for_each_row(&self, mut f: impl FnMut(ObjectId, &ObjectRow)) {
        self.slots.for_each_slot(|id, slot| {
            if let Some(row) = &slot.row {
                f(id, row);
            }
        });
    }

    /// Calls `f` on every row of a place. It changes nothing on the heap, which is accounted for elsewhere.
    pub(super) fn for_each_row_in(&self, place: RowPlace<'_>, f: impl FnMut(ObjectId, &mut ObjectRow)) {
        self.slots.for_each_row_in(place, f);
    }

    /// Objects of a place with such a row.
    pub(super) fn find_rows_in(
        &self,
        place: RowPlace<'_>,
        which: impl Fn(&ObjectRow) -> bool,
    ) -> Vec<ObjectId> {
        let mut found = Vec::new();
        self.for_each_row_in(place, |id, row| {
            if which(row) {
                found.push(id);
            }
        });
        found
    }

    /// Objects with such a row, of all kinds.
    pub(super) fn find_rows(&self, which: impl Fn(&ObjectRow) -> bool) -> Vec<ObjectId> {
        let mut found = Vec::new();
        self.for_each_row(|id, row| {
            if which(row) {
                found.push(id);
            }
        });
        found
    }

    /// Objects of whose children some may not count, because of their namespaces.
    pub(super) fn owners_with_strangers(&self) -> Vec<ObjectId> {
        let mut found = Vec::new();
        self.slots.for_each_slot(|id, slot| {
            if slot.row.as_ref().is_some_and(|row| slot.has_references_outside(&row.namespace)) {
                found.push(id);
            }
        });
        found
    }

    /// Number of objects of a kind that have not been seen to go.
    pub(super) fn count_there(&self, kind: KindId) -> usize {
        self.kind_counts.count_of(kind)
    }

    /// Counts the objects of a kind again. Returns `true` if their number was wrong, and has been put right.
    pub(super) fn correct_count(&self, kind: KindId) -> bool {
        let (read, mut objects) = (self.kind_counts.read(kind), 0);
        self.for_each_row_in(RowPlace::of_kind(kind), |_, row| objects += usize::from(!row.is_remembered()));
        self.kind_counts.correct(kind, read, objects)
    }

    /// Returns `true` if the object is held as one that exists.
    pub(super) fn is_there(&self, uid: &str) -> bool {
        self.find(uid).and_then(|id| self.read(id, |row| !row.is_remembered())) == Some(true)
    }

    /// The generation of a parent, as last read.
    pub(super) fn parent_generation(&self, parent: ObjectId) -> Option<u64> {
        self.read(parent, |row| row.parent.as_ref().map(|parent| parent.view.generation)).flatten()
    }

    /// Dates an object: if it has stopped being ready, it did so at `now`; if it is ready again, the time is removed.
    pub(super) fn date_unready(&self, id: ObjectId, now: Time) {
        self.change_slot(id, |slot| {
            slot.row.as_mut().map(|row| super::unready_since::date_unready(row, now))
        });
    }

    /// Puts an object into the dirty set.
    pub(super) fn mark_dirty(&self, id: ObjectId) {
        if self.dirty.insert(id) {
            self.wake();
        }
    }

    /// Puts an owner into the dirty set that was observed only now, behind the objects that refer to it: it lives where some of
    /// these may not count for it, and they are shown to the engine again.
    pub(super) fn mark_owner_with_strangers(&self, owner: ObjectId) {
        let is_first = self.late_owners.insert(owner);
        self.has_late_owners.store(true, Ordering::Release);
        if is_first {
            self.wake();
        }
    }

    /// One walk over all rows serves all owners that a list has brought meanwhile.
    fn mark_strangers(&self) {
        // Cleared first: one that comes meanwhile sets it again.
        if !self.has_late_owners.load(Ordering::Acquire)
            || !self.has_late_owners.swap(false, Ordering::AcqRel)
        {
            return;
        }
        let owners = self.late_owners.take_up_to(usize::MAX);
        if owners.is_empty() {
            return;
        }
        let among: FxHashSet<ObjectId> = owners.iter().copied().collect();
        let refers = |row: &ObjectRow| {
            let owns = |target| matches!(target, LinkTarget::Object(owner) if among.contains(&owner));
            row.links.as_slice().iter().any(|link| owns(link.target()))
        };
        for id in self.find_rows(refers).into_iter().chain(owners) {
            self.dirty.insert(id);
        }
    }

    /// Records that a parent was read again, and shows nothing else than before.
    pub(super) fn mark_reread(&self, id: ObjectId) {
        self.reread.insert(id);
    }

    /// Takes the parents that were read again and show nothing else than before.
    pub(super) fn take_reread(&self) -> Vec<ObjectId> {
        self.reread.take_up_to(usize::MAX)
    }

    /// Wakes the reader of the dirty set.
    pub(super) fn wake(&self) {
        (self.wake)();
    }

    /// Takes at most `most` changed objects.
    pub(super) fn take_dirty(&self, most: usize) -> Vec<ObjectId> {
        self.mark_strangers();
        self.dirty.take_up_to(most)
    }

    /// Number of changed objects that wait to be taken.
    pub(super) fn dirty_len(&self) -> usize {
        let late = if self.has_late_owners.load(Ordering::Acquire) { self.late_owners.len() } else { 0 };
        self.dirty.len() + late
    }

    /// Number of objects with a slot.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Approximate memory held by all objects, in bytes. Costs nothing to query.
    pub(super) fn held_bytes(&self) -> usize {
        self.account.held_bytes(self.len())
    }
}

/// Kind of the object of a slot, unless it is gone and remembered.
fn kind_there(slot: &RowSlot) -> Option<KindId> {
    slot.row.as_ref().filter(|row| !row.is_remembered()).map(|row| row.kind)
}
