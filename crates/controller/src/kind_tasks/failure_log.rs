//! Log of what keeps a kind from being followed.

use tracing::warn;
use watcher::{ApiFailureCause, ApiKind, FollowFailure};

/// Logs a failure, with its remedy if the reader can apply it.
pub(crate) fn log_trouble(api: &ApiKind, trouble: &FollowFailure) {
    let FollowFailure { cause, detail } = trouble;
    if *cause == ApiFailureCause::Forbidden {
        let way = "not permitted to list and watch kind; grant it with `rollcall rbac -f POLICY | kubectl apply -f -`";
        warn!(kind = %api, detail, "{way}");
    } else {
        warn!(kind = %api, cause = cause.metric_label(), detail, "watch failed; will retry");
    }
}
