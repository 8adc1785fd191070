//! From kube's errors to ours.

use std::error::Error;

use kube::runtime::watcher;

use crate::event::{Cause, Trouble};
use crate::guard::Stalled;

/// What an error of the watcher means.
pub(super) fn trouble(error: &watcher::Error) -> Trouble {
    let cause = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => of_client(error),
        watcher::Error::WatchError(status) => Cause::of_status(status.code),
        watcher::Error::NoResourceVersion => Cause::Undecodable,
    };
    let detail = match error {
        watcher::Error::WatchFailed(error) if is_undecodable(error) => {
            format!("a line of the watch is no event: {error}")
        }
        error => error.to_string(),
    };
    Trouble { cause, detail }
}

/// What an error of the client means.
pub(crate) fn of_client(error: &kube::Error) -> Cause {
    match error {
        error if is_undecodable(error) => Cause::Undecodable,
        kube::Error::Api(status) => Cause::of_status(status.code),
        error if is_stall(error) => Cause::Stalled,
        _ => Cause::Connection,
    }
}

/// Whether what came was not readable. kube takes an event that it cannot decode for a `Status`, of which every field may
/// be absent: a failure without a code is nobody's answer.
pub(super) fn is_undecodable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 0,
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => true,
        _ => false,
    }
}

/// Whether one of our deadlines is at the bottom of it.
pub(crate) fn is_stall(error: &(dyn Error + 'static)) -> bool {
    error.is::<Stalled>() || error.source().is_some_and(is_stall)
}
