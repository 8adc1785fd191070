//! `os.time` and `os.date` as Argo CD provides them, in UTC and at the time of the evaluation.

use std::cell::Cell;

use mlua::{Lua, Table, Value};
use readiness::Time;
use rollcall_rfc3339::{CivilDate, days_since_epoch};

/// Longest format of `os.date`, in bytes. Each code of two may become some twenty.
pub(super) const MAX_DATE_FORMAT_BYTES: usize = 1024;

/// Longest text of a number in a date's table, in bytes.
const MAX_NUMBER_BYTES: usize = 64;

const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAY_NAMES: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The time of an evaluation, and whether its script asked for it: what it says may be something else a moment later.
#[derive(Default)]
pub(super) struct ScriptClock {
    now: Cell<Time>,
    was_read: Cell<bool>,
}

impl ScriptClock {
    /// Begins an evaluation at this time.
    pub(super) fn start(&self, now: Time) {
        self.now.set(now);
        self.was_read.set(false);
    }

    /// Returns `true` if the script asked for the time since the evaluation began.
    pub(super) fn was_read(&self) -> bool {
        self.was_read.get()
    }

    fn read_seconds(&self) -> f64 {
        self.was_read.set(true);
        lua_number(self.now.get().0.div_euclid(1000))
    }
}

/// Converts whole seconds, or a part of a date, to Lua's number.
#[expect(clippy::cast_precision_loss, reason = "rounded above 2^53 only, far outside any date")]
fn lua_number(whole: i64) -> f64 {
    whole as f64
}

/// Converts Lua's number to a whole one, as Go's `int64(x)` within its range. Anything else saturates.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn whole_number(number: f64) -> i64 {
    number as i64
}

/// Returns seconds since the epoch: of now, or of a table's fields, which may be outside their usual ranges.
pub(super) fn os_time(clock: &ScriptClock, fields: Option<&Table>) -> mlua::Result<f64> {
    let Some(fields) = fields else { return Ok(clock.read_seconds()) };
    let field = |name: &str, otherwise: i64| -> mlua::Result<i64> {
        Ok(match fields.raw_get::<Value>(name)? {
            Value::Integer(number) => number,
            Value::Number(number) => whole_number(number),
            Value::String(text) if text.as_bytes().len() <= MAX_NUMBER_BYTES => {
                text.to_str()?.trim().parse().unwrap_or(otherwise)
            }
            _ => otherwise,
        })
    };
    // Bounds far outside any date, so that the arithmetic cannot overflow.
    let bounded = |value: i64| value.clamp(-1_000_000_000, 1_000_000_000);
    let month = bounded(field("month", -1)?) - 1;
    let year = bounded(field("year", -1)?) + month.div_euclid(12);
    let days = days_since_epoch(year, month.rem_euclid(12) + 1, 1) + bounded(field("day", -1)?) - 1;
    let hours = days * 24 + bounded(field("hour", 12)?);
    Ok(lua_number((hours * 60 + bounded(field("min", 0)?)) * 60 + bounded(field("sec", 0)?)))
}

/// Formats the component that a code names.
fn format_part(date: &CivilDate, code: char) -> Option<String> {
    let month = *MONTH_NAMES.get(usize::try_from(date.month - 1).ok()?)?;
    let day = *DAY_NAMES.get(usize::try_from(date.day_of_week()).ok()?)?;
    let hour12 = if date.hour() % 12 == 0 { 12 } else { date.hour() % 12 };
    let noon = if date.hour() < 12 { "AM" } else { "PM" };
    Some(match code {
        // Argo CD's own table really maps `%a` to this word.
        'a' => "mon".to_owned(),
        'A' => day.to_owned(),
        'b' => month[..3].to_owned(),
        'B' => month.to_owned(),
        'c' => format!(
            "{:02} {} {:02} {:02}:{:02} UTC",
            date.day,
            &month[..3],
            date.year % 100,
            date.hour(),
            date.minute_of_hour()
        ),
        'd' => format!("{:02}", date.day),
        'F' => format!("{:04}-{:02}-{:02}", date.year, date.month, date.day),
        'H' => format!("{:02}", date.hour()),
        'I' => format!("{hour12:02}"),
        'm' => format!("{:02}", date.month),
        'M' => format!("{:02}", date.minute_of_hour()),
        'p' => noon.to_owned(),
        'P' => noon.to_lowercase(),
        'S' => format!("{:02}", date.second_of_minute()),
        'w' => date.day_of_week().to_string(),
        'x' => format!("{:02}/{:02}/{:02}", date.hour(), date.minute_of_hour(), date.second_of_minute()),
        'X' => format!("{:02}:{:02}:{:02}", date.hour(), date.minute_of_hour(), date.second_of_minute()),
        'y' => format!("{:02}", date.year % 100),
        'Y' => format!("{:04}", date.year),
        'z' => "+0000".to_owned(),
        'Z' => "UTC".to_owned(),
        _ => return None,
    })
}

/// Returns a date as a table or as text; without `at`, that of now.
pub(super) fn os_date(
    lua: &Lua,
    clock: &ScriptClock,
    format: Option<&str>,
    at: Option<f64>,
) -> mlua::Result<Value> {
    let format = format.unwrap_or("%c").trim_start_matches('!');
    // Go's zero time and the end of the year 9999: no date of an object is outside.
    let seconds = at.unwrap_or_else(|| clock.read_seconds()).clamp(-62_135_596_800.0, 253_402_300_799.0);
    let date = CivilDate::from_seconds(whole_number(seconds));
    if !format.starts_with("*t") {
        return Ok(Value::String(lua.create_string(render_date(&date, format))?));
    }
    let table = lua.create_table()?;
    for (name, value) in [
        ("year", date.year),
        ("month", date.month),
        ("day", date.day),
        ("hour", date.hour()),
        ("min", date.minute_of_hour()),
        ("sec", date.second_of_minute()),
        ("wday", date.day_of_week() + 1),
        ("yday", 0),
    ] {
        table.raw_set(name, lua_number(value))?;
    }
    table.raw_set("isdst", false)?;
    Ok(Value::Table(table))
}

fn render_date(date: &CivilDate, format: &str) -> String {
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('%')) => {
                chars.next();
                out.push('%');
            }
            ('%', Some(code)) => {
                match format_part(date, *code) {
                    Some(part) => out.push_str(&part),
                    None => out.extend(['%', *code]),
                }
                chars.next();
            }
            (c, _) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_709_209_845_000);

    #[test]
    fn a_date_survives_the_way_there_and_back() {
        let lua = Lua::new();
        let fields = lua.create_table().unwrap();
        for (name, value) in
            [("year", 2024), ("month", 2), ("day", 29), ("hour", 12), ("min", 30), ("sec", 45)]
        {
            fields.raw_set(name, value).unwrap();
        }
        assert_eq!(whole_number(os_time(&ScriptClock::default(), Some(&fields)).unwrap()), NOW.0 / 1000);
        assert_eq!(
            render_date(&CivilDate::from_seconds(NOW.0 / 1000), "%Y-%m-%dT%H:%M:%S%% %A %q"),
            "2024-02-29T12:30:45% Thursday %q"
        );
    }

    #[test]
    fn fields_beyond_their_range_carry_over() {
        let lua = Lua::new();
        let fields = lua.create_table().unwrap();
        for (name, value) in [("year", "2023"), ("month", "14"), ("day", "29")] {
            fields.raw_set(name, value).unwrap();
        }
        assert_eq!(whole_number(os_time(&ScriptClock::default(), Some(&fields)).unwrap()), 1_709_208_000);
    }
}
