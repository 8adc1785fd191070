//! The answer of one policy as it is read from a parent.

use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};

use crate::ids::{PolicyId, SelectorId};

/// Current answer of one policy on a parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerView {
    /// The policy.
    pub policy: PolicyId,
    /// Rollcall's conditions for that policy as last read; `None` if there are none.
    pub written: Option<WrittenAnswer>,
    /// Generation (as in [`crate::ParentView::generation`]) that the condition is about.
    pub about_generation: Option<u64>,
    /// Another client owns the condition type and there is no fallback: do not write.
    pub owned_by_other: bool,
    /// Selectors of the parent, for groups that are found by labels.
    pub selects: Vec<SelectorId>,
    /// Expected names with their group: hashes as in [`crate::ObjectView::name`].
    pub expects: Vec<(u8, u64)>,
    /// Minimum number of children by group, computed by the policy from this parent.
    pub counts: Box<[(u8, u32)]>,
    /// A template of the policy could not be rendered for this parent.
    pub template_failed: bool,
    /// Time from which its deletion counts as stuck; `None` if it is not being deleted, or nothing limits that.
    pub deletion_stuck_at: Option<Time>,
    /// No `Stalled` is written beside the condition: it goes with `Ready` alone, or another client has it.
    pub stalled_unrecorded: bool,
}

/// Rollcall's conditions as read from the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenAnswer {
    /// Reason of the condition.
    pub reason: ParentReason,
    /// The status of the condition; `None` where it is no status at all. Whoever tampers with an entry leaves it with another
    /// status than the one that goes with its reason.
    pub status: Option<ConditionStatus>,
    /// `lastTransitionTime` of the condition.
    pub since: Time,
    /// `Stalled` is true beside it.
    pub stalled: bool,
}

impl WrittenAnswer {
    /// Is the condition's status the one that goes with its reason?
    pub(crate) fn is_untampered(&self) -> bool {
        self.status == Some(self.reason.condition_status())
    }
}
