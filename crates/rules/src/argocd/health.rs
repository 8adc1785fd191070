//! Argo CD's words for health.

use crate::peer_verdict::PeerVerdict;

pub(super) const HEALTHY: &str = "Healthy";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const DEGRADED: &str = "Degraded";
pub(super) const SUSPENDED: &str = "Suspended";
pub(super) const UNKNOWN: &str = "Unknown";

pub(super) fn peer_verdict(status: &'static str, message: impl Into<String>) -> PeerVerdict {
    PeerVerdict { status: Some(status), message: message.into() }
}
