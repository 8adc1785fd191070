//! Time limits of progress and of deletion.

use std::time::Duration;

/// Time limits after which an object counts as stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StuckLimits {
    /// Longest time from creation until the object is scheduled, bound or has an address.
    pub pending: Duration,
    /// Longest time without a change of a workload that its controller is still at work on.
    pub progress: Duration,
    /// Longest time from the deletion request until the object is gone.
    pub terminating: Duration,
}

impl Default for StuckLimits {
    fn default() -> Self {
        let ten_minutes = Duration::from_secs(600);
        StuckLimits { pending: ten_minutes, progress: ten_minutes, terminating: ten_minutes }
    }
}
