//! The answer of one policy as it is read from a parent.

use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};

use crate::evidence::{HandledEvidence, ReportedFailure};
use crate::ids::{PolicyId, SelectorId};

/// Current answer of one policy on a parent.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts as they were read, each of its own; no state of ours"
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerView {
    /// The policy.
    pub policy: PolicyId,
    /// Rollcall's conditions for that policy as last read; `None` if there are none.
    pub written: Option<WrittenAnswer>,
    /// The condition is about the current generation, the one of [`crate::ParentView::generation`].
    pub is_about_generation: bool,
    /// Another client owns the condition type and there is no fallback: do not write.
    pub owned_by_other: bool,
    /// A template of the policy could not be rendered for this parent.
    pub template_failed: bool,
    /// No `Stalled` is written beside the condition: it goes with `Ready` alone, or another client has it.
    pub stalled_unrecorded: bool,
    /// What few parents have.
    pub extras: Option<Box<AnswerExtras>>,
}

// The reflector and the engine each hold one per parent and policy.
const _: () = assert!(size_of::<AnswerView>() <= 32);

/// What few parents have under a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerExtras {
    /// Selectors of the parent, for groups that are found by labels.
    pub selects: Vec<SelectorId>,
    /// Expected names with their group: hashes as in [`crate::ObjectView::name`].
    pub expects: Vec<(u8, u64)>,
    /// Minimum number of children by group, computed by the policy from this parent.
    pub counts: Vec<(u8, u32)>,
    /// Time from which its deletion counts as stuck; `None` if it is not being deleted, or nothing limits that.
    pub deletion_stuck_at: Option<Time>,
    /// Failure that its own status reports, where the policy heeds that.
    pub reported_failure: ReportedFailure,
}

impl AnswerExtras {
    /// Boxes the data; `None` if all of it is empty.
    pub fn into_boxed(mut self) -> Option<Box<AnswerExtras>> {
        self.selects.shrink_to_fit();
        self.expects.shrink_to_fit();
        self.counts.shrink_to_fit();
        (self != AnswerExtras::default()).then(|| Box::new(self))
    }
}

impl AnswerView {
    /// Returns the failure that the parent's own status reports, where the policy heeds that.
    pub fn reported_failure(&self) -> ReportedFailure {
        self.extras.as_ref().map_or(ReportedFailure::None, |extras| extras.reported_failure)
    }

    /// Evidence that the generation was handled, of a parent whose operator leaves this evidence. A failure of the generation before
    /// its operator has turned to this one is none of this one.
    pub(crate) fn evidence(&self, left: HandledEvidence) -> HandledEvidence {
        use HandledEvidence::{Failed, GivenUp, NotYet};
        match (left, self.reported_failure()) {
            (NotYet | Failed | GivenUp, _) | (_, ReportedFailure::None | ReportedFailure::Unattributed) => {
                left
            }
            (_, ReportedFailure::Temporary) => Failed,
            (_, ReportedFailure::Final) => GivenUp,
        }
    }

    /// Returns the selectors of the parent.
    pub fn selects(&self) -> &[SelectorId] {
        self.extras.as_ref().map_or(&[], |extras| &extras.selects)
    }

    pub(crate) fn expects(&self) -> &[(u8, u64)] {
        self.extras.as_ref().map_or(&[], |extras| &extras.expects)
    }

    pub(crate) fn counts(&self) -> &[(u8, u32)] {
        self.extras.as_ref().map_or(&[], |extras| &extras.counts)
    }

    /// What the condition says of this generation, unless somebody has tampered with it.
    pub(crate) fn told(&self) -> Option<WrittenAnswer> {
        self.written.filter(|told| self.is_about_generation && told.is_untampered())
    }

    /// It says True of this generation.
    pub(crate) fn says_true(&self) -> bool {
        self.told().is_some_and(|told| told.status == Some(ConditionStatus::True))
    }

    pub(crate) fn deletion_stuck_at(&self) -> Option<Time> {
        self.extras.as_ref()?.deletion_stuck_at
    }
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
