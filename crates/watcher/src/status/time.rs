//! Moments as RFC 3339: in whole seconds as `metav1.Time` has them, and with milliseconds.

use readiness::Time;

/// Reads one.
pub fn parse(text: &str) -> Option<Time> {
    text.parse::<jiff::Timestamp>().ok().map(|t| Time(t.as_millisecond()))
}

/// Writes one, cut to seconds.
pub fn format(time: Time) -> String {
    time.to_string()
}

/// Writes one with its milliseconds.
pub fn precise(time: Time) -> String {
    format!("{:.3}", jiff::Timestamp::from_millisecond(time.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_the_way_out_and_back() {
        assert_eq!(format(Time(1_767_225_600_999)), "2026-01-01T00:00:00Z");
        assert_eq!(precise(Time(1_767_225_600_090)), "2026-01-01T00:00:00.090Z");
        assert_eq!(parse("2026-01-01T00:00:00Z"), Some(Time(1_767_225_600_000)));
        assert_eq!(parse("yesterday"), None);
    }
}
