//! Timestamps of conditions and Events: in whole seconds like `metav1.Time`, and with milliseconds.

use readiness::Time;

/// Parses a timestamp.
pub fn parse_rfc3339(text: &str) -> Option<Time> {
    Time::from_rfc3339(text)
}

/// Formats a timestamp, truncated to seconds.
pub fn format_seconds(time: Time) -> String {
    time.to_string()
}

/// Formats a timestamp with milliseconds.
pub fn format_millis(time: Time) -> String {
    time.to_rfc3339_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_the_way_out_and_back() {
        assert_eq!(format_seconds(Time(1_767_225_600_999)), "2026-01-01T00:00:00Z");
        assert_eq!(format_millis(Time(1_767_225_600_090)), "2026-01-01T00:00:00.090Z");
        assert_eq!(parse_rfc3339("2026-01-01T00:00:00Z"), Some(Time(1_767_225_600_000)));
        assert_eq!(parse_rfc3339("yesterday"), None);
    }
}
