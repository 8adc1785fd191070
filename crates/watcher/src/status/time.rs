//! Moments as `metav1.Time` has them: RFC 3339, whole seconds.

use readiness::Time;

/// Reads one.
pub fn parse(text: &str) -> Option<Time> {
    text.parse::<jiff::Timestamp>().ok().map(|t| Time(t.as_millisecond()))
}

/// Writes one, cut to seconds.
pub fn format(time: Time) -> String {
    jiff::Timestamp::from_second(time.0.div_euclid(1_000)).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_the_way_out_and_back() {
        assert_eq!(format(Time(1_767_225_600_999)), "2026-01-01T00:00:00Z");
        assert_eq!(parse("2026-01-01T00:00:00Z"), Some(Time(1_767_225_600_000)));
        assert_eq!(parse("yesterday"), None);
    }
}
