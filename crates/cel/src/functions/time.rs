//! Timestamps and durations. Time zones are `UTC` and fixed offsets such as `+02:00`; zone names are not supported.

use rollcall_rfc3339::{CivilDate, parse_nanos};

use crate::cel_type::CelType::{Duration, Int, Text, Timestamp as MOMENT};
use crate::fault::EvalFault;
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::timestamp::{CelTimestamp, NANOS_PER_SECOND};
use crate::value::CelValue;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("timestamp", &[Text], MOMENT, convert_to_timestamp),
    global_function("timestamp", &[Int], MOMENT, convert_to_timestamp),
    global_function("timestamp", &[MOMENT], MOMENT, convert_to_timestamp),
    global_function("duration", &[Text], Duration, convert_to_duration),
    global_function("duration", &[Duration], Duration, convert_to_duration),
    member_function("getFullYear", &[MOMENT], Int, |_, args| timestamp_part(args, |c| c.year)),
    member_function("getFullYear", &[MOMENT, Text], Int, |_, args| timestamp_part(args, |c| c.year)),
    member_function("getMonth", &[MOMENT], Int, |_, args| timestamp_part(args, |c| c.month - 1)),
    member_function("getMonth", &[MOMENT, Text], Int, |_, args| timestamp_part(args, |c| c.month - 1)),
    member_function("getDayOfMonth", &[MOMENT], Int, |_, args| timestamp_part(args, |c| c.day - 1)),
    member_function("getDayOfMonth", &[MOMENT, Text], Int, |_, args| timestamp_part(args, |c| c.day - 1)),
    member_function("getDate", &[MOMENT], Int, |_, args| timestamp_part(args, |c| c.day)),
    member_function("getDate", &[MOMENT, Text], Int, |_, args| timestamp_part(args, |c| c.day)),
    member_function("getDayOfYear", &[MOMENT], Int, |_, args| timestamp_part(args, CivilDate::day_of_year)),
    member_function("getDayOfYear", &[MOMENT, Text], Int, |_, args| {
        timestamp_part(args, CivilDate::day_of_year)
    }),
    member_function("getDayOfWeek", &[MOMENT], Int, |_, args| timestamp_part(args, CivilDate::day_of_week)),
    member_function("getDayOfWeek", &[MOMENT, Text], Int, |_, args| {
        timestamp_part(args, CivilDate::day_of_week)
    }),
    member_function("getHours", &[MOMENT], Int, |_, args| timestamp_part(args, CivilDate::hour)),
    member_function("getHours", &[MOMENT, Text], Int, |_, args| timestamp_part(args, CivilDate::hour)),
    member_function("getMinutes", &[MOMENT], Int, |_, args| timestamp_part(args, CivilDate::minute_of_hour)),
    member_function("getMinutes", &[MOMENT, Text], Int, |_, args| {
        timestamp_part(args, CivilDate::minute_of_hour)
    }),
    member_function("getSeconds", &[MOMENT], Int, |_, args| {
        timestamp_part(args, CivilDate::second_of_minute)
    }),
    member_function("getSeconds", &[MOMENT, Text], Int, |_, args| {
        timestamp_part(args, CivilDate::second_of_minute)
    }),
    member_function("getMilliseconds", &[MOMENT], Int, |_, args| timestamp_millis(args)),
    member_function("getMilliseconds", &[MOMENT, Text], Int, |_, args| timestamp_millis(args)),
    member_function("getHours", &[Duration], Int, |_, args| duration_part(args, 3_600_000_000_000)),
    member_function("getMinutes", &[Duration], Int, |_, args| duration_part(args, 60_000_000_000)),
    member_function("getSeconds", &[Duration], Int, |_, args| duration_part(args, NANOS_PER_SECOND)),
    member_function("getMilliseconds", &[Duration], Int, |_, args| duration_part(args, 1_000_000)),
];

fn convert_to_timestamp<'t>(
    _: &CelCallContext<'_>,
    args: &[CelValue<'t>],
) -> Result<CelValue<'t>, EvalFault> {
    let moment = match args {
        [value @ CelValue::Timestamp(_)] => return Ok(value.clone()),
        [CelValue::Int(seconds)] => {
            CelTimestamp::from_nanos(i128::from(*seconds) * i128::from(NANOS_PER_SECOND))
        }
        [CelValue::Text(text)] => parse_nanos(text).and_then(CelTimestamp::from_nanos),
        _ => return Err(argument_mismatch(args)),
    };
    moment.map(CelValue::Timestamp).ok_or_else(|| EvalFault::from_message("no timestamp"))
}

