//! How requests fail, and which do.

use std::time::Duration;

use http::Method;

use crate::request::ApiRequest;

/// A server is never faster than this.
pub(crate) const ANSWERED_AFTER: Duration = Duration::from_millis(2);
/// A write that is not answered is given up after this time.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(15);

/// How a request fails. Unless it says otherwise, what was asked is not done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestFailure {
    /// This HTTP status, with an object that says why.
    Status(u16),
    /// The same with this `Retry-After`.
    RetryAfter(u16, &'static str),
    /// This HTTP status with a page for people, as a proxy has it.
    Page(u16),
    /// A 404 that names the object, as if it were gone.
    Gone,
    /// No answer.
    Silence,
    /// Done, and answered after this time.
    Slow(Duration),
    /// No connection.
    Refused,
    /// A certificate of somebody else.
    Untrusted,
    /// Done, and the connection breaks in the middle of the answer.
    Reset,
    /// Done, and the answer ends in the middle.
    Truncated,
    /// 200 with another object.
    OtherObject,
    /// The write is accepted, and what it says is dropped.
    Pruned,
    /// The object would be invalid for this cause, with this field and this message.
    Invalid(&'static str, &'static str, &'static str),
    /// The write is accepted, and this field of what it says is changed.
    Rewritten(&'static str),
}

impl RequestFailure {
    /// Time after which a client knows of it.
    pub(crate) fn known_after(self) -> Duration {
        match self {
            RequestFailure::Silence => GIVEN_UP_AFTER,
            RequestFailure::Slow(delay) => delay.min(GIVEN_UP_AFTER),
            // What is sent in the moment of the answer cannot know.
            _ => ANSWERED_AFTER + Duration::from_millis(1),
        }
    }
}

/// Which requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// Writes of the parents' status.
    StatusWrites,
    /// The same, of so many parents that what costs something for each of them is seen.
    StatusWritesOfMany,
    /// The same, from this number on: as many as may be are under way when the server begins to fail.
    StatusWritesFrom(usize),
    /// Every second one of these.
    EverySecondStatusWrite,
    /// Writes of the status of the parents of one kind, of two.
    StatusWritesOfOneKind,
    /// All writes.
    Writes,
    /// Bindings of the roles that are listed; all rights lack meanwhile.
    Bindings,
    /// Whatever is asked about roles; all rights lack meanwhile.
    Roles,
    /// Everything, from the moment on at which all was listed and most was written.
    Everything,
    /// The same, and every watch that stands breaks in that moment; there are many kinds.
    EverythingOfManyKinds,
    /// Whatever is read, from that moment on, and every watch breaks; there are many kinds.
    ReadsOfManyKinds,
    /// Watches alone, from that moment on, and those that stand break; there are many kinds.
    WatchesOfManyKinds,
    /// Everything, from the first request on.
    FromTheStart,
}

/// When all was listed and most was written.
pub(crate) const FAILS_AFTER: Duration = Duration::from_secs(20);

impl FailureScope {
    /// Whether a request at this time fails; `number` counts the writes of parents.
    pub(crate) fn fails(self, request: &ApiRequest, number: usize, at: Duration) -> bool {
        let writes = request.method != Method::GET;
        let writes_parent = writes && request.path.starts_with("/apis/example.com/");
        match self {
            FailureScope::StatusWrites | FailureScope::StatusWritesOfMany => writes_parent,
            FailureScope::StatusWritesFrom(first) => writes_parent && number >= first,
            FailureScope::EverySecondStatusWrite => writes_parent && number.is_multiple_of(2),
            FailureScope::StatusWritesOfOneKind => writes_parent && request.path.contains("/databases/"),
            FailureScope::Writes => writes && !request.path.contains("accessreviews"),
            FailureScope::Bindings => writes && request.path.contains("/clusterrolebindings"),
            FailureScope::Roles => request.path.contains("/clusterrole"),
            FailureScope::Everything | FailureScope::EverythingOfManyKinds => at > FAILS_AFTER,
            FailureScope::ReadsOfManyKinds => !writes && at > FAILS_AFTER,
            FailureScope::WatchesOfManyKinds => request.query.contains("watch=") && at > FAILS_AFTER,
            FailureScope::FromTheStart => true,
        }
    }

    /// Whether watches that stand break when the failures begin, and there are many of them.
    pub(crate) fn breaks_watches(self) -> bool {
        matches!(
            self,
            FailureScope::EverythingOfManyKinds
                | FailureScope::ReadsOfManyKinds
                | FailureScope::WatchesOfManyKinds
        )
    }
}
