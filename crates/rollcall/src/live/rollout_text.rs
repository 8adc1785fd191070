//! Parts of a rollout as text: how long each took, and what it was spent on.

use std::time::Duration;

use crate::text::sanitize_text;

/// One part of a rollout that took `whole` seconds.
pub(super) fn part_line(seconds: f64, whole: f64, object: &str, cause_text: &str) -> String {
    let percent = seconds * 100.0 / whole;
    format!(
        "  {:>12}  {percent:>3.0} %  {}\n",
        duration_text(seconds),
        sanitize_text(&format!("{object}: {cause_text}"))
    )
}

/// A duration as people say it: `5m 3s`.
pub(super) fn duration_text(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.round()).unwrap_or_default();
    humantime::format_duration(whole).to_string()
}
