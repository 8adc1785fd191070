//! Values of gauges.

use readiness::Time;

/// Converts a time to seconds since the Unix epoch.
pub(super) fn to_seconds(time: Time) -> f64 {
    readiness::millis_to_seconds(time.0)
}

/// Converts a count to the value of a gauge. One that does not fit is `i64::MAX`.
pub(super) fn gauge_value(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
