//! One write to one parent, as it is handed to the writer.

use aggregator::{Brevity, DeliveryOutcome, EntriesDigest, KindId, ObjectId, PolicyId, WriteTicket};
use readiness::rollup::{ConditionStatus, ParentReason};
use serde_json::Value;
use watcher::reflector::ObjectRow;
use watcher::status::{
    ListShape, OwnedCondition, ParentStatus, PatchGuard, WantedConditions, guarded_patch, is_bound_to_version,
};

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
    /// An empty list of conditions stays.
    pub requires_list: bool,
    /// Whatever else is written to the parent since it was read forestalls the write.
    pub is_bound_to_version: bool,
    /// How briefly the entries say what there is to say.
    pub brevity: Brevity,
    /// New status of the condition, if the write changes it.
    pub status_transition: Option<ConditionStatus>,
}

/// What is to be written to a parent, before it is compared with what the parent says.
#[derive(Debug)]
pub(super) struct PlannedWrite {
    pub(super) parent: ObjectId,
    pub(super) ticket: WriteTicket,
    pub(super) policies: Vec<PolicyId>,
    pub(super) wanted: WantedConditions,
    pub(super) digest: EntriesDigest,
    /// Generation that was evaluated, if any.
    pub(super) judged: Option<u64>,
    pub(super) requires_list: bool,
    pub(super) brevity: Brevity,
}

/// What a planned write is, compared with what the parent says.
#[derive(Debug)]
pub(super) enum AddressedWrite {
    /// To be sent.
    Send(Box<ParentWrite>),
    /// The parent says it already, or cannot hold it: this outcome.
    Unsent(DeliveryOutcome),
    /// The parent has another generation than the one that was evaluated.
    Outdated,
}

impl PlannedWrite {
    /// Addresses the write to the parent of this row.
    pub(super) fn address_to(self, row: &ObjectRow) -> AddressedWrite {
        let Some(row_parent) = &row.parent else { return AddressedWrite::Outdated };
        if self.judged.is_some_and(|generation| generation != row_parent.view.generation) {
            return AddressedWrite::Outdated;
        }
        let uid = row_parent.uid.to_string();
        let guarded = PatchGuard {
            uid: &uid,
            generation: row_parent.generation(),
            version: row.version,
            status: &row_parent.status,
            requires_list: self.requires_list,
        };
        let is_bound_to_version = is_bound_to_version(&guarded, &self.wanted);
        let Some(patch) = guarded_patch(&guarded, &self.wanted) else {
            return AddressedWrite::Unsent(unsent_outcome(&row_parent.status));
        };
        AddressedWrite::Send(Box::new(ParentWrite {
            parent: self.parent,
            ticket: self.ticket,
            kind: row.kind,
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
            status_transition: status_transition(&row_parent.status, &self.wanted),
            policies: self.policies,
            uid,
            patch,
            wanted: self.wanted,
            digest: self.digest,
            requires_list: self.requires_list,
            is_bound_to_version,
            brevity: self.brevity,
        }))
    }
}

/// The status that these conditions turn the condition of a parent to, if they do.
fn status_transition(status: &ParentStatus, wanted: &WantedConditions) -> Option<ConditionStatus> {
    let main = wanted.entries.first()?;
    let before = status.our_entry(&main.r#type).map(|held| held.to_entry().status);
    (before.as_ref() != Some(&main.status))
        .then(|| main.parent_reason().map(ParentReason::condition_status))
        .flatten()
}

/// Outcome of a write that has nothing to send to a parent with this status.
fn unsent_outcome(status: &ParentStatus) -> DeliveryOutcome {
    match status.list {
        // There is nothing to send until that shape changes.
        ListShape::Unwritable(_) => DeliveryOutcome::Pruned,
        // The parent changed to the wanted state in between; the next change must not wait for that.
        _ => DeliveryOutcome::Unsent,
    }
}

/// Returns `true` if what the parent says was said of its current generation.
pub(super) fn is_told_of_generation(row: &ObjectRow) -> bool {
    row.parent.as_ref().is_some_and(|row| {
        let generation = i64::try_from(row.view.generation).ok();
        row.status.written().any(|held| held.observed_generation() == generation)
    })
}

/// Returns `true` if the parent says under some policy that it is ready.
pub(super) fn says_true(row: &ObjectRow) -> bool {
    row.parent.as_ref().is_some_and(|row| {
        let mut told = row.targets.iter().filter_map(|target| row.entry_of(target));
        told.any(OwnedCondition::is_true)
    })
}
