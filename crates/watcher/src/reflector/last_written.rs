//! What was last written to parents that do not give it back whole.

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::uid_key::UidKey;
use crate::status::{ConditionEntry, ParentStatus};

/// Conditions last written to parents whose schema drops some field of a condition.
#[derive(Default)]
pub(super) struct LastWrittenConditions(DashMap<UidKey, Box<[ConditionEntry]>, FxBuildHasher>);

impl LastWrittenConditions {
    /// Records an accepted write and its response.
    pub(super) fn on_accepted(&self, uid: UidKey, sent: &[ConditionEntry], answer: &ParentStatus) {
        if answer.has_dropped(sent) {
            self.0.insert(uid, sent.into());
        } else if !self.0.is_empty() {
            self.forget(uid);
        }
    }

    /// Returns what was last written to a parent; empty where it gives back all that it is sent.
    pub(super) fn find(&self, uid: UidKey) -> Box<[ConditionEntry]> {
        self.0.get(&uid).map(|sent| sent.clone()).unwrap_or_default()
    }

    /// Forgets a parent that is gone, or gives back all that it is sent.
    pub(super) fn forget(&self, uid: UidKey) {
        self.0.remove(&uid);
    }
}
