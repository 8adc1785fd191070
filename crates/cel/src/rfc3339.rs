//! Parses timestamps as the API server writes them, as leniently as Go's `time.Parse`.

use crate::calendar::{days_in_month, days_since_epoch};

/// Parses `text` to nanoseconds since 1970; `None` if Go would not parse it.
pub fn parse_nanos(text: &str) -> Option<i128> {
    let (date, clock) = text.split_once('T')?;
    let mut date = date.split('-');
    let (year, month, day) = (
        parse_digits(date.next()?, 4, 4)?,
        parse_digits(date.next()?, 2, 2)?,
        parse_digits(date.next()?, 2, 2)?,
    );
    if date.next().is_some() || !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let (clock, offset_minutes) = split_zone(clock)?;
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (parse_digits(clock.next()?, 1, 2)?, parse_digits(clock.next()?, 2, 2)?);
    let (second, nanos) = parse_seconds(clock.next()?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let minutes = (days_since_epoch(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    Some(i128::from(minutes * 60 + second) * 1_000_000_000 + i128::from(nanos))
}

fn parse_digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

fn parse_seconds(text: &str) -> Option<(i64, i64)> {
    let Some((whole, fraction)) = text.split_once(['.', ',']) else {
        return Some((parse_digits(text, 2, 2)?, 0));
    };
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{fraction:0<9}");
    Some((parse_digits(whole, 2, 2)?, parse_digits(&nanos[..9], 9, 9)?))
}

fn split_zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (hours, minutes) = text[at + 1..].split_once(':')?;
    let (hours, minutes) = (parse_digits(hours, 2, 2)?, parse_digits(minutes, 2, 2)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    let sign = if text.as_bytes()[at] == b'-' { -1 } else { 1 };
    Some((&text[..at], sign * (hours * 60 + minutes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_with_zone_and_fraction() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T12:30:45Z", 1_709_209_845_000),
            ("2024-02-29T12:30:45.678901Z", 1_709_209_845_678),
            ("2024-02-29T14:30:45+02:00", 1_709_209_845_000),
            ("1969-12-31T23:59:59Z", -1000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ] {
            assert_eq!(parse_nanos(text).map(|nanos| nanos.div_euclid(1_000_000)), Some(millis), "{text}");
        }
    }

    #[test]
    fn what_go_would_not_parse_is_no_moment() {
        for text in [
            "",
            "yesterday",
            "2024-02-30T00:00:00Z",
            "2024-01-01",
            "2024-01-01T25:00:00Z",
            "2024-01-01T00:00:00",
        ] {
            assert_eq!(parse_nanos(text), None, "{text}");
        }
    }
}
