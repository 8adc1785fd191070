//! What is gone: by a deletion, by not being in a complete list, or because its kind is not followed any more.

use std::collections::VecDeque;

use aggregator::{KindId, ObjectId};
use rustc_hash::FxHashMap;

use super::{Reflector, Row, lock, slots};

/// So many deletions are remembered, so that a live read that was overtaken by a deletion does not bring it back.
const TOMBSTONES: usize = 4_096;

#[derive(Default)]
pub(super) struct Tombstones {
    at: FxHashMap<slots::Uid, u64>,
    order: VecDeque<slots::Uid>,
}

impl Reflector {
    /// An object is gone, as a DELETE event or a live read says. `version` is that of the deletion, 0 if not known.
    pub fn delete(&self, uid: &str, version: u64) {
        let uid = slots::Uid::of(uid);
        self.caught_up(uid, u64::MAX);
        self.bury(uid, version);
        if let Some(id) = self.index.get(&uid).map(|id| *id) {
            let older = |slot: &mut slots::Slot| {
                slot.row.as_ref().is_some_and(|r| version == 0 || r.version <= version)
            };
            if self.slots.with(id, older) == Some(true) {
                self.bury_row(id);
            }
        }
    }

    /// A list of this kind begins, in one namespace or in all. A kind is listed either way, never both.
    pub fn begin(&self, kind: KindId, scope: Option<&str>) {
        let scope = scope.map(|s| self.namespace(s));
        *lock(&self.epochs).entry((kind, scope)).or_insert(0) += 1;
    }

    /// The list is through: what it did not have is gone. How many that were.
    pub fn finish(&self, kind: KindId, scope: Option<&str>) -> usize {
        // What is not in a complete list is gone as far as the watch is concerned.
        self.awaited.retain(|_, version| *version != u64::MAX);
        let scope = scope.map(|s| self.namespace(s));
        let epoch = lock(&self.epochs).get(&(kind, scope.clone())).copied().unwrap_or(0);
        let within = |row: &Row| scope.as_ref().is_none_or(|s| *s == row.namespace);
        let swept =
            self.sweep(|row| row.kind == kind && within(row) && row.epoch != epoch && !row.is_remembered());
        self.listed(kind, scope.as_deref());
        swept
    }

    /// This kind is not watched any more, or its API is gone: it has no objects.
    pub fn forget(&self, kind: KindId) -> usize {
        let forgotten = self.those(|row| row.kind == kind);
        for id in &forgotten {
            self.drop_row(*id);
        }
        self.disregard(kind);
        forgotten.len()
    }

    fn sweep(&self, gone: impl Fn(&Row) -> bool) -> usize {
        let swept = self.those(gone);
        for id in &swept {
            self.bury_row(*id);
        }
        swept.len()
    }

    fn those(&self, which: impl Fn(&Row) -> bool) -> Vec<ObjectId> {
        let mut found = Vec::new();
        self.slots.each(|id, slot| {
            if slot.row.as_ref().is_some_and(&which) {
                found.push(id);
            }
        });
        found
    }

    /// An object does not exist any more; where its outcome is to be remembered, that takes its place.
    pub(super) fn bury_row(&self, id: ObjectId) {
        let uid = self.slots.with(id, |slot| slot.uid);
        if !uid.is_some_and(|uid| self.depart(uid)) {
            self.drop_row(id);
        }
        if let Some(uid) = uid {
            self.parent_unseen(uid);
        }
    }

    pub(super) fn drop_row(&self, id: ObjectId) {
        if let Some(Some(row)) = self.change(id, |slot| slot.row.take()) {
            self.let_go(&row);
            self.mark(id);
        }
    }

    pub(super) fn bury(&self, uid: slots::Uid, version: u64) {
        let mut tombstones = lock(&self.tombstones);
        if tombstones.at.insert(uid, version).is_none() {
            tombstones.order.push_back(uid);
        }
        if tombstones.order.len() > TOMBSTONES
            && let Some(oldest) = tombstones.order.pop_front()
        {
            tombstones.at.remove(&oldest);
        }
    }

    pub(super) fn is_buried(&self, uid: slots::Uid, version: u64) -> bool {
        // A uid never comes back, so a newer version of a buried one can only be a deletion that was a mistake.
        lock(&self.tombstones).at.get(&uid).is_some_and(|at| *at == 0 || version <= *at)
    }
}
