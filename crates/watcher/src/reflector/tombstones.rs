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
    /// The how manieth tombstone it is: a read that began later knows better.
    number: u64,
    /// Its deletion was seen, not inferred from a read that did not find it.
    is_seen: bool,
}

/// When a live read or a list began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStart {
    /// How many objects were known to be gone by then.
    burials: u64,
    /// How many lists were finished by then, of all kinds together.
    pub(super) lists_finished: u64,
}

#[derive(Default)]
struct TombstoneCache {
    at: FxHashMap<UidKey, Tombstone>,
    order: VecDeque<UidKey>,
}

/// Remembered deletions.
#[derive(Default)]
pub(super) struct Tombstones {
    cache: Mutex<TombstoneCache>,
    /// How many times an object was found to be gone.
    burials: AtomicU64,
}

impl Tombstones {
    fn lock(&self) -> MutexGuard<'_, TombstoneCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A DELETE event said so, or that it counts for nobody: nothing up to this version brings it back.
    pub(super) fn add(&self, uid: UidKey, version: u64) {
        self.entomb(uid, version, true);
    }

    /// A live read or a list did not find it.
    pub(super) fn bury_absent(&self, uid: UidKey, version: u64) {
        self.entomb(uid, version, false);
    }

    /// Must be asked for before a live read is sent, and given with what it brings.
    pub(super) fn start_read(&self, lists_finished: u64) -> ReadStart {
        ReadStart { burials: self.burials.load(Ordering::Relaxed), lists_finished }
    }

    fn entomb(&self, uid: UidKey, version: u64, is_seen: bool) {
        let number = self.burials.fetch_add(1, Ordering::Relaxed) + 1;
        let tombstone = Tombstone { version, number, is_seen };
        let mut tombstones = self.lock();
        // What more is known stands, and a deletion that was seen is known better than one that was inferred.
        let better = |held: &Tombstone| {
            let seen = held.is_seen || !is_seen;
            held.version > version || (held.version == version && seen)
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

    /// A live read has the object in this version: where it began after another had not found it, it knows better.
    pub(super) fn exhume(&self, uid: UidKey, version: u64, start: ReadStart) {
        self.exhume_if(uid, version, |tombstone| !tombstone.is_seen && tombstone.number <= start.burials);
    }

    /// A list has the object in this version. A list is never older than what was known when it began, not even of a deletion
    /// that was seen: then the server's history has gone back, as it does when etcd is restored from a backup.
    pub(super) fn exhume_listed(&self, uid: UidKey, version: u64, start: ReadStart) {
        self.exhume_if(uid, version, |tombstone| tombstone.number <= start.burials);
    }

    /// What is older than the object was read stays no news.
    fn exhume_if(&self, uid: UidKey, version: u64, knows_better: impl Fn(&Tombstone) -> bool) {
        let mut tombstones = self.lock();
        if let Some(tombstone) = tombstones.at.get_mut(&uid).filter(|tombstone| knows_better(tombstone)) {
            // Its place in the order stays: it is the oldest of its uid all the same.
            tombstone.version = tombstone.version.min(version.saturating_sub(1));
        }
    }

    /// Returns `true` if this version of an object is no news: it is gone.
    pub(super) fn covers(&self, uid: UidKey, version: u64) -> bool {
        self.lock().at.get(&uid).is_some_and(|at| at.version > 0 && version <= at.version)
    }
}
