//! Timing: deadlines, the resync schedule of unready objects, debounce with a cap, backoff, and seeded jitter.
//!
//! Pure: a moment is any ordered type to which a duration can be added, chosen by the caller, and the only randomness
//! is a [`Seed`]. A simulator can therefore run hours in milliseconds, and a run can be replayed.

mod backoff;
mod deadlines;
mod debounce;
mod resync;
mod seed;

pub use backoff::Backoff;
pub use deadlines::{DeadlineQueue, earliest};
pub use debounce::{DebounceConfig, DebounceState};
pub use resync::{ResyncPace, ResyncSchedule};
pub use seed::Seed;

use std::ops::Add;
use std::time::Duration;

/// A moment: ordered, and a duration can be added to it. `std::time::Instant` is one, a count of milliseconds another.
pub trait TimePoint: Copy + Ord + Add<Duration, Output = Self> {}

impl<T: Copy + Ord + Add<Duration, Output = T>> TimePoint for T {}
