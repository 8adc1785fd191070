//! Events of following a kind.

use std::fmt::Debug;

use serde::de::DeserializeOwned;

use crate::wire::WireMeta;

/// An object that can be followed, decoded from JSON directly into the fields that are read.
///
/// **Invariant:** decoding does not fail for a JSON object; a value that is not understood is absent. An object that
/// cannot be decoded is reported and left out, and an object left out of a list counts as deleted.
pub trait WireObject: DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// Returns the identifying metadata.
    fn meta(&self) -> &WireMeta;
}

/// One event of following a kind.
///
/// **Invariant:** `InitDone` comes only after an `Init` and every object of one complete, consistent list. A list that
/// breaks off is followed by another `Init`, never by `InitDone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowEvent<K> {
    /// A list begins; until `InitDone`, objects known before are neither confirmed nor deleted.
    Init,
    /// One object of the list.
    InitApply(K),
    /// The list is complete: objects that were not in it are deleted.
    InitDone,
    /// An object was created or changed.
    Apply(K),
    /// An object was deleted; contains its last state.
    Delete(K),
    /// The server has given a sign of life: the heartbeat of a kind in which nothing happens.
    ///
    /// **Invariant:** after [`FollowOptions::blind`](crate::FollowOptions::blind) without one, a list begins before
    /// anything that a watch has to say.
    Alive,
    /// A failure; the stream recovers by itself.
    Failure(FollowFailure),
}

/// A failure to follow a kind for the moment. No event is lost by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowFailure {
    /// Cause, for metrics.
    pub cause: ApiFailureCause,
    /// Detail, for people.
    pub detail: String,
}

/// Causes of a failure to follow a kind; a closed set, so that it can label a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiFailureCause {
    /// The server does not serve this kind (404): the definition does not exist or was deleted.
    NotInstalled,
    /// Listing or watching is forbidden (403).
    Forbidden,
    /// The server rejects the credentials (401).
    Unauthorized,
    /// The resourceVersion to resume from has expired (410): a relist follows.
    Gone,
    /// The server asks the client to retry later (429).
    Throttled,
    /// No data arrived within the deadline although the connection stood.
    Stalled,
    /// The server failed (5xx).
    ServerError,
    /// The server refused the request for another reason (4xx).
    Refused,
    /// The connection could not be made, or broke.
    Connection,
    /// The data received is not a readable object of this kind.
    Undecodable,
    /// A watch was opened and ended immediately.
    EndedAtOnce,
}

impl ApiFailureCause {
    /// All causes, so that a metric can start each at 0.
    pub const ALL: [ApiFailureCause; 11] = [
        ApiFailureCause::NotInstalled,
        ApiFailureCause::Forbidden,
        ApiFailureCause::Unauthorized,
        ApiFailureCause::Gone,
        ApiFailureCause::Throttled,
        ApiFailureCause::Stalled,
        ApiFailureCause::ServerError,
        ApiFailureCause::Refused,
        ApiFailureCause::Connection,
        ApiFailureCause::Undecodable,
        ApiFailureCause::EndedAtOnce,
    ];

    /// Maps an HTTP status of 400 or more to a cause.
    pub const fn from_http_status(code: u16) -> ApiFailureCause {
        match code {
            401 => ApiFailureCause::Unauthorized,
            403 => ApiFailureCause::Forbidden,
            404 => ApiFailureCause::NotInstalled,
            410 => ApiFailureCause::Gone,
            429 => ApiFailureCause::Throttled,
            500.. => ApiFailureCause::ServerError,
            _ => ApiFailureCause::Refused,
        }
    }

    /// Returns the label value for metrics.
    pub const fn metric_label(self) -> &'static str {
        match self {
            ApiFailureCause::NotInstalled => "not_installed",
            ApiFailureCause::Forbidden => "forbidden",
            ApiFailureCause::Unauthorized => "unauthorized",
            ApiFailureCause::Gone => "gone",
            ApiFailureCause::Throttled => "throttled",
            ApiFailureCause::Stalled => "stalled",
            ApiFailureCause::ServerError => "server_error",
            ApiFailureCause::Refused => "refused",
            ApiFailureCause::Connection => "connection",
            ApiFailureCause::Undecodable => "undecodable",
            ApiFailureCause::EndedAtOnce => "ended_at_once",
        }
    }
}
