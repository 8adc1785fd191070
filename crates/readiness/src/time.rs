//! A moment as the API server writes it.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Milliseconds since the Unix epoch. Always given, never read from a clock in this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// As the API server writes it: RFC 3339 in whole seconds. What its four digits for a year cannot say is their first or last.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000).clamp(FIRST, LAST);
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Seconds of a day.
const DAY: i64 = 86_400;
/// The first second of the year 0 and the last of 9999.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;
/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01. Years are counted from March, so that the
/// day that may be missing is the last of a year.
const fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + late, month, day)
}

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

#[cfg(test)]
mod tests {
    use super::*;

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
