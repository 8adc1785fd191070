//! Moments and spans of time. Time zones are `UTC` and fixed offsets such as `+02:00`; names of places are not known.

use super::super::value::Ty::{Int, Moment as MOMENT, Span, Text};
use super::super::value::{Fault, Moment, Val};
use super::{Cx, Function, global, member, unfit};
use crate::rfc3339;

pub(super) const TABLE: &[Function] = &[
    global("timestamp", &[Text], MOMENT, timestamp),
    global("timestamp", &[Int], MOMENT, timestamp),
    global("timestamp", &[MOMENT], MOMENT, timestamp),
    global("duration", &[Text], Span, duration),
    global("duration", &[Span], Span, duration),
    member("getFullYear", &[MOMENT], Int, |_, args| part(args, |c| c.year)),
    member("getFullYear", &[MOMENT, Text], Int, |_, args| part(args, |c| c.year)),
    member("getMonth", &[MOMENT], Int, |_, args| part(args, |c| c.month - 1)),
    member("getMonth", &[MOMENT, Text], Int, |_, args| part(args, |c| c.month - 1)),
    member("getDayOfMonth", &[MOMENT], Int, |_, args| part(args, |c| c.day - 1)),
    member("getDayOfMonth", &[MOMENT, Text], Int, |_, args| part(args, |c| c.day - 1)),
    member("getDate", &[MOMENT], Int, |_, args| part(args, |c| c.day)),
    member("getDate", &[MOMENT, Text], Int, |_, args| part(args, |c| c.day)),
    member("getDayOfYear", &[MOMENT], Int, |_, args| part(args, Civil::day_of_year)),
    member("getDayOfYear", &[MOMENT, Text], Int, |_, args| part(args, Civil::day_of_year)),
    member("getDayOfWeek", &[MOMENT], Int, |_, args| part(args, |c| (c.days + 4).rem_euclid(7))),
    member("getDayOfWeek", &[MOMENT, Text], Int, |_, args| part(args, |c| (c.days + 4).rem_euclid(7))),
    member("getHours", &[MOMENT], Int, |_, args| part(args, |c| c.second / 3600)),
    member("getHours", &[MOMENT, Text], Int, |_, args| part(args, |c| c.second / 3600)),
    member("getMinutes", &[MOMENT], Int, |_, args| part(args, |c| c.second / 60 % 60)),
    member("getMinutes", &[MOMENT, Text], Int, |_, args| part(args, |c| c.second / 60 % 60)),
    member("getSeconds", &[MOMENT], Int, |_, args| part(args, |c| c.second % 60)),
    member("getSeconds", &[MOMENT, Text], Int, |_, args| part(args, |c| c.second % 60)),
    member("getMilliseconds", &[MOMENT], Int, |_, args| part(args, |c| c.nanos / 1_000_000)),
    member("getMilliseconds", &[MOMENT, Text], Int, |_, args| part(args, |c| c.nanos / 1_000_000)),
    member("getHours", &[Span], Int, |_, args| span(args, 3_600_000_000_000)),
    member("getMinutes", &[Span], Int, |_, args| span(args, 60_000_000_000)),
    member("getSeconds", &[Span], Int, |_, args| span(args, NANOS)),
    member("getMilliseconds", &[Span], Int, |_, args| span(args, 1_000_000)),
];

const NANOS: i64 = 1_000_000_000;

/// Seconds of the first moment of the year 1 and the last of the year 9999.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl Moment {
    /// `None` outside the years 1 to 9999.
    fn new(nanos: i128) -> Option<Moment> {
        let seconds = i64::try_from(nanos.div_euclid(i128::from(NANOS))).ok()?;
        let nanos = nanos.rem_euclid(i128::from(NANOS)) as u32;
        RANGE.contains(&seconds).then_some(Moment { seconds, nanos })
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos)
    }

    pub(in super::super) fn plus(self, span: i64) -> Result<Moment, Fault> {
        Moment::new(self.total() + i128::from(span)).ok_or_else(|| Fault::words("timestamp overflow"))
    }

    pub(in super::super) fn minus(self, span: i64) -> Result<Moment, Fault> {
        Moment::new(self.total() - i128::from(span)).ok_or_else(|| Fault::words("timestamp overflow"))
    }

    pub(in super::super) fn since(self, earlier: Moment) -> Result<i64, Fault> {
        i64::try_from(self.total() - earlier.total()).map_err(|_| Fault::words("duration overflow"))
    }
}

