//! Sends reviews to the API server.

use std::num::NonZeroUsize;
use std::time::Duration;

use http::{Request, header};
use serde_json::Value;
use tokio::sync::Semaphore;
use tracing::warn;

use crate::failure_reporter::FailureReporter;

/// Time for which an allowed review and an authenticated token are cached. 60 s.
const ALLOWED_TTL: Duration = Duration::from_secs(60);
/// Time for which a denied review is cached. 10 s; shorter, because the right may be about to be granted.
const DENIED_TTL: Duration = Duration::from_secs(10);
/// Maximum number of cached answers of each kind.
pub(super) const REVIEW_CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(8_192).expect("invariant: not zero");
/// Timeout of a review. 10 s.
pub(super) const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which an answer is cached.
pub(super) fn answer_ttl(allowed: bool) -> Duration {
    if allowed { ALLOWED_TTL } else { DENIED_TTL }
}

/// Reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewFailure {
    /// Rollcall may not create such reviews.
    Forbidden,
    /// The API server does not respond.
    Unreachable,
    /// The client has asked for too many.
    Throttled,
}

/// Sends reviews of one kind, a few at a time.
pub(super) struct ReviewClient {
    client: kube::Client,
    path: &'static str,
    turns: Semaphore,
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
}

impl ReviewClient {
    pub(super) fn new(client: kube::Client, path: &'static str, max_concurrent: usize) -> Self {
        let (turns, failures) = (Semaphore::new(max_concurrent), FailureReporter::default());
        ReviewClient { client, path, turns, failures }
    }

    pub(super) async fn post(&self, review: &Value) -> Result<Value, ReviewFailure> {
        let request = Request::post(self.path).header(header::CONTENT_TYPE, "application/json");
        let request =
            request.body(review.to_string().into_bytes()).map_err(|_| ReviewFailure::Unreachable)?;
        let asked = async {
            // The semaphore is never closed.
            let _turn = self.turns.acquire().await.ok()?;
            Some(self.client.request::<Value>(request).await)
        };
        match tokio::time::timeout(REVIEW_TIMEOUT, asked).await {
            Ok(Some(Ok(answer))) => Ok(answer),
            Ok(Some(Err(kube::Error::Api(status)))) if status.code == 403 => {
                let path = self.path;
                self.failures.report("review", format!("{path} forbidden"), move |failures| {
                    warn!(
                        path,
                        failures,
                        "not permitted to create reviews for the listener's clients; `rollcall rbac` prints the rules to grant"
                    );
                });
                Err(ReviewFailure::Forbidden)
            }
            Ok(Some(Err(error))) => {
                let (path, error) = (self.path, watcher::error_text(&error));
                self.failures.report("review", path, move |failures| {
                    warn!(path, error, failures, "failed to review access");
                });
                Err(ReviewFailure::Unreachable)
            }
            _ => Err(ReviewFailure::Unreachable),
        }
    }
}
