//! Deletions that are remembered, so that a read which they have overtaken does not bring the object back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::uid_key::UidKey;

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
struct TombstoneCache {
    at: FxHashMap<UidKey, Tombstone>,
    order: VecDeque<UidKey>,
}

/// Remembered deletions.
#[derive(Default)]
pub(super) struct Tombstones {
    cache: Mutex<TombstoneCache>,
    /// How many times an object was not found by a read.
    absences: AtomicU64,
}

impl Tombstones {
    fn lock(&self) -> MutexGuard<'_, TombstoneCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A DELETE event said so, or that it counts for nobody: nothing up to this version brings it back.
    pub(super) fn add(&self, uid: UidKey, version: u64) {
        self.entomb(uid, Tombstone { version, unseen: None });
    }

    /// A live read or a list did not find it.
    pub(super) fn bury_absent(&self, uid: UidKey, version: u64) {
        let number = self.absences.fetch_add(1, Ordering::Relaxed) + 1;
        self.entomb(uid, Tombstone { version, unseen: Some(number) });
    }

    /// Must be asked for before a live read is sent, and given with what it brings.
    pub(super) fn start_read(&self) -> ReadStart {
        ReadStart(self.absences.load(Ordering::Relaxed))
    }

    fn entomb(&self, uid: UidKey, tombstone: Tombstone) {
        let mut tombstones = self.lock();
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
    pub(super) fn exhume(&self, uid: UidKey, start: ReadStart) {
        let mut tombstones = self.lock();
        let Some(tombstone) = tombstones.at.get_mut(&uid) else { return };
        if tombstone.unseen.is_some_and(|number| number <= start.0) {
            // Its place in the order stays: it is the oldest of its uid all the same.
            *tombstone = Tombstone { version: 0, unseen: None };
        }
    }

    /// Returns `true` if this version of an object is no news: it is gone.
    pub(super) fn covers(&self, uid: UidKey, version: u64) -> bool {
        self.lock().at.get(&uid).is_some_and(|at| at.version > 0 && version <= at.version)
    }
}
