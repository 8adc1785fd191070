//! Deleted objects: by a DELETE event, by their absence from a complete list, or because their kind is no longer
//! followed.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use aggregator::{KindId, ObjectId};
use rustc_hash::FxHashMap;

use super::{ListPass, ObjectRow, Reflector, lock_mutex, slots};

/// Number of remembered deletions (tombstones). They prevent a live read that a deletion has overtaken from bringing
/// the object back.
const MAX_TOMBSTONES: usize = 4_096;

/// What is known of an object that is gone: nothing up to this version of it is news.
#[derive(Clone, Copy)]
struct Tombstone {
    version: u64,
    /// Of one that a live read or a list did not find: the how manieth of all of those it is. A read that began later knows
    /// better.
    unseen: Option<u64>,
}

/// When a live read or a list began, by how many objects had been found absent until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStart(u64);

#[derive(Default)]
pub(super) struct TombstoneCache {
    at: FxHashMap<slots::UidKey, Tombstone>,
    order: VecDeque<slots::UidKey>,
}

impl Reflector {
    /// An object is gone, as a DELETE event says. `version` is that of the deletion; where it is not known (0), the one that
    /// is held.
    pub fn delete_object(&self, uid: &str, version: u64) {
        let uid = slots::UidKey::from_text(uid);
        self.on_watch_caught_up(uid, u64::MAX);
        let id = self.index.get(&uid).map(|id| *id);
        let held = || id.and_then(|id| self.read_row(id, |row| row.version)).unwrap_or(0);
        let version = if version == 0 { held() } else { version };
        self.add_tombstone(uid, version);
        if let Some(id) = id {
            self.remove_deleted_row(id, |row| row.version <= version);
        }
    }

    /// Begins a list of this kind, in one namespace or in all. A kind is listed either way, never both.
    pub fn begin_list(&self, kind: KindId, scope: Option<&str>) -> ListPass {
        let scope = scope.map(|s| self.intern_namespace(s));
        let (plan, start) = (self.plan_of(kind), self.start_read());
        let mut epochs = lock_mutex(&self.epochs);
        let number = epochs.entry((kind, scope.clone())).or_insert(0);
        *number += 1;
        ListPass { kind, scope, number: *number, plan, start }
    }

    /// Ends a list: what it did not have is gone. How many objects that were; `None` where the list is void, because it was
    /// begun under another plan or begun anew.
    pub fn finish_list(&self, pass: &ListPass) -> Option<usize> {
        if !self.is_current(pass) {
            return None;
        }
        // An object that is absent from a complete list is deleted as far as the watch is concerned.
        self.awaited.retain(|_, version| *version != u64::MAX);
        let within = |row: &ObjectRow| pass.scope.as_ref().is_none_or(|s| *s == row.namespace);
        let unlisted = |row: &ObjectRow| {
            row.kind == pass.kind && within(row) && row.epoch != pass.number && !row.is_remembered()
        };
        let swept = self.find_rows(unlisted).into_iter().filter(|id| self.sweep_row(*id, unlisted)).count();
        self.on_list_finished(pass.kind, pass.scope.as_deref());
        Some(swept)
    }

    /// What the list does not have is gone, and what was read before of it does not bring it back.
    fn sweep_row(&self, id: ObjectId, unlisted: impl Fn(&ObjectRow) -> bool) -> bool {
        let seen = |slot: &mut slots::RowSlot| {
            slot.row.as_ref().filter(|row| unlisted(row)).map(|row| (slot.uid, row.version))
        };
        let Some((uid, version)) = self.slots.with_slot(id, seen).flatten() else { return false };
        self.bury_absent(uid, version);
        self.remove_deleted_row(id, |row| unlisted(row) && row.version <= version)
    }

    /// Forgets a kind that is not followed any more, or whose API is gone: it has no objects, and nothing of it is taken in.
    pub fn forget_kind(&self, kind: KindId) -> usize {
        self.remove_interest(kind);
        self.rule_breakers.forget_kind(kind);
        let forgotten = self.find_rows(|row| row.kind == kind);
        for id in &forgotten {
            self.drop_row(*id, |row| row.kind == kind);
        }
        self.drop_memory_interest(kind);
        forgotten.len()
    }

