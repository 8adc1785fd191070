//! A moment as the API server writes it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Milliseconds since the Unix epoch. Always given, never read from a clock in this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    /// How long after `earlier` this is; zero where it is not after.
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
