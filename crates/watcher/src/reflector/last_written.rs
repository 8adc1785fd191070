//! What was last written to parents that do not give it back as it was sent.

use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::uid_key::UidKey;
use crate::status::{ConditionEntry, ParentStatus};

/// The last write to a parent that gave it back otherwise.
#[derive(Debug, Default)]
pub(super) struct LastWrite {
    /// What was sent, where the schema drops some field of a condition.
    pub(super) sent: Box<[ConditionEntry]>,
    /// What came back in other words than ours. Where a list has one owner, nothing else tells that it is ours: it is, for as
    /// long as it stands so.
    pub(super) returned: Box<[ConditionEntry]>,
}

/// The last writes to parents that gave them back otherwise.
#[derive(Default)]
pub(super) struct LastWrittenConditions(DashMap<UidKey, Arc<LastWrite>, FxBuildHasher>);

impl LastWrittenConditions {
    /// Records an accepted write and its response.
    pub(super) fn on_accepted(&self, uid: UidKey, sent: &[ConditionEntry], answer: &ParentStatus) {
        let (returned, has_dropped) = (answer.altered_of(sent), answer.has_dropped(sent));
        if has_dropped || !returned.is_empty() {
            let sent = if has_dropped { sent.into() } else { Box::default() };
            self.0.insert(uid, Arc::new(LastWrite { sent, returned }));
        } else if !self.0.is_empty() {
            self.forget(uid);
        }
    }

    /// Returns the last write to a parent; `None` where that gives back all that it is sent.
    pub(super) fn find(&self, uid: UidKey) -> Option<Arc<LastWrite>> {
        self.0.get(&uid).map(|write| Arc::clone(&write))
    }

    /// Forgets a parent that is gone, or gives back all that it is sent.
    pub(super) fn forget(&self, uid: UidKey) {
        self.0.remove(&uid);
    }
}
