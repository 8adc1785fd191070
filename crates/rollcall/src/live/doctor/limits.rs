//! Limits by which the checks judge.

use std::time::Duration;

/// Default of `rollcall run`.
pub(super) const STUCK_AFTER: Duration = Duration::from_mins(10);
