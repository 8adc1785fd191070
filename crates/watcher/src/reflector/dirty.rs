//! The set of changed objects: it coalesces, so no change is dropped and no watch has to wait.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aggregator::ObjectId;
use rustc_hash::FxHashSet;

/// Capacity that an empty set keeps. The first list fills the set with every object, which never happens again.
const KEPT_DIRTY_CAPACITY: usize = 1_024;

/// The dirty set, in the order in which the objects first changed.
#[derive(Debug, Default)]
pub(super) struct DirtySet {
    inner: Mutex<(VecDeque<ObjectId>, FxHashSet<ObjectId>)>,
}

impl DirtySet {
    /// Adds an object; returns `true` if the set was empty.
    pub(super) fn insert(&self, id: ObjectId) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = inner.0.is_empty();
        if inner.1.insert(id) {
            inner.0.push_back(id);
        }
        was_empty
    }

    pub(super) fn take_up_to(&self, most: usize) -> Vec<ObjectId> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: Vec<_> = (0..most).map_while(|_| inner.0.pop_front()).collect();
        for id in &taken {
            inner.1.remove(id);
        }
        if inner.0.is_empty() && inner.0.capacity() > KEPT_DIRTY_CAPACITY {
            *inner = Default::default();
        }
        taken
    }

    pub(super) fn len(&self) -> usize {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).0.len()
    }
}
