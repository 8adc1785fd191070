//! One write to one parent, as it is handed to the writer.

use aggregator::{EntriesDigest, KindId, ObjectId, PolicyId, WriteTicket};
use readiness::rollup::ConditionStatus;
use serde_json::Value;
use watcher::status::WantedConditions;

/// One write to one parent.
#[derive(Clone, Debug)]
pub struct ParentWrite {
    /// The parent.
    pub parent: ObjectId,
    /// Which write this is: its outcome is reported with it.
    pub ticket: WriteTicket,
    /// Its kind.
    pub kind: KindId,
    /// Its namespace; empty for cluster-scoped parents.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Policies whose answers the write carries.
    pub policies: Vec<PolicyId>,
    /// JSON Patch.
    pub patch: Value,
    /// Entries of the parent after the write.
    pub wanted: WantedConditions,
    /// Fingerprint of these.
    pub digest: EntriesDigest,
    /// New status of the condition, if the write changes it.
    pub status_transition: Option<ConditionStatus>,
}
