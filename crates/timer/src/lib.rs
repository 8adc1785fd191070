//! When: deadlines, the resync of what is not ready, debounce with a cap, backoff, and a seeded spread.
//!
//! Pure: a moment is whatever the caller says it is (any ordered type to which a span can be added), and the only
//! randomness is a [`Seed`]. So a simulator can run hours in milliseconds, and a run can be replayed.

mod backoff;
mod deadlines;
mod debounce;
mod resync;
mod seed;

pub use backoff::Backoff;
pub use deadlines::Deadlines;
pub use debounce::{Debounce, Touched};
pub use resync::Resync;
pub use seed::Seed;

use std::ops::Add;
use std::time::Duration;

/// A moment: ordered, and a span can be added to it. `std::time::Instant` is one, a count of milliseconds another.
pub trait Moment: Copy + Ord + Add<Duration, Output = Self> {}

impl<T: Copy + Ord + Add<Duration, Output = T>> Moment for T {}