    /// How many objects of a kind are held that have not been seen to go.
    pub fn count_held(&self, kind: KindId) -> usize {
        self.find_rows(|row| row.kind == kind && !row.is_remembered()).len()
    }

    fn find_rows(&self, which: impl Fn(&ObjectRow) -> bool) -> Vec<ObjectId> {
        let mut found = Vec::new();
        self.slots.for_each_slot(|id, slot| {
            if slot.row.as_ref().is_some_and(&which) {
                found.push(id);
            }
        });
        found
    }

    /// Takes an object away that does not exist any more, if the row that is there is one that is `gone`; where its outcome
    /// is to be remembered, that takes its place. Whether it did.
    pub(super) fn remove_deleted_row(&self, id: ObjectId, gone: impl Fn(&ObjectRow) -> bool) -> bool {
        let there = |slot: &mut slots::RowSlot| slot.row.as_ref().is_some_and(&gone).then_some(slot.uid);
        let Some(uid) = self.slots.with_slot(id, there).flatten() else { return false };
        let buried = self.mark_run_deleted(uid) || self.drop_row(id, gone);
        if buried {
            self.on_parent_removed(uid);
        }
        buried
    }

    /// Drops a row where it is `gone`, which is looked at under the slot's lock: a newer one may be there by now.
    pub(super) fn drop_row(&self, id: ObjectId, gone: impl Fn(&ObjectRow) -> bool) -> bool {
        let Some(Some(row)) = self.change_slot(id, |slot| slot.row.take_if(|row| gone(row))) else {
            return false;
        };
        self.release_row(&row);
        self.mark_dirty(id);
        true
    }

    /// A DELETE event said so, or that it counts for nobody: nothing up to this version brings it back.
    pub(super) fn add_tombstone(&self, uid: slots::UidKey, version: u64) {
        self.entomb(uid, Tombstone { version, unseen: None });
    }

    /// A live read or a list did not find it.
    pub(super) fn bury_absent(&self, uid: slots::UidKey, version: u64) {
        let number = self.absences.fetch_add(1, Ordering::Relaxed) + 1;
        self.entomb(uid, Tombstone { version, unseen: Some(number) });
    }

    /// Must be asked for before a live read is sent, and given with what it brings.
    pub fn start_read(&self) -> ReadStart {
        ReadStart(self.absences.load(Ordering::Relaxed))
    }

    fn entomb(&self, uid: slots::UidKey, tombstone: Tombstone) {
        let mut tombstones = lock_mutex(&self.tombstones);
        // What more is known stands, and a deletion that was seen is known better than one that was inferred.
        let better = |held: &Tombstone| {
            let seen = held.unseen.is_none() || tombstone.unseen.is_some();
            held.version > tombstone.version || (held.version == tombstone.version && seen)
        };
        if tombstones.at.get(&uid).is_some_and(better) {
            return;
        }
        if tombstones.at.insert(uid, tombstone).is_none() {
            tombstones.order.push_back(uid);
        }
        if tombstones.order.len() > MAX_TOMBSTONES
            && let Some(oldest) = tombstones.order.pop_front()
        {
            tombstones.at.remove(&oldest);
        }
    }

    /// A read has the object: where it began after another had not found it, it knows better.
    pub(super) fn exhume(&self, uid: slots::UidKey, start: ReadStart) {
        let mut tombstones = lock_mutex(&self.tombstones);
        let Some(tombstone) = tombstones.at.get_mut(&uid) else { return };
        if tombstone.unseen.is_some_and(|number| number <= start.0) {
            // Its place in the order stays: it is the oldest of its uid all the same.
            *tombstone = Tombstone { version: 0, unseen: None };
        }
    }

    pub(super) fn has_tombstone(&self, uid: slots::UidKey, version: u64) -> bool {
        lock_mutex(&self.tombstones).at.get(&uid).is_some_and(|at| at.version > 0 && version <= at.version)
    }
}
