//! What kstatus computes: a status with a message, or an error.

use crate::json::WrongType;

/// A status of kstatus with a message.
pub(super) type KstatusMessage = (&'static str, String);

/// The status that kstatus computes, or the error.
pub(super) type KstatusResult = Result<KstatusMessage, KstatusError>;

pub(super) const CURRENT: &str = "Current";
pub(super) const IN_PROGRESS: &str = "InProgress";
pub(super) const FAILED: &str = "Failed";
pub(super) const TERMINATING: &str = "Terminating";
pub(super) const UNKNOWN: &str = "Unknown";

/// Error of kstatus: its callers show such an object as `Unknown`.
#[derive(Debug, thiserror::Error)]
pub(super) enum KstatusError {
    #[error("failed to read the object: {0}")]
    Type(#[from] WrongType),
    #[error("unknown phase {0}")]
    Phase(String),
}

pub(super) fn current_status(message: &str) -> KstatusMessage {
    (CURRENT, message.to_owned())
}
