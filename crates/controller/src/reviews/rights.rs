//! What a user may do, by SubjectAccessReview.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use lru::LruCache;
use readiness::Time;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use super::budget::{ClientBudgets, RequestBudget};
use super::review_client::{REVIEW_CACHE_SIZE, ReviewClient, ReviewFailure, answer_ttl};
use super::tokens::ReviewedUser;
use crate::clock::LocalClock;
use crate::failure_reporter::FailureReporter;

/// Questions about one user that are not in the cache.
const QUESTIONS_OF_USER: RequestBudget = RequestBudget { burst: 2_048, interval: Duration::from_millis(10) };
/// Maximum number of concurrent SubjectAccessReviews.
const MAX_CONCURRENT_ACCESS_REVIEWS: usize = 8;
/// Maximum number of these for one request.
const MAX_CONCURRENT_REVIEWS_PER_REQUEST: usize = 4;
/// Maximum number of new reviews per request.
const MAX_REVIEWS_PER_REQUEST: usize = 256;

/// Right to read a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AccessRight {
    /// `get` or `list`.
    pub(crate) verb: &'static str,
    /// API group.
    pub(crate) group: String,
    /// Plural name of the kind.
    pub(crate) resource: String,
    /// Namespace; empty for all namespaces.
    pub(crate) namespace: String,
    /// Object name; empty for all objects.
    pub(crate) name: String,
}

/// Right to be checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReviewedRight {
    /// To read a resource of the API server.
    Resource(AccessRight),
    /// To `get` this path, as `nonResourceURLs` of a ClusterRole grant it.
    Path(&'static str),
}

/// Answers with the time until which they hold.
type KnownRights = LruCache<(ReviewedUser, ReviewedRight), (bool, Time)>;

/// Answers what users may do, from a short-lived cache or by asking the API server.
pub(crate) struct AccessAuthorizer {
    reviews: ReviewClient,
    clock: LocalClock,
    known: Mutex<KnownRights>,
    questions: ClientBudgets<ReviewedUser>,
}

impl AccessAuthorizer {
    pub(crate) fn new(client: kube::Client, clock: LocalClock) -> Self {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        AccessAuthorizer {
            reviews: ReviewClient::new(client, path, MAX_CONCURRENT_ACCESS_REVIEWS),
            clock,
            known: Mutex::new(LruCache::new(REVIEW_CACHE_SIZE)),
            questions: ClientBudgets::new(QUESTIONS_OF_USER),
        }
    }

    /// Reports what keeps failing there.
    pub(crate) fn report_failures_to(mut self, failures: &FailureReporter) -> Self {
        self.reviews.failures = failures.clone();
        self
    }

    fn known(&self) -> MutexGuard<'_, KnownRights> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subset of the rights that `user` has, and whether some were skipped because there were too many.
    pub(crate) async fn allowed_rights(
        &self,
        user: &ReviewedUser,
        rights: Vec<ReviewedRight>,
    ) -> Result<(FxHashSet<usize>, bool), ReviewFailure> {
        let (mut allowed, mut open) = (FxHashSet::default(), Vec::new());
        let now = self.clock.now();
        for (at, right) in rights.into_iter().enumerate() {
            let question = (user.clone(), right);
            let known = self.known().get(&question).copied();
            match known.filter(|(_, until)| now < *until) {
                Some((true, _)) => _ = allowed.insert(at),
                Some((false, _)) => {}
                None => open.push((at, question)),
            }
        }
        let cut = open.len() > MAX_REVIEWS_PER_REQUEST;
        open.truncate(MAX_REVIEWS_PER_REQUEST);
        let answers = futures::stream::iter(open)
            .map(|(at, question)| async move { (at, self.review(question).await) })
            .buffer_unordered(MAX_CONCURRENT_REVIEWS_PER_REQUEST);
        let answers: Vec<_> = answers.collect().await;
        for (at, answer) in answers {
            if answer? {
                allowed.insert(at);
            }
        }
        Ok((allowed, cut))
    }

    /// True if `user` has this right.
    pub(crate) async fn is_allowed(
        &self,
        user: &ReviewedUser,
        right: ReviewedRight,
    ) -> Result<bool, ReviewFailure> {
        Ok(!self.allowed_rights(user, vec![right]).await?.0.is_empty())
    }

    async fn review(&self, question: (ReviewedUser, ReviewedRight)) -> Result<bool, ReviewFailure> {
        let (user, right) = &question;
        if !self.questions.take(user, self.clock.now()) {
            return Err(ReviewFailure::Throttled);
        }
        let mut spec: Value = serde_json::from_str(&user.0).unwrap_or_default();
        // A TokenReview returns `username`, a SubjectAccessReview expects `user`.
        if let Some(name) = spec.as_object_mut().and_then(|spec| spec.remove("username")) {
            spec["user"] = name;
        }
        match right {
            ReviewedRight::Resource(right) => {
                spec["resourceAttributes"] = json!({
                    "verb": right.verb, "group": right.group, "resource": right.resource,
                    "namespace": right.namespace, "name": right.name,
                });
            }
            ReviewedRight::Path(path) => {
                spec["nonResourceAttributes"] = json!({ "verb": "get", "path": path });
            }
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
        });
        let yes = self.reviews.post(&review).await?["status"]["allowed"] == true;
        self.known().put(question, (yes, self.clock.now() + answer_ttl(yes)));
        Ok(yes)
    }
}
