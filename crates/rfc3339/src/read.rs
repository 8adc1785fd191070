//! Reads timestamps, as leniently as Go's `time.Parse`. Allocates nothing: each object of a watch has several.

use super::calendar::{days_in_month, days_since_epoch};

/// Parses `text` to milliseconds since 1970, rounded down; `None` if Go would not parse it.
pub fn parse_millis(text: &str) -> Option<i64> {
    let (seconds, nanos) = parse_parts(text.as_bytes())?;
    Some(seconds * 1_000 + nanos / 1_000_000)
}

/// Parses `text` to nanoseconds since 1970; `None` if Go would not parse it.
pub fn parse_nanos(text: &str) -> Option<i128> {
    let (seconds, nanos) = parse_parts(text.as_bytes())?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}

/// Seconds since 1970, and nanoseconds after that.
fn parse_parts(text: &[u8]) -> Option<(i64, i64)> {
    let [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2, b'T', clock @ ..] = text else { return None };
    let year = two_digits(*y1, *y2)? * 100 + two_digits(*y3, *y4)?;
    let (month, day) = (two_digits(*mo1, *mo2)?, two_digits(*d1, *d2)?);
    if !(1..=12).contains(&month) || day < 1 || (day > 28 && day > days_in_month(year, month)) {
        return None;
    }
    let (hour, clock) = match clock {
        [digit, b':', rest @ ..] => (two_digits(b'0', *digit)?, rest),
        [h1, h2, b':', rest @ ..] => (two_digits(*h1, *h2)?, rest),
        _ => return None,
    };
    let [mi1, mi2, b':', s1, s2, rest @ ..] = clock else { return None };
    let (minute, second) = (two_digits(*mi1, *mi2)?, two_digits(*s1, *s2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, zone) = parse_fraction(rest)?;
    let days = days_since_epoch(year, month, day);
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - parse_offset(zone)?;
    Some((seconds, nanos))
}

fn two_digits(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

/// Parses the fraction; returns nanoseconds, cut off after nine digits, and the remaining text.
fn parse_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else { return Some((0, text)) };
    let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let digits = rest[..length].iter().copied().chain(std::iter::repeat(b'0')).take(9);
    let nanos = digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    (length > 0).then(|| (nanos, &rest[length..]))
}

/// Parses the offset; returns seconds east of UTC.
fn parse_offset(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (two_digits(*h1, *h2)?, two_digits(*m1, *m2)?);
            let seconds = hours * 3_600 + minutes * 60;
            let signed = if *sign == b'-' { -seconds } else { seconds };
            (hours <= 24 && minutes <= 60).then_some(signed)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use super::*;

    #[test]
    fn moments_are_read_with_zone_and_fraction() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T12:30:45Z", 1_709_209_845_000),
            ("2024-02-29T12:30:45.678901Z", 1_709_209_845_678),
            ("2024-02-29T14:30:45+02:00", 1_709_209_845_000),
            ("2024-02-29T2:30:45,5-10:00", 1_709_209_845_500),
            ("1969-12-31T23:59:59Z", -1000),
            ("1969-12-31T23:59:59.9999Z", -1),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ] {
            assert_eq!(parse_millis(text), Some(millis), "{text}");
        }
    }

    #[test]
    fn it_reads_what_a_calendar_reads() {
        for text in [
            "1970-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2024-02-29T12:34:56Z",
            "2026-08-14T09:12:33.5Z",
            "2026-08-14T09:12:33.123456Z",
            "2026-08-14T09:12:33.123456789123Z",
            "2100-03-01T00:00:00+02:30",
            "2026-12-31T23:59:59.9-11:00",
        ] {
            let expected =
                text.replace("789123Z", "789Z").parse::<jiff::Timestamp>().unwrap().as_nanosecond();
            assert_eq!(parse_nanos(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_go_would_not_parse_is_no_moment() {
        for text in [
            "",
            "yesterday",
            "2024-02-30T00:00:00Z",
            "2026-02-31T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2024-01-01",
            "2026-08-14",
            "2024-01-01T25:00:00Z",
            "2026-08-14T09:12:60Z",
            "2026-08-14 09:12:33Z",
            "2026-08-14t09:12:33z",
            "2024-01-01T00:00:00",
            "2026-08-14T09:12:33.Z",
            "20é6-08-14T09:12:33Z",
        ] {
            assert_eq!(parse_nanos(text), None, "{text}");
        }
    }
}
