//! Conditions of a parent as the API server stores them.

use std::collections::BTreeMap;

use aggregator::{EntriesDigest, PolicyId};
use readiness::Time;
use readiness::rollup::{self, ParentReason};
use timer::Seed;

/// All conditions of one parent, by policy.
pub(crate) type Status = BTreeMap<PolicyId, ParentEntry>;

/// Condition on a parent for one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentEntry {
    pub(crate) reason: ParentReason,
    pub(crate) about: u32,
    pub(crate) stalled: bool,
    pub(crate) reconciling: bool,
    pub(crate) message: String,
    pub(crate) since: Time,
    /// Somebody turned the status to this one.
    pub(crate) turned: Option<rollup::ConditionStatus>,
}

impl ParentEntry {
    pub(crate) fn status(&self) -> rollup::ConditionStatus {
        self.turned.unwrap_or(self.reason.condition_status())
    }

    pub(crate) fn brief(&self) -> String {
        format!("{}{}", self.reason.as_str(), if self.stalled { "!" } else { "" })
    }
}

/// Digest of a parent's conditions, as the reflector and the renderer compute it.
pub(crate) fn digest(status: &Status) -> EntriesDigest {
    let mut sum = EntriesDigest::default();
    for (policy, entry) in status {
        let gist = hash(&format!(
            "{}/{:?}/{:?}/{}/{}/{}",
            policy.0, entry.reason, entry.turned, entry.about, entry.stalled, entry.reconciling
        ));
        sum.without_messages = sum.without_messages.wrapping_add(gist);
        sum.whole = sum.whole.wrapping_add(hash(&format!("{gist}/{}", entry.message)));
    }
    sum
}

/// Hash of a name, as the reflector computes it.
pub(crate) fn hash(name: &str) -> u64 {
    name.bytes().fold(7, |hash, byte| Seed(hash).number_for(u64::from(byte)))
}
