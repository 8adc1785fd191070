//! Phase of a parent's generation.

use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};

use crate::types::WrittenAnswer;

/// Phase of a parent's generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GenerationPhase {
    /// Generation that this phase is about.
    pub(crate) generation: u64,
    /// Time at which the generation was first observed.
    pub(crate) since: Time,
    /// Time at which this process first observed the generation; `since` may lie before it.
    pub(crate) observed_at: Time,
    /// A mark that a failure leaves too is no proof: somebody was there to see a child move for this generation. The first
    /// one is proven by its children, and what nobody saw begin is taken as it is found.
    pub(crate) awaits_proof: bool,
    /// Time since which the parent has been not ready under this generation: its start, or when it was last ready.
    pub(crate) unready_since: Time,
    /// The parent carries a condition about this generation: the first write has arrived.
    pub(crate) announced: bool,
    /// The operator has handled the generation: children may be evaluated.
    pub(crate) handled: bool,
    /// No condition existed for the generation when it was first observed, and it has not been reported ready since.
    pub(crate) fresh: bool,
}

impl GenerationPhase {
    /// Creates the phase of a generation that is first observed at `now`, with the condition `told` already on the
    /// parent.
    ///
    /// The condition survives a restart, but its age does not always: `lastTransitionTime` changes with the status
    /// alone, so an Unknown may be older than its generation. True and False cannot be older: the first condition of a
    /// generation is Unknown. A limit that was exceeded stays exceeded, and no other counts as exceeded. Where
    /// somebody turned the status, nobody knows what the moment beside it is of.
    pub(crate) fn new(generation: u64, now: Time, told: Option<WrittenAnswer>) -> GenerationPhase {
        let dates = |t: &WrittenAnswer| {
            t.is_untampered()
                && implies_handled(t.reason)
                && t.reason.condition_status() != ConditionStatus::Unknown
        };
        let since = match told {
            Some(WrittenAnswer {
                reason: ParentReason::OperatorSilent | ParentReason::DeadlineExceeded,
                ..
            }) => Time::default(),
            Some(told) if dates(&told) => told.since.min(now),
            _ => now,
        };
        let handled = told.is_some_and(|t| implies_handled(t.reason));
        GenerationPhase {
            generation,
            since,
            observed_at: now,
            awaits_proof: told.is_some_and(|t| awaits_operator(t.reason)) && generation > 1,
            unready_since: since,
            announced: false,
            handled,
            fresh: told.is_none(),
        }
    }
}

/// Returns `true` if this reason says that the operator is waited for, or failed.
fn awaits_operator(reason: ParentReason) -> bool {
    matches!(
        reason,
        ParentReason::ChildrenPending | ParentReason::OperatorSilent | ParentReason::OperatorFailed
    )
}

/// Returns `true` if this reason is reported only for a generation that its operator has handled.
fn implies_handled(reason: ParentReason) -> bool {
    !matches!(
        reason,
        ParentReason::ChildrenPending
            | ParentReason::OperatorSilent
            | ParentReason::OperatorFailed
            | ParentReason::DeadlineExceeded
            | ParentReason::TemplateFailed
            | ParentReason::RuleChanged
            | ParentReason::Terminating
    )
}
