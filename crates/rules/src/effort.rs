//! Measures the time that a rule takes.

use std::time::{Duration, Instant};

/// Runs `work` and returns its result with its wall time. The time is informational, not a part of the verdict.
#[expect(clippy::disallowed_methods, reason = "effort, no part of a verdict")]
pub fn measure_time<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}
