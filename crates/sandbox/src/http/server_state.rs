//! State that the connections of a server share, and the way to its store.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::faults::FaultInjector;
use super::request_log::RequestLog;
use crate::store::{EpochMillis, SandboxStore};

/// Source of the server's time.
pub type SandboxClock = Arc<dyn Fn() -> EpochMillis + Send + Sync>;

/// State shared by replicas: the objects. Written by requests and by holders of a [`StoreGuard`].
pub(super) struct SharedCluster {
    pub(super) store: Mutex<SandboxStore>,
    pub(super) revision: watch::Sender<u64>,
}

/// State shared by the connections of one server.
pub(super) struct ServerState {
    pub(super) cluster: Arc<SharedCluster>,
    /// Changes when all running watches are to end.
    pub(super) epoch: watch::Sender<u64>,
    pub(super) faults: FaultInjector,
    pub(super) log: RequestLog,
    pub(super) clock: SandboxClock,
}

/// Exclusive access to the store; dropping it wakes the watches.
pub struct StoreGuard<'a> {
    store: MutexGuard<'a, SandboxStore>,
    revision: &'a watch::Sender<u64>,
}

impl Deref for StoreGuard<'_> {
    type Target = SandboxStore;
    fn deref(&self) -> &SandboxStore {
        &self.store
    }
}

impl DerefMut for StoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut SandboxStore {
        &mut self.store
    }
}

impl Drop for StoreGuard<'_> {
    fn drop(&mut self) {
        let now = self.store.revision();
        self.revision.send_if_modified(|seen| std::mem::replace(seen, now) != now);
    }
}

impl ServerState {
    pub(super) fn lock_store(&self) -> StoreGuard<'_> {
        // A test that panicked while it held the guard must not hide its failure behind a poisoned lock.
        let store = self.cluster.store.lock().unwrap_or_else(PoisonError::into_inner);
        StoreGuard { store, revision: &self.cluster.revision }
    }
}
