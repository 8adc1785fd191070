//! Timestamps in the format of the API server.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Milliseconds since the Unix epoch. Always passed in, never read from a clock in this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// Prints RFC 3339 in whole seconds, like the API server. A time outside the years 0 to 9999 is clamped to the first or
/// last second of that range.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000).clamp(FIRST_PRINTABLE_SECOND, LAST_PRINTABLE_SECOND);
        let (days, second) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
        let (year, month, day) = civil_date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Seconds per day.
const SECONDS_PER_DAY: i64 = 86_400;
/// First second of the year 0 and last second of the year 9999.
const FIRST_PRINTABLE_SECOND: i64 = -62_167_219_200;
const LAST_PRINTABLE_SECOND: i64 = 253_402_300_799;
/// Days in 400 years, after which the Gregorian calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;

/// Returns year, month and day of the Gregorian calendar for a number of days after 1970-01-01. Years are counted from
/// March, so that the leap day is the last day of a year.
const fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / (DAYS_PER_ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + late, month, day)
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
    fn a_moment_reads_as_the_api_server_writes_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (i64::MIN / 1_000, "0000-01-01T00:00:00Z"),
            (i64::MAX / 1_000, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Time(seconds * 1_000).to_string(), text);
        }
    }
}
