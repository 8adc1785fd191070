//! What the server was heard to refuse in the status of a kind.

use std::sync::atomic::{AtomicBool, Ordering};

use aggregator::KindId;
use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use crate::status::StatusBounds;

/// Bounds of kinds that have some.
#[derive(Default)]
pub(super) struct KnownBounds {
    kinds: DashMap<KindId, StatusBounds, FxBuildHasher>,
    /// There is one at least. Whatever is said is held against them, and nearly nowhere is there any.
    has_any: AtomicBool,
}

impl KnownBounds {
    pub(super) fn of(&self, kind: KindId) -> StatusBounds {
        if !self.has_any.load(Ordering::Acquire) {
            return StatusBounds::default();
        }
        self.kinds.get(&kind).map(|held| *held).unwrap_or_default()
    }

    /// Learns one more bound, and returns all.
    pub(super) fn learn(&self, kind: KindId, more: StatusBounds) -> StatusBounds {
        if more == StatusBounds::default() {
            return self.of(kind);
        }
        let mut held = self.kinds.entry(kind).or_default();
        *held = held.and(more);
        self.has_any.store(true, Ordering::Release);
        *held
    }

    /// Forgets a kind that is not followed any more: its schema may be another when it is again.
    pub(super) fn forget_kind(&self, kind: KindId) {
        self.kinds.remove(&kind);
    }
}
