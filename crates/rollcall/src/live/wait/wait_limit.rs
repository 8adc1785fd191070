//! How long is waited.

use std::time::Duration;

use tokio::time::Instant;

/// Longest time that the cluster may take to answer where nothing is waited for but this answer. 30 s.
const SINGLE_LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// When a wait ends that has not come to its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitLimit {
    /// Time until which answers are awaited.
    pub(super) deadline: Instant,
    /// `true` if the first state that is seen is the answer.
    pub(super) is_single_look: bool,
}

impl WaitLimit {
    /// A wait of this length that begins now. As in `kubectl wait`, one of no length looks once.
    pub(super) fn begin(timeout: Duration) -> WaitLimit {
        let is_single_look = timeout.is_zero();
        let longest = if is_single_look { SINGLE_LOOK_TIMEOUT } else { timeout };
        WaitLimit { deadline: Instant::now() + longest, is_single_look }
    }
}
