//! What following a kind says.

use std::fmt::Debug;

use serde::de::DeserializeOwned;

use crate::wire::Meta;

/// What can be followed: decoded straight from an object's JSON into the fields that somebody reads.
///
/// **Invariant:** decoding does not fail for a JSON object; what is not understood is absent. An object that cannot be
/// decoded is reported and left out, and what is left out of a list counts as gone.
pub trait Wire: DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// What identifies the object.
    fn meta(&self) -> &Meta;
}

/// One thing that following a kind has to say.
///
/// **Invariant:** `InitDone` comes only after an `Init` and every object of one complete, consistent list. A list that
/// breaks off is followed by another `Init`, never by `InitDone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<K> {
    /// A list begins; until `InitDone` what was known before is neither confirmed nor gone.
    Init,
    /// One object of the list.
    InitApply(K),
    /// The list is complete: what was not in it is gone.
    InitDone,
    /// An object was created or changed.
    Apply(K),
    /// An object is gone; this is how it looked last.
    Delete(K),
    /// The server answered: the heartbeat of a kind in which nothing happens.
    Alive,
    /// Something is wrong; the stream goes on by itself.
    Trouble(Trouble),
}

/// Why a kind cannot be followed at the moment. Nothing is lost by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is, for metrics.
    pub cause: Cause,
    /// What it is, for people.
    pub detail: String,
}

/// What can go wrong while following a kind; closed, so that it can label a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The server does not serve this kind (404): no definition, or not any more.
    NotInstalled,
    /// We may not list or watch it (403).
    Forbidden,
    /// The server does not know us (401).
    Unauthorized,
    /// Our place in the history is gone (410): it is listed anew.
    Gone,
    /// The server asks us to come back later (429).
    Throttled,
    /// Nothing came within the deadline although the connection stood.
    Stalled,
    /// The server failed (5xx).
    ServerError,
    /// The server refused for any other reason (4xx).
    Refused,
    /// No connection, or it broke.
    Connection,
    /// Something that came was not a readable object of this kind.
    Undecodable,
    /// A watch was opened and ended at once.
    EndedAtOnce,
}

impl Cause {
    /// All of them, so that a metric can start each at 0.
    pub const ALL: [Cause; 11] = [
        Cause::NotInstalled,
        Cause::Forbidden,
        Cause::Unauthorized,
        Cause::Gone,
        Cause::Throttled,
        Cause::Stalled,
        Cause::ServerError,
        Cause::Refused,
        Cause::Connection,
        Cause::Undecodable,
        Cause::EndedAtOnce,
    ];

    /// Its name as a metric's label.
    pub const fn label(self) -> &'static str {
        match self {
            Cause::NotInstalled => "not_installed",
            Cause::Forbidden => "forbidden",
            Cause::Unauthorized => "unauthorized",
            Cause::Gone => "gone",
            Cause::Throttled => "throttled",
            Cause::Stalled => "stalled",
            Cause::ServerError => "server_error",
            Cause::Refused => "refused",
            Cause::Connection => "connection",
            Cause::Undecodable => "undecodable",
            Cause::EndedAtOnce => "ended_at_once",
        }
    }
}

#[cfg(feature = "kube")]
impl Cause {
    /// What an HTTP status of 400 or more means.
    pub(crate) const fn of_status(code: u16) -> Cause {
        match code {
            401 => Cause::Unauthorized,
            403 => Cause::Forbidden,
            404 => Cause::NotInstalled,
            410 => Cause::Gone,
            429 => Cause::Throttled,
            500.. => Cause::ServerError,
            _ => Cause::Refused,
        }
    }
}
