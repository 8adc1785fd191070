//! Which objects moved: a set that coalesces, so no change is ever dropped and no watch ever waits.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aggregator::ObjectId;
use rustc_hash::FxHashSet;

/// Room that an empty set keeps: a first list fills it with everything there is, and never again.
const KEPT: usize = 1_024;

/// The dirty set, in the order in which objects first moved.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    inner: Mutex<(VecDeque<ObjectId>, FxHashSet<ObjectId>)>,
}

impl Dirty {
    /// `true` where the set was empty before.
    pub(super) fn insert(&self, id: ObjectId) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = inner.0.is_empty();
        if inner.1.insert(id) {
            inner.0.push_back(id);
        }
        was_empty
    }

    pub(super) fn take(&self, most: usize) -> Vec<ObjectId> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: Vec<_> = (0..most).map_while(|_| inner.0.pop_front()).collect();
        for id in &taken {
            inner.1.remove(id);
        }
        if inner.0.is_empty() && inner.0.capacity() > KEPT {
            *inner = Default::default();
        }
        taken
    }

    pub(super) fn len(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).0.len()
    }
}