fn convert_to_duration<'t>(
    cx: &CelCallContext<'_>,
    args: &[CelValue<'t>],
) -> Result<CelValue<'t>, EvalFault> {
    match args {
        [value @ CelValue::Duration(_)] => Ok(value.clone()),
        [CelValue::Text(text)] => {
            cx.meter.charge_read(8 * text.len())?;
            parse_duration(text).map(CelValue::Duration).ok_or_else(|| EvalFault::from_message("no duration"))
        }
        _ => Err(argument_mismatch(args)),
    }
}

/// Parses `1h30m` or `-1.5s`, as Go's `time.ParseDuration`.
fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0i128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 30 {
            return None;
        }
        let digits = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<i128>().ok() };
        let fraction = &fraction[..fraction.len().min(15)];
        let scale = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        total = total.checked_add(digits(whole)?.checked_mul(unit)?)?;
        total = total.checked_add(digits(fraction)?.checked_mul(unit)? / scale)?;
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Formats a duration as CEL does: seconds with as many decimals as needed.
#[expect(clippy::cast_possible_truncation, reason = "a remainder below 10^9")]
pub(super) fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!(
        "{sign}{}{}s",
        nanos / NANOS_PER_SECOND as u64,
        format_fraction((nanos % NANOS_PER_SECOND as u64) as u32)
    )
}

pub(super) fn format_timestamp(moment: CelTimestamp) -> String {
    let c = CivilDate::from_seconds(moment.seconds);
    let (hour, minute, second) = (c.hour(), c.minute_of_hour(), c.second_of_minute());
    let fraction = format_fraction(moment.nanos);
    format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", c.year, c.month, c.day)
}

fn format_fraction(nanos: u32) -> String {
    if nanos == 0 {
        return String::new();
    }
    let digits = format!(".{nanos:09}");
    digits.trim_end_matches('0').to_owned()
}

/// Returns the timestamp among the arguments and the offset of its zone.
fn timestamp_argument(args: &[CelValue<'_>]) -> Result<(CelTimestamp, i64), EvalFault> {
    match args {
        [CelValue::Timestamp(moment)] => Ok((*moment, 0)),
        [CelValue::Timestamp(moment), CelValue::Text(zone)] => Ok((*moment, zone_offset(zone)?)),
        _ => Err(argument_mismatch(args)),
    }
}

fn timestamp_part<'t>(args: &[CelValue<'t>], read: fn(&CivilDate) -> i64) -> Result<CelValue<'t>, EvalFault> {
    let (moment, offset) = timestamp_argument(args)?;
    Ok(CelValue::Int(read(&CivilDate::from_seconds(moment.seconds + offset))))
}

fn timestamp_millis<'t>(args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let (moment, _) = timestamp_argument(args)?;
    Ok(CelValue::Int(i64::from(moment.nanos / 1_000_000)))
}

/// Returns the offset of a zone in seconds east of Greenwich.
fn zone_offset(zone: &str) -> Result<i64, EvalFault> {
    let unknown = || EvalFault::from_message("the string is no time zone: UTC or an offset such as +02:00");
    if matches!(zone, "" | "UTC" | "Z") {
        return Ok(0);
    }
    let (sign, clock) = match zone.as_bytes().first() {
        Some(b'-') => (-1, &zone[1..]),
        Some(b'+') => (1, &zone[1..]),
        _ => (1, zone),
    };
    let (hours, minutes) = clock.split_once(':').ok_or_else(unknown)?;
    match (hours.parse::<i64>(), minutes.parse::<i64>()) {
        (Ok(hours @ 0..24), Ok(minutes @ 0..60)) => Ok(sign * (hours * 3600 + minutes * 60)),
        _ => Err(unknown()),
    }
}

fn duration_part<'t>(args: &[CelValue<'t>], unit: i64) -> Result<CelValue<'t>, EvalFault> {
    match args {
        [CelValue::Duration(nanos)] => Ok(CelValue::Int(nanos / unit)),
        _ => Err(argument_mismatch(args)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("0", Some(0)),
            (".5ms", Some(500_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("1d", None),
            ("300000h", Some(1_080_000_000_000_000_000)),
            ("3000000h", None),
        ] {
            assert_eq!(parse_duration(text), nanos, "{text}");
        }
    }

    #[test]
    fn moments_are_written_as_they_were_read() {
        for text in ["2024-02-29T12:30:45.123456789Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.5Z"] {
            let moment = parse_nanos(text).and_then(CelTimestamp::from_nanos).unwrap();
            assert_eq!(format_timestamp(moment), text);
        }
    }
}
