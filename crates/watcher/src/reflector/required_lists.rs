//! Kinds whose schema requires `status.conditions`, as the server said when the list was to be removed.

use aggregator::KindId;
use dashmap::DashSet;
use rustc_hash::FxBuildHasher;

/// Kinds of which an empty list of conditions stays.
#[derive(Default)]
pub(super) struct RequiredLists(DashSet<KindId, FxBuildHasher>);

impl RequiredLists {
    pub(super) fn require(&self, kind: KindId) {
        self.0.insert(kind);
    }

    pub(super) fn has(&self, kind: KindId) -> bool {
        self.0.contains(&kind)
    }

    /// Forgets a kind that is not followed any more: its schema may be another when it is again.
    pub(super) fn forget_kind(&self, kind: KindId) {
        self.0.remove(&kind);
    }
}
