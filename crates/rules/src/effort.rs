//! How long a rule takes.

use std::time::{Duration, Instant};

/// Does something, and says how long it took: a number to look at, no part of a verdict.
#[expect(clippy::disallowed_methods, reason = "effort, no part of a verdict")]
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}
