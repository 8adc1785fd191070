//! Durations and ages, in kubectl's format.

use serde_json::{Value, json};

use crate::store::message::EpochMillis;

/// Formats an age: `5s`, `3m20s`, `2d`; coarser with growing age.
pub(super) fn age_since(now: EpochMillis, time: &Value) -> Value {
    let then = time_seconds(time);
    json!(then.map_or_else(|| "<unknown>".to_owned(), |then| format_age(now / 1000 - then)))
}

/// Formats the duration between two times; empty if the first is missing.
pub(super) fn duration_between(now: EpochMillis, from: &Value, to: &Value) -> Value {
    let Some(from) = time_seconds(from) else { return json!("") };
    json!(format_age(time_seconds(to).unwrap_or(now / 1000) - from))
}

fn time_seconds(time: &Value) -> Option<i64> {
    Some(rollcall_rfc3339::parse_millis(time.as_str()?)?.div_euclid(1000))
}

fn format_age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let pair = |much: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{much}{unit}") } else { format!("{much}{unit}{rest}{small}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => pair(hours / 24, "d", hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        () if hours < 24 * 365 * 8 => pair(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        () => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_ago_the_coarser() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_172_000, "2y1d"),
            (400_000_000, "12y"),
        ];
        for (seconds, wanted) in cases {
            assert_eq!(format_age(seconds), wanted, "{seconds} s");
        }
    }
}
