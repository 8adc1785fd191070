//! Versions known from live reads that the watch has not delivered yet.

use aggregator::KindId;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rustc_hash::FxBuildHasher;

use super::uid_key::UidKey;

/// A version known from a live read that the watch has not delivered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedVersion(UidKey);

/// What stands for the deletion of an object, which no version can exceed.
const DELETION: u64 = u64::MAX;

/// All of them: the newest version of each object, with its kind.
#[derive(Default)]
pub(super) struct AwaitedVersions(DashMap<UidKey, (KindId, u64), FxBuildHasher>);

impl AwaitedVersions {
    /// The watch is expected to deliver this version of an object. It must be before what is read is applied, or the watch may
    /// deliver it in between. Returns `true` beside it where that was not expected before.
    pub(super) fn expect_version(&self, uid: UidKey, kind: KindId, version: u64) -> (AwaitedVersion, bool) {
        let is_new = match self.0.entry(uid) {
            Entry::Occupied(mut held) => {
                let (_, expected) = *held.get();
                // What was read since is there.
                let is_news = expected < version || (expected == DELETION && version != DELETION);
                if is_news {
                    held.insert((kind, version));
                }
                is_news
            }
            Entry::Vacant(place) => {
                place.insert((kind, version));
                true
            }
        };
        (AwaitedVersion(uid), is_new)
    }

    /// The watch is expected to deliver the deletion of an object.
    pub(super) fn expect_deletion(&self, uid: UidKey, kind: KindId) -> (AwaitedVersion, bool) {
        self.expect_version(uid, kind, DELETION)
    }

    /// What was expected is no news: it is awaited no longer, unless it was before.
    pub(super) fn withdraw(&self, (awaited, is_new): (AwaitedVersion, bool)) {
        if is_new {
            self.0.remove(&awaited.0);
        }
    }

    /// The watch has delivered this version.
    pub(super) fn on_version(&self, uid: UidKey, version: u64) {
        if !self.0.is_empty() {
            self.0.remove_if(&uid, |_, (_, awaited)| *awaited <= version);
        }
    }

    /// The watch has delivered the deletion.
    pub(super) fn on_deletion(&self, uid: UidKey) {
        self.on_version(uid, DELETION);
    }

    /// An object that is absent from a complete list of its kind is deleted as far as the watch is concerned.
    pub(super) fn on_list_finished(&self, kind: KindId) {
        self.0.retain(|_, (of, version)| *of != kind || *version != DELETION);
    }

    /// Returns `true` if the watch has not delivered the version yet.
    pub(super) fn is_awaited(&self, awaited: AwaitedVersion) -> bool {
        self.0.contains_key(&awaited.0)
    }

    /// Awaits the version no longer; returns `true` if the watch has not delivered it.
    pub(super) fn give_up(&self, awaited: AwaitedVersion) -> bool {
        self.0.remove(&awaited.0).is_some()
    }
}
