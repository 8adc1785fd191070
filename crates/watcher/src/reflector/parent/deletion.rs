//! Messages about the deletion of a parent.

use readiness::rollup::ParentReason;
use readiness::{FinalizerHold, Time};

use crate::status::{BEING_DELETED, ParentStatus};
use crate::wire::WireMeta;

/// Finalizer by which the garbage collector deletes the dependents first.
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// The deletion of a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentDeletion {
    /// Time of the deletion request.
    pub since: Time,
    /// What holds it, as the parent's condition says it.
    pub text: Box<str>,
    /// It is deleted in the foreground: its children go first, and the garbage collector waits for those that block it.
    pub is_in_foreground: bool,
}

impl ParentDeletion {
    /// Reads the deletion of an object; `None` if it is not being deleted.
    pub(super) fn read(meta: &WireMeta) -> Option<ParentDeletion> {
        let since = meta.deleted?;
        let text = if meta.finalizers.is_empty() {
            BEING_DELETED.into()
        } else {
            let hold = FinalizerHold::new(since, &meta.finalizers, &meta.setters);
            format!("{BEING_DELETED}: {hold}").into()
        };
        let is_in_foreground = meta.finalizers.iter().any(|name| **name == *FOREGROUND_FINALIZER);
        Some(ParentDeletion { since, text, is_in_foreground })
    }
}

/// Do Rollcall's conditions on a parent, as far as they are about its deletion, say what holds it now?
pub(super) fn explains_deletion(status: &ParentStatus, conditions: &[&str], deletion: &str) -> bool {
    conditions.iter().filter_map(|condition| status.our_entry(condition)).all(|ours| {
        let reason = ours.parent_reason();
        let is_deletion = matches!(reason, Some(ParentReason::Terminating | ParentReason::DeletionStuck));
        !is_deletion || ours.message().starts_with(deletion)
    })
}
