//! Failures of a guarded request.

use std::time::Duration;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The response was silent for this long although data was due.
#[derive(Debug, thiserror::Error)]
#[error("no data received for {0:?}")]
pub(crate) struct ResponseStalled(pub(crate) Duration);

/// A watch was asked for that must not be opened: nothing was seen for too long, and only a list tells what there is.
#[derive(Debug, thiserror::Error)]
#[error("no sign of life for too long; listing again")]
pub(crate) struct BlindWatch;
