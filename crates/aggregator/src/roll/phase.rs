//! Where a parent's generation stands.

use readiness::Time;
use readiness::rollup::{ParentReason, Status};

use crate::types::Told;

/// Where a parent's generation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    /// Which generation this is about.
    pub(crate) generation: u64,
    /// When it was first seen.
    pub(crate) since: Time,
    /// Since when the parent has not been ready under it: since it began, or since it last stopped being so.
    pub(crate) unready: Time,
    /// The parent itself says something about this generation: the first word has arrived.
    pub(crate) announced: bool,
    /// Its operator has handled it: children may be judged.
    pub(crate) handled: bool,
    /// Nothing was said about it before it was first seen, and it has not been said to be ready since.
    pub(crate) fresh: bool,
}

impl Phase {
    /// Of a generation that is first seen `now`, where the parent says `told` about it already.
    ///
    /// What it says survives a restart, how long it has been so does not always: `lastTransitionTime` moves with the
    /// status alone, so that an Unknown may be older than the generation that it is about. True and False are not: the
    /// first word about a generation is Unknown. A limit that was passed stays passed, and no other is taken for passed.
    pub(crate) fn new(generation: u64, now: Time, told: Option<Told>) -> Phase {
        let since = match told.map(|t| (t.reason, t.since)) {
            Some((ParentReason::OperatorSilent | ParentReason::DeadlineExceeded, _)) => Time::default(),
            Some((reason, since)) if shows_handled(reason) && reason.status() != Status::Unknown => {
                since.min(now)
            }
            _ => now,
        };
        let handled = told.is_some_and(|t| shows_handled(t.reason));
        Phase { generation, since, unready: since, announced: false, handled, fresh: told.is_none() }
    }
}

/// Is this said only of a generation that its operator has handled?
fn shows_handled(reason: ParentReason) -> bool {
    !matches!(
        reason,
        ParentReason::ChildrenPending
            | ParentReason::OperatorSilent
            | ParentReason::DeadlineExceeded
            | ParentReason::TemplateFailed
            | ParentReason::RuleChanged
            | ParentReason::Terminating
    )
}
