//! Timestamps as the API server writes them, read as leniently as Go's `time.Parse` reads them.

use readiness::Time;

/// The moment that `text` names, to the millisecond; `None` where Go would not parse it.
pub(crate) fn parse(text: &str) -> Option<Time> {
    nanos(text).and_then(|nanos| i64::try_from(nanos.div_euclid(1_000_000)).ok()).map(Time)
}

/// The same to the nanosecond, since 1970.
pub(crate) fn nanos(text: &str) -> Option<i128> {
    let (date, clock) = text.split_once('T')?;
    let mut date = date.split('-');
    let (year, month, day) =
        (digits(date.next()?, 4, 4)?, digits(date.next()?, 2, 2)?, digits(date.next()?, 2, 2)?);
    if date.next().is_some() || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let (clock, offset_minutes) = split_zone(clock)?;
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (digits(clock.next()?, 1, 2)?, digits(clock.next()?, 2, 2)?);
    let (second, nanos) = seconds(clock.next()?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let minutes = (days_since_epoch(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    Some(i128::from(minutes * 60 + second) * 1_000_000_000 + i128::from(nanos))
}

fn digits(text: &str, least: usize, most: usize) -> Option<i64> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

fn seconds(text: &str) -> Option<(i64, i64)> {
    let Some((whole, fraction)) = text.split_once(['.', ',']) else {
        return Some((digits(text, 2, 2)?, 0));
    };
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{fraction:0<9}");
    Some((digits(whole, 2, 2)?, digits(&nanos[..9], 9, 9)?))
}

fn split_zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (hours, minutes) = text[at + 1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2, 2)?, digits(minutes, 2, 2)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    let sign = if text.as_bytes()[at] == b'-' { -1 } else { 1 };
    Some((&text[..at], sign * (hours * 60 + minutes)))
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar.
pub(crate) fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Counting years from March puts the leap day last, so that no month needs a special case.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
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
            assert_eq!(parse(text), Some(Time(millis)), "{text}");
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
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