fn timestamp<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let moment = match args {
        [value @ Val::Moment(_)] => return Ok(value.clone()),
        [Val::Int(seconds)] => Moment::new(i128::from(*seconds) * i128::from(NANOS)),
        [Val::Text(text)] => rfc3339::nanos(text).and_then(Moment::new),
        _ => return Err(unfit(args)),
    };
    moment.map(Val::Moment).ok_or_else(|| Fault::words("no timestamp"))
}

fn duration<'t>(_: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    match args {
        [value @ Val::Span(_)] => Ok(value.clone()),
        [Val::Text(text)] => parse_span(text).map(Val::Span).ok_or_else(|| Fault::words("no duration")),
        _ => Err(unfit(args)),
    }
}

/// `1h30m`, `-1.5s`, as Go's `time.ParseDuration` reads it.
fn parse_span(text: &str) -> Option<i64> {
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

/// A span as CEL writes it: seconds, with as many places as it needs.
pub(super) fn span_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}{}s", nanos / NANOS as u64, fraction((nanos % NANOS as u64) as u32))
}

pub(super) fn moment_text(moment: Moment) -> String {
    let c = Civil::of(moment, 0);
    let (hour, minute, second) = (c.second / 3600, c.second / 60 % 60, c.second % 60);
    let fraction = fraction(moment.nanos);
    format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", c.year, c.month, c.day)
}

fn fraction(nanos: u32) -> String {
    if nanos == 0 {
        return String::new();
    }
    let digits = format!(".{nanos:09}");
    digits.trim_end_matches('0').to_owned()
}

/// A moment on the calendar.
struct Civil {
    /// Since 1970-01-01.
    days: i64,
    year: i64,
    month: i64,
    day: i64,
    /// Of the day.
    second: i64,
    nanos: i64,
}

impl Civil {
    fn of(moment: Moment, offset: i64) -> Civil {
        let seconds = moment.seconds + offset;
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Years from March on, as in `rfc3339`: the leap day comes last.
        let z = days + 719_468;
        let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil { days, year, month, day, second, nanos: i64::from(moment.nanos) }
    }

    fn day_of_year(&self) -> i64 {
        self.days - rfc3339::days_since_epoch(self.year, 1, 1)
    }
}

fn part<'t>(args: &[Val<'t>], read: fn(&Civil) -> i64) -> Result<Val<'t>, Fault> {
    let (moment, offset) = match args {
        [Val::Moment(moment)] => (moment, 0),
        [Val::Moment(moment), Val::Text(zone)] => (moment, offset(zone)?),
        _ => return Err(unfit(args)),
    };
    Ok(Val::Int(read(&Civil::of(*moment, offset))))
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Result<i64, Fault> {
    let unknown =
        || Fault::words(format!("unknown time zone {:?}", zone.chars().take(40).collect::<String>()));
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

fn span<'t>(args: &[Val<'t>], unit: i64) -> Result<Val<'t>, Fault> {
    match args {
        [Val::Span(nanos)] => Ok(Val::Int(nanos / unit)),
        _ => Err(unfit(args)),
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
            assert_eq!(parse_span(text), nanos, "{text}");
        }
    }

    #[test]
    fn moments_are_written_as_they_were_read() {
        for text in ["2024-02-29T12:30:45.123456789Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.5Z"] {
            let moment = rfc3339::nanos(text).and_then(Moment::new).unwrap();
            assert_eq!(moment_text(moment), text);
        }
    }
}
