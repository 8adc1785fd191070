//! Numbers of the API as counts.

/// Converts a number of the API to a count; negative numbers are zero.
pub(super) fn clamp_count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}
