//! Log of what keeps a kind from being followed.

use tracing::warn;
use watcher::{ApiFailureCause, ApiKind, FollowFailure};

use crate::failure_reporter::FailureReporter;

/// Logs a failure, with its remedy if the reader can apply it.
pub(crate) fn report_trouble(failures: &FailureReporter, api: &ApiKind, trouble: &FollowFailure) {
    let FollowFailure { cause, detail } = trouble.clone();
    let (kind, key) = (api.to_string(), format!("{api} {}", cause.metric_label()));
    if cause == ApiFailureCause::Forbidden {
        failures.report("follow", key, move |failures| {
            warn!(
                kind,
                detail,
                failures,
                "not permitted to list and watch kind; grant it with `rollcall rbac -f POLICY | kubectl apply -f -`"
            );
        });
    } else {
        failures.report("follow", key, move |failures| {
            warn!(kind, cause = cause.metric_label(), detail, failures, "watch failed; will retry");
        });
    }
}
