//! The proleptic Gregorian calendar.

/// A time of UTC in the components of its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilDate {
    /// Days since 1970-01-01.
    pub days: i64,
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// Second of the day.
    pub second: i64,
}

impl CivilDate {
    /// Returns the date of a time, given in seconds since the Unix epoch.
    pub fn from_seconds(seconds: i64) -> CivilDate {
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // The inverse of `days_since_epoch`, with years that begin in March.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        CivilDate { days, year: year_of_era + era * 400 + i64::from(month <= 2), month, day, second }
    }

    /// Returns the day of the year, from 0.
    pub fn day_of_year(&self) -> i64 {
        self.days - days_since_epoch(self.year, 1, 1)
    }

    /// Returns the day of the week; 0 is Sunday.
    pub fn day_of_week(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// Returns the hour of the day.
    pub fn hour(&self) -> i64 {
        self.second / 3600
    }

    /// Returns the minute of the hour.
    pub fn minute_of_hour(&self) -> i64 {
        self.second / 60 % 60
    }

    /// Returns the second of the minute.
    pub fn second_of_minute(&self) -> i64 {
        self.second % 60
    }
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 in the proleptic Gregorian calendar.
pub fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
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
    fn every_day_of_a_thousand_years_is_read_back() {
        for days in days_since_epoch(1600, 1, 1)..days_since_epoch(2600, 1, 1) {
            let date = CivilDate::from_seconds(days * 86_400 + 3_723);
            assert_eq!(days_since_epoch(date.year, date.month, date.day), days);
            assert_eq!((date.hour(), date.minute_of_hour(), date.second_of_minute()), (1, 2, 3));
        }
    }

    #[test]
    fn dates_around_the_epoch_and_a_leap_day_are_named_rightly() {
        for (seconds, date, weekday, day_of_year) in [
            (0, (1970, 1, 1), 4, 0),
            (-1, (1969, 12, 31), 3, 364),
            (1_709_209_845, (2024, 2, 29), 4, 59),
            (-62_135_596_800, (1, 1, 1), 1, 0),
        ] {
            let civil = CivilDate::from_seconds(seconds);
            assert_eq!((civil.year, civil.month, civil.day), date);
            assert_eq!((civil.day_of_week(), civil.day_of_year()), (weekday, day_of_year), "{date:?}");
        }
    }
}
