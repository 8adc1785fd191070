//! What changes in a history besides objects.

/// What changes in a history besides objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryKind {
    /// Nothing.
    Still,
    /// Policies.
    ChangingPolicies,
    /// Policies, and the labels, scripts and ReadinessGroups by which they are resolved.
    ChangingResolution,
    /// Policies, of which another release has some, and which move between the two.
    SharedCluster,
}

impl HistoryKind {
    /// Returns `true` if policies change.
    pub(crate) fn changes_policies(self) -> bool {
        self != HistoryKind::Still
    }
}
