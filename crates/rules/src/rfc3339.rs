//! Parses timestamps as the API server writes them, as leniently as Go's `time.Parse`.

use readiness::Time;
use rollcall_cel::rfc3339::parse_nanos;

/// Parses `text` to the millisecond; `None` if Go would not parse it.
pub(crate) fn parse_time(text: &str) -> Option<Time> {
    parse_nanos(text).and_then(|nanos| i64::try_from(nanos.div_euclid(1_000_000)).ok()).map(Time)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What is a moment is tested where it is parsed.
    #[test]
    fn a_moment_is_cut_to_the_millisecond_before_it() {
        assert_eq!(parse_time("2024-02-29T12:30:45.678901Z"), Some(Time(1_709_209_845_678)));
        assert_eq!(parse_time("1969-12-31T23:59:59.9999Z"), Some(Time(-1)));
        assert_eq!(parse_time("2024-02-30T00:00:00Z"), None);
    }
}
