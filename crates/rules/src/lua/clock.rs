//! `os.time` and `os.date` as Argo CD offers them, in UTC and at the moment of the judgement.

use mlua::{Lua, Table, Value};
use readiness::Time;

use crate::rfc3339::days_since_epoch;

const MONTHS: [&str; 12] = [
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
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Seconds since the epoch: of `now`, or of a table's fields, which may lie outside their usual ranges.
pub(super) fn time(now: Time, fields: Option<&Table>) -> mlua::Result<f64> {
    let Some(fields) = fields else { return Ok(now.0.div_euclid(1000) as f64) };
    let field = |name: &str, otherwise: i64| -> mlua::Result<i64> {
        Ok(match fields.raw_get::<Value>(name)? {
            Value::Integer(number) => number,
            Value::Number(number) => number as i64,
            Value::String(text) => text.to_str()?.trim().parse().unwrap_or(otherwise),
            _ => otherwise,
        })
    };
    // Far outside any date, so that what follows cannot overflow.
    let bounded = |value: i64| value.clamp(-1_000_000_000, 1_000_000_000);
    let month = bounded(field("month", -1)?) - 1;
    let year = bounded(field("year", -1)?) + month.div_euclid(12);
    let days = days_since_epoch(year, month.rem_euclid(12) + 1, 1) + bounded(field("day", -1)?) - 1;
    let hours = days * 24 + bounded(field("hour", 12)?);
    Ok(((hours * 60 + bounded(field("min", 0)?)) * 60 + bounded(field("sec", 0)?)) as f64)
}

/// A date in the parts that a format names.
struct Date {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// 0 is Sunday.
    weekday: i64,
}

impl Date {
    fn of(seconds: i64) -> Date {
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // The inverse of `days_since_epoch`, with years that begin in March.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096).div_euclid(365);
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Date {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: (days + 4).rem_euclid(7),
        }
    }

    fn part(&self, code: char) -> Option<String> {
        let (month, day) = (MONTHS[self.month as usize - 1], DAYS[self.weekday as usize]);
        let hour12 = if self.hour % 12 == 0 { 12 } else { self.hour % 12 };
        let noon = if self.hour < 12 { "AM" } else { "PM" };
        Some(match code {
            // Argo CD's own table really prints the word for `%a`.
            'a' => "mon".to_owned(),
            'A' => day.to_owned(),
            'b' => month[..3].to_owned(),
            'B' => month.to_owned(),
            'c' => format!(
                "{:02} {} {:02} {:02}:{:02} UTC",
                self.day,
                &month[..3],
                self.year % 100,
                self.hour,
                self.minute
            ),
            'd' => format!("{:02}", self.day),
            'F' => format!("{:04}-{:02}-{:02}", self.year, self.month, self.day),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{hour12:02}"),
            'm' => format!("{:02}", self.month),
            'M' => format!("{:02}", self.minute),
            'p' => noon.to_owned(),
            'P' => noon.to_lowercase(),
            'S' => format!("{:02}", self.second),
            'w' => self.weekday.to_string(),
            'x' => format!("{:02}/{:02}/{:02}", self.hour, self.minute, self.second),
            'X' => format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            'y' => format!("{:02}", self.year % 100),
            'Y' => format!("{:04}", self.year),
            'z' => "+0000".to_owned(),
            'Z' => "UTC".to_owned(),
            _ => return None,
        })
    }
}

/// A date as a table or as text.
pub(super) fn date(lua: &Lua, now: Time, format: Option<&str>, at: Option<f64>) -> mlua::Result<Value> {
    let format = format.unwrap_or("%c").trim_start_matches('!');
    // Go's zero and the end of the year 9999: no date of an object lies outside.
    let seconds = at.unwrap_or(now.0.div_euclid(1000) as f64).clamp(-62_135_596_800.0, 253_402_300_799.0);
    let date = Date::of(seconds as i64);
    if !format.starts_with("*t") {
        return Ok(Value::String(lua.create_string(render(&date, format))?));
    }
    let table = lua.create_table()?;
    for (name, value) in [
        ("year", date.year),
        ("month", date.month),
        ("day", date.day),
        ("hour", date.hour),
        ("min", date.minute),
        ("sec", date.second),
        ("wday", date.weekday + 1),
        ("yday", 0),
    ] {
        table.raw_set(name, value as f64)?;
    }
    table.raw_set("isdst", false)?;
    Ok(Value::Table(table))
}

fn render(date: &Date, format: &str) -> String {
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('%')) => {
                chars.next();
                out.push('%');
            }
            ('%', Some(code)) => {
                match date.part(*code) {
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
        assert_eq!(time(NOW, Some(&fields)).unwrap() as i64, NOW.0 / 1000);
        assert_eq!(
            render(&Date::of(NOW.0 / 1000), "%Y-%m-%dT%H:%M:%S%% %A %q"),
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
        assert_eq!(time(NOW, Some(&fields)).unwrap() as i64, 1_709_208_000);
    }
}
