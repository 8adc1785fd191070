//! How many objects of each kind are held.

use std::sync::{Mutex, PoisonError};

use aggregator::KindId;
use rustc_hash::FxHashMap;

/// Numbers of held objects by kind, without those that are gone and remembered.
#[derive(Debug, Default)]
pub(super) struct KindCounts(Mutex<FxHashMap<KindId, usize>>);

impl KindCounts {
    /// An object that was of one kind is of another, has come, or has gone.
    pub(super) fn note_change(&self, before: Option<KindId>, now: Option<KindId>) {
        if before == now {
            return;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = before.and_then(|kind| counts.get_mut(&kind)) {
            *count = count.saturating_sub(1);
        }
        if let Some(kind) = now {
            *counts.entry(kind).or_default() += 1;
        }
    }

    /// Number of objects of a kind.
    pub(super) fn count_of(&self, kind: KindId) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&kind).copied().unwrap_or(0)
    }
}
