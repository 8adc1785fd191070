//! What is said of the deletion of a parent.

use readiness::FinalizerHold;
use readiness::rollup::ParentReason;

use super::parent::AnswerTarget;
use crate::status::{BEING_DELETED, ParentStatus};
use crate::wire::WireMeta;

/// Describes what holds the deletion of an object, and since when; `None` if it is not being deleted.
pub(super) fn describe_deletion(meta: &WireMeta) -> Option<Box<str>> {
    let since = meta.deleted?;
    if meta.finalizers.is_empty() {
        return Some(BEING_DELETED.into());
    }
    let hold = FinalizerHold::new(since, &meta.finalizers, &meta.setters);
    Some(format!("{BEING_DELETED}: {hold}").into())
}

/// Do Rollcall's conditions on a parent, as far as they are about its deletion, say what holds it now?
pub(super) fn explains_deletion(status: &ParentStatus, targets: &[AnswerTarget], deletion: &str) -> bool {
    targets.iter().filter_map(|target| status.our_entry(target.condition.as_ref()?)).all(|ours| {
        let reason = ours.entry.parent_reason();
        let told = matches!(reason, Some(ParentReason::Terminating | ParentReason::DeletionStuck));
        !told || ours.entry.message.starts_with(deletion)
    })
}
