//! The gate between a kind's task and the reflector.

use std::sync::{Arc, Mutex, PoisonError};

/// Gate through which the task of a kind feeds the reflector. Closing it waits for a task that is in the middle of that, so
/// that nothing of the task comes after its successor has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct FeedGate(Arc<Mutex<bool>>);

impl FeedGate {
    /// Lets nothing through any more.
    pub(super) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Runs `feed` where the gate is open.
    pub(super) fn pass<R>(&self, feed: impl FnOnce() -> R) -> Option<R> {
        let closed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!*closed).then(feed)
    }
}
