//! Writes timestamps.

use std::fmt;

use super::calendar::CivilDate;

/// First second of the year 0 and last second of the year 9999.
const FIRST_PRINTABLE_SECOND: i64 = -62_167_219_200;
const LAST_PRINTABLE_SECOND: i64 = 253_402_300_799;

/// Milliseconds since 1970 that print as RFC 3339 in whole seconds, rounded down, like `metav1.Time`. A time outside the
/// years 0 to 9999 is clamped to the first or last second of that range.
#[derive(Clone, Copy, Debug)]
pub struct SecondsText(pub i64);

/// The same with milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct MillisText(pub i64);

impl fmt::Display for SecondsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_date(f, self.0)?;
        f.write_str("Z")
    }
}

impl fmt::Display for MillisText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_date(f, self.0)?;
        write!(f, ".{:03}Z", self.0.rem_euclid(1_000))
    }
}

fn write_date(f: &mut fmt::Formatter<'_>, millis: i64) -> fmt::Result {
    let seconds = millis.div_euclid(1_000).clamp(FIRST_PRINTABLE_SECOND, LAST_PRINTABLE_SECOND);
    let date = CivilDate::from_seconds(seconds);
    let (hour, minute, second) = (date.hour(), date.minute_of_hour(), date.second_of_minute());
    write!(f, "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}", date.year, date.month, date.day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_millis;

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
            assert_eq!(SecondsText(seconds * 1_000).to_string(), text);
        }
    }

    #[test]
    fn a_moment_survives_the_way_out_and_back() {
        for millis in [0, -1, 1_767_225_600_090, 951_782_399_999, -62_135_596_800_000] {
            assert_eq!(parse_millis(&MillisText(millis).to_string()), Some(millis));
            assert_eq!(
                parse_millis(&SecondsText(millis).to_string()),
                Some(millis.div_euclid(1_000) * 1_000)
            );
        }
        assert_eq!(MillisText(1_767_225_600_090).to_string(), "2026-01-01T00:00:00.090Z");
    }
}
