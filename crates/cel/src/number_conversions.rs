//! Conversions between Rust's and CEL's numbers.

/// Converts a count or an index to CEL's integer.
pub(crate) fn int_from_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts an integer to the nearest double, as cel-go does.
#[expect(clippy::cast_precision_loss, reason = "a conversion to double rounds")]
pub(crate) fn double_from_int(number: i64) -> f64 {
    number as f64
}

/// Converts an unsigned integer to the nearest double, as cel-go does.
#[expect(clippy::cast_precision_loss, reason = "a conversion to double rounds")]
pub(crate) fn double_from_uint(number: u64) -> f64 {
    number as f64
}
