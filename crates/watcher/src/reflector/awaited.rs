//! Versions known from live reads that the watch has not delivered yet.

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::uid_key::UidKey;

/// A version known from a live read that the watch has not delivered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedVersion(UidKey);

/// What stands for the deletion of an object, which no version can exceed.
const DELETION: u64 = u64::MAX;

/// All of them.
#[derive(Default)]
pub(super) struct AwaitedVersions(DashMap<UidKey, u64, FxBuildHasher>);

impl AwaitedVersions {
    /// The watch is expected to deliver this version of an object.
    pub(super) fn expect_version(&self, uid: UidKey, version: u64) -> AwaitedVersion {
        self.0.insert(uid, version);
        AwaitedVersion(uid)
    }

    /// The watch is expected to deliver the deletion of an object.
    pub(super) fn expect_deletion(&self, uid: UidKey) -> AwaitedVersion {
        self.expect_version(uid, DELETION)
    }

    /// The watch has delivered this version.
    pub(super) fn on_version(&self, uid: UidKey, version: u64) {
        if !self.0.is_empty() {
            self.0.remove_if(&uid, |_, awaited| *awaited <= version);
        }
    }

    /// The watch has delivered the deletion.
    pub(super) fn on_deletion(&self, uid: UidKey) {
        self.on_version(uid, DELETION);
    }

    /// An object that is absent from a complete list is deleted as far as the watch is concerned.
    pub(super) fn on_list_finished(&self) {
        self.0.retain(|_, version| *version != DELETION);
    }

    /// Returns `true` if the watch has not delivered the version yet. Answered once.
    pub(super) fn is_still_awaited(&self, awaited: AwaitedVersion) -> bool {
        self.0.remove(&awaited.0).is_some()
    }
}
