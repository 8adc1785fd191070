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
    Trouble { cause, detail: error.to_string() }
}

/// What an error of the client means.
pub(crate) fn of_client(error: &kube::Error) -> Cause {
    match error {
        kube::Error::Api(status) => Cause::of_status(status.code),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Cause::Undecodable,
        error if is_stall(error) => Cause::Stalled,
        _ => Cause::Connection,
    }
}

/// Whether one of our deadlines is at the bottom of it.
pub(crate) fn is_stall(error: &(dyn Error + 'static)) -> bool {
    error.is::<Stalled>() || error.source().is_some_and(is_stall)
}
