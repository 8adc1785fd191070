//! One Event of the Job controller.

use serde_json::Value;

/// One Event, and the time from which it can be read.
#[derive(Clone)]
pub(super) struct JobEvent {
    pub(super) uid: String,
    pub(super) readable_at: i64,
    pub(super) event: Value,
}
