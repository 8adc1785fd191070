//! A rollout on its way to the history.

use readiness::Time;

use super::stored_line::HistoryEntry;

/// A rollout that ended, as a line of the history.
#[derive(Clone, Debug)]
pub(crate) struct RolloutLine {
    /// When it was read.
    pub(crate) at: Time,
    /// The line.
    pub(crate) entry: HistoryEntry,
}
