//! Timestamps in the format of the API server.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use rollcall_rfc3339::{MillisText, SecondsText};

/// Milliseconds since the Unix epoch. Always passed in, never read from a clock in this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// Parses RFC 3339, as leniently as the API server does.
    pub fn from_rfc3339(text: &str) -> Option<Time> {
        rollcall_rfc3339::parse_millis(text).map(Time)
    }

    /// Formats RFC 3339 with milliseconds.
    pub fn to_rfc3339_millis(self) -> String {
        MillisText(self.0).to_string()
    }
}

/// Prints RFC 3339 in whole seconds, like the API server. A time outside the years 0 to 9999 is clamped to the first or
/// last second of that range.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SecondsText(self.0).fmt(f)
    }
}

/// Converts a duration to milliseconds. One that does not fit is `i64::MAX`: later than everything else.
pub fn saturating_millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Converts milliseconds to seconds with decimals, as metrics and logs show them.
pub fn millis_to_seconds(millis: i64) -> f64 {
    Duration::from_millis(millis.unsigned_abs()).as_secs_f64() * if millis < 0 { -1.0 } else { 1.0 }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(saturating_millis(span)))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    /// Returns the duration since `earlier`; zero if this moment is not later.
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A time or none, in the room of a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OptionalTime(i64);

impl OptionalTime {
    /// No time. Stands for the earliest moment that there is, which is no moment of anything.
    pub const NONE: OptionalTime = OptionalTime(i64::MIN);

    /// Returns the time, if there is one.
    #[inline]
    pub fn get(self) -> Option<Time> {
        (self != OptionalTime::NONE).then_some(Time(self.0))
    }

    /// Returns `true` if there is a time.
    #[inline]
    pub fn is_some(self) -> bool {
        self != OptionalTime::NONE
    }

    /// Returns the time, which is `at` from now on if there was none.
    pub fn get_or_insert(&mut self, at: Time) -> Time {
        let time = self.get().unwrap_or(at);
        *self = time.into();
        time
    }
}

impl Default for OptionalTime {
    fn default() -> Self {
        OptionalTime::NONE
    }
}

impl From<Time> for OptionalTime {
    fn from(time: Time) -> Self {
        OptionalTime(time.0.max(i64::MIN + 1))
    }
}

impl From<Option<Time>> for OptionalTime {
    fn from(time: Option<Time>) -> Self {
        time.map_or(OptionalTime::NONE, OptionalTime::from)
    }
}

impl From<OptionalTime> for Option<Time> {
    fn from(time: OptionalTime) -> Self {
        time.get()
    }
}

impl fmt::Debug for OptionalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_beyond_every_date_is_the_latest_moment_and_never_an_early_one() {
        for (span, millis) in [
            (Duration::from_millis(1_500), 1_500),
            (Duration::from_secs(i64::MAX.unsigned_abs() / 1_000 + 1), i64::MAX),
            (Duration::MAX, i64::MAX),
        ] {
            assert_eq!(saturating_millis(span), millis, "{span:?}");
        }
        for (millis, seconds) in [(0, 0.0), (1_500, 1.5), (-250, -0.25)] {
            assert!((millis_to_seconds(millis) - seconds).abs() < f64::EPSILON, "{millis}");
        }
    }

    #[test]
    fn an_optional_time_is_the_time_that_it_was_made_of_or_none() {
        for time in [None, Some(Time(0)), Some(Time(-1)), Some(Time(i64::MIN + 1)), Some(Time(i64::MAX))] {
            let optional = OptionalTime::from(time);
            assert_eq!((optional.get(), optional.is_some()), (time, time.is_some()));
            assert_eq!(format!("{optional:?}"), format!("{time:?}"));
        }
        assert!(OptionalTime::from(Time(i64::MIN)).is_some(), "no moment is taken for none");
        let mut at = OptionalTime::default();
        assert_eq!((at.get_or_insert(Time(5)), at.get_or_insert(Time(9))), (Time(5), Time(5)));
    }

    #[test]
    fn a_moment_reads_as_the_api_server_writes_it() {
        assert_eq!(Time(951_782_400_999).to_string(), "2000-02-29T00:00:00Z");
        assert_eq!(Time(951_782_400_999).to_rfc3339_millis(), "2000-02-29T00:00:00.999Z");
    }
}
