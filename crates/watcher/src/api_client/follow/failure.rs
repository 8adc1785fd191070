//! Mapping of kube's errors to causes.

use std::error::Error;

use kube::runtime::watcher;

use crate::api_client::guard::{BlindWatch, ResponseStalled};
use crate::error_text::error_text;
use crate::event::{ApiFailureCause, FollowFailure};

/// Describes an error of kube's watcher.
pub(super) fn describe_failure(error: &watcher::Error) -> FollowFailure {
    let cause = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => client_error_cause(error),
        watcher::Error::WatchError(status) => ApiFailureCause::from_http_status(status.code),
        watcher::Error::NoResourceVersion => ApiFailureCause::Undecodable,
    };
    FollowFailure { cause, detail: error_text(failure_detail(error)) }
}

/// Returns the detail: the server's message, if it sent one.
fn failure_detail(error: &watcher::Error) -> String {
    match error {
        watcher::Error::WatchFailed(error) if is_undecodable(error) => {
            format!("failed to decode a watch event: {error}")
        }
        watcher::Error::InitialListFailed(error) => format!("failed to list: {}", error_message(error)),
        watcher::Error::WatchStartFailed(error) => format!("failed to watch: {}", error_message(error)),
        watcher::Error::WatchFailed(error) => format!("the watch failed: {}", error_message(error)),
        watcher::Error::WatchError(status) => format!("the watch ended: {}", status.message),
        error @ watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn error_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error.to_string(),
    }
}

/// Maps an error of the client to a cause.
pub(crate) fn client_error_cause(error: &kube::Error) -> ApiFailureCause {
    match error {
        error if is_undecodable(error) => ApiFailureCause::Undecodable,
        kube::Error::Api(status) => ApiFailureCause::from_http_status(status.code),
        error if is_stall(error) => ApiFailureCause::Stalled,
        _ => ApiFailureCause::Connection,
    }
}

/// Returns `true` if the data received was not readable. kube decodes an unreadable event as a `Status`, all of whose
/// fields may be absent: a failure without a code was not sent by the server.
pub(super) fn is_undecodable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 0,
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => true,
        _ => false,
    }
}

/// Returns `true` if the error comes from the client rather than from the server.
pub(super) fn is_service_error(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Service(_))
            | watcher::Error::WatchStartFailed(kube::Error::Service(_))
            | watcher::Error::WatchFailed(kube::Error::Service(_))
    )
}

/// Whether the guard would not resume a watch.
pub(super) fn is_blind(error: &(dyn Error + 'static)) -> bool {
    error.is::<BlindWatch>() || error.source().is_some_and(is_blind)
}

/// Returns `true` if one of the guard's deadlines is the root cause.
pub(crate) fn is_stall(error: &(dyn Error + 'static)) -> bool {
    error.is::<ResponseStalled>() || error.source().is_some_and(is_stall)
}
