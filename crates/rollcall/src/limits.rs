//! Limits that commands use where no service is asked for its own.

use std::time::Duration;

/// Time after which something is stuck: the default of `rollcall run --stuck-after`. 10 min.
pub(crate) const STUCK_AFTER: Duration = Duration::from_mins(10);
