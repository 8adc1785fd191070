//! Timestamps in the format of the API server.

use readiness::Time;

/// Parses RFC 3339: `2026-08-14T09:12:33Z`, with a fraction or an offset too.
pub(super) fn parse_rfc3339(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    let separated = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't' | b' ')
        && bytes[13] == b':'
        && bytes[16] == b':';
    if !separated {
        return None;
    }
    let (year, month, day) =
        (parse_digits(&bytes[..4])?, parse_digits(&bytes[5..7])?, parse_digits(&bytes[8..10])?);
    let (hour, minute, second) =
        (parse_digits(&bytes[11..13])?, parse_digits(&bytes[14..16])?, parse_digits(&bytes[17..19])?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = parse_fraction(&bytes[19..])?;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
        - parse_offset(zone)?;
    Some(Time(seconds * 1_000 + millis))
}

fn parse_digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

/// Parses the fraction; returns milliseconds and the remaining text.
fn parse_fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let scale = [0, 100, 10, 1];
    let millis = parse_digits(&rest[..length.min(3)])? * scale[length.min(3)];
    (length > 0).then(|| (millis, &rest[length..]))
}

/// Parses the offset; returns seconds east of UTC.
fn parse_offset(zone: &[u8]) -> Option<i64> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let seconds = parse_digits(&[*h1, *h2])? * 3_600 + parse_digits(&[*m1, *m2])? * 60;
            Some(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => None,
    }
}

/// Returns days since 1970-01-01 in the Gregorian calendar, with years that begin in March so that leap days come last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_a_calendar_reads() {
        for text in [
            "1970-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2024-02-29T12:34:56Z",
            "2026-08-14T09:12:33.5Z",
            "2026-08-14T09:12:33.123456Z",
            "2100-03-01T00:00:00+02:30",
            "2026-12-31T23:59:59.9-11:00",
        ] {
            let expected = text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
            assert_eq!(parse_rfc3339(text), Some(Time(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_absent() {
        for text in [
            "",
            "yesterday",
            "2026-08-14",
            "2026-13-01T00:00:00Z",
            "2026-08-14T09:12:33",
            "2026-08-14T09:12:33.Z",
            "20é6-08-14T09:12:33Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
