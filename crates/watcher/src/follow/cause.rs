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
    Trouble { cause, detail: detail(error) }
}

/// In words: what the server said, where it said something.
fn detail(error: &watcher::Error) -> String {
    match error {
        watcher::Error::WatchFailed(error) if is_undecodable(error) => {
            format!("a line of the watch is no event: {error}")
        }
        watcher::Error::InitialListFailed(error) => format!("failed to list: {}", said(error)),
        watcher::Error::WatchStartFailed(error) => format!("failed to watch: {}", said(error)),
        watcher::Error::WatchFailed(error) => format!("the watch failed: {}", said(error)),
        watcher::Error::WatchError(status) => format!("the watch ended: {}", status.message),
        error @ watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error.to_string(),
    }
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

/// Whether it comes from the client rather than from the server.
pub(super) fn is_of_service(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Service(_))
            | watcher::Error::WatchStartFailed(kube::Error::Service(_))
            | watcher::Error::WatchFailed(kube::Error::Service(_))
    )
}

/// Whether one of our deadlines is at the bottom of it.
pub(crate) fn is_stall(error: &(dyn Error + 'static)) -> bool {
    error.is::<Stalled>() || error.source().is_some_and(is_stall)
}
