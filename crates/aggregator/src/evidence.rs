//! What is known of how an operator has dealt with the current generation of a parent.

use std::time::Duration;

/// Evidence that the operator has handled the parent's current generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandledEvidence {
    /// The operator's mark says that it has handled it.
    Handled,
    /// The operator leaves marks, and they say that it has not handled it.
    NotYet,
    /// The operator leaves marks on its parents and none on this one: it has not handled it for the first time yet. A
    /// generation that was known to be handled stays so.
    Unmarked,
    /// Nothing shows it, and what Rollcall itself wrote about the generation before may have hidden the operator's equal
    /// word: quiet alone proves nothing, a child must have moved since the generation began.
    Masked,
    /// The operator's mark says that it has handled it, and would say the same had it failed: a child must have moved since the
    /// generation began, unless nobody was there to see it move.
    Unproven,
    /// A part of the operator's work on it failed for good; another part is still tried.
    Failed,
    /// The operator failed, and will not try this generation again.
    GivenUp,
    /// The operator leaves no marks.
    #[default]
    Silent,
}

/// Failure that the parent's own status reports, whoever wrote it there; what Rollcall wrote does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportedFailure {
    /// It reports none.
    #[default]
    None,
    /// It reports one that may be of an earlier generation: it counts once this one counts as handled.
    Unattributed,
    /// It reports one of this generation, which may pass.
    Temporary,
    /// It reports that this generation has failed for good.
    Final,
}

impl ReportedFailure {
    /// Longest time for which a True stands although the failure is reported: operators report errors that their next try mends.
    /// `None` where none is reported. 2 s of one that is final, else 10 s.
    pub const fn passes_within(self) -> Option<Duration> {
        match self {
            ReportedFailure::None => None,
            ReportedFailure::Final => Some(Duration::from_secs(2)),
            ReportedFailure::Unattributed | ReportedFailure::Temporary => Some(Duration::from_secs(10)),
        }
    }
}
