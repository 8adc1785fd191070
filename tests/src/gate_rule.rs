//! What a gate does to the requests that a test names, and to watches.

use std::time::Duration;

use axum::extract::Request;
use http::{Method, StatusCode};

/// Treatment of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum GateRule {
    /// Requests go on to the server.
    Pass,
    /// Requests of this method whose path contains this wait until the rule changes.
    Hold(Method, String),
    /// Requests of this method whose path contains this are answered with this status, without reaching the server.
    Answer(Method, String, StatusCode),
    /// Requests of this method whose path contains this reach the server, but their answer is lost.
    LoseAnswer(Method, String),
    /// Requests of this method whose path contains this reach the server, and their answer waits until the rule changes.
    HoldAnswer(Method, String),
    /// All requests are answered 429 with so many seconds of `Retry-After`, without reaching the server; watches that stand go
    /// on.
    Throttle(u32),
    /// Watches send nothing, and their events are lost; all other requests pass.
    Mute,
    /// Watches tell what they have so much later, in its order; all other requests pass.
    Late(Duration),
    /// Watches break off in the middle of the next line; all other requests pass.
    CutLines,
    /// Nothing reaches the server, and open requests are cut.
    Down,
}

impl GateRule {
    /// Returns `true` if the rule is about this request.
    pub(crate) fn meets(&self, request: &Request) -> bool {
        match self {
            Self::Pass | Self::Mute | Self::Late(_) | Self::CutLines => false,
            Self::Down | Self::Throttle(_) => true,
            Self::Hold(method, part)
            | Self::Answer(method, part, _)
            | Self::LoseAnswer(method, part)
            | Self::HoldAnswer(method, part) => {
                request.method() == method && request.uri().to_string().contains(part)
            }
        }
    }
}
