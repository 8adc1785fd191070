//! Who a token belongs to, by TokenReview.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, header};
use lru::LruCache;
use readiness::Time;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::budget::{ClientBudgets, RequestBudget, SharedBudget};
use super::review_client::{REVIEW_CACHE_SIZE, REVIEW_TIMEOUT, ReviewClient, ReviewFailure, answer_ttl};
use crate::clock::LocalClock;
use crate::failure_reporter::FailureReporter;
use crate::listener::ClientAddress;
use crate::metrics::TokenReviewMetrics;

/// Unknown tokens from one address: only those that the API server does not accept are counted.
const UNKNOWN_FROM_ADDRESS: RequestBudget = RequestBudget { burst: 20, interval: Duration::from_secs(3) };
/// Unknown tokens from all addresses.
const UNKNOWN_TOKENS: RequestBudget = RequestBudget { burst: 50, interval: Duration::from_millis(100) };
/// Tokens that were accepted a while ago.
const TOKEN_RENEWAL_BUDGET: RequestBudget = RequestBudget { burst: 100, interval: Duration::from_millis(20) };
/// Maximum number of concurrent TokenReviews.
const MAX_CONCURRENT_TOKEN_REVIEWS: usize = 4;

/// User as Kubernetes identifies it: `username`, `uid`, `groups`, `extra`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReviewedUser(pub(super) Arc<str>);

/// SHA-256 of a token. Tokens themselves are never stored.
type TokenFingerprint = [u8; 32];

#[derive(Debug)]
struct KnownToken {
    /// `None` if the API server does not accept the token.
    user: Option<ReviewedUser>,
    until: Time,
}

/// Cached review of a token; locked while the API server is asked about it.
type KnownTokenSlot = Arc<tokio::sync::Mutex<Option<KnownToken>>>;

/// Answers who a token belongs to, from a short-lived cache or by asking the API server.
pub(crate) struct TokenAuthenticator {
    reviews: ReviewClient,
    clock: LocalClock,
    /// Audiences that a token must be meant for, one of them; empty for the API server's own.
    audiences: Vec<String>,
    /// A token stays after its time is over, as one that was accepted before.
    known: Mutex<LruCache<TokenFingerprint, KnownTokenSlot>>,
    unknown_from: ClientBudgets<ClientAddress>,
    unknown: SharedBudget,
    renewals: SharedBudget,
    metrics: TokenReviewMetrics,
}

impl TokenAuthenticator {
    pub(crate) fn new(
        client: kube::Client,
        clock: LocalClock,
        audiences: Vec<String>,
        metrics: TokenReviewMetrics,
    ) -> Self {
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        TokenAuthenticator {
            reviews: ReviewClient::new(client, path, MAX_CONCURRENT_TOKEN_REVIEWS),
            clock,
            audiences,
            known: Mutex::new(LruCache::new(REVIEW_CACHE_SIZE)),
            unknown_from: ClientBudgets::new(UNKNOWN_FROM_ADDRESS),
            unknown: SharedBudget::new(UNKNOWN_TOKENS),
            renewals: SharedBudget::new(TOKEN_RENEWAL_BUDGET),
            metrics,
        }
    }

    /// Reports what keeps failing there.
    pub(crate) fn report_failures_to(mut self, failures: &FailureReporter) -> Self {
        self.reviews.failures = failures.clone();
        self
    }

    /// The token's user; `None` if the API server does not accept the token. Concurrent questions about one token are
    /// asked once.
    pub(crate) async fn authenticate(
        &self,
        token: &str,
        from: ClientAddress,
    ) -> Result<Option<ReviewedUser>, ReviewFailure> {
        let mut key = TokenFingerprint::default();
        key.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        let slot = self.known().get_or_insert(key, KnownTokenSlot::default).clone();
        let turn = tokio::time::timeout(REVIEW_TIMEOUT, slot.lock());
        let mut known = turn.await.map_err(|_| ReviewFailure::Unreachable)?;
        if let Some(known) = known.as_ref().filter(|known| self.clock.now() < known.until) {
            return Ok(known.user.clone());
        }
        let asked = match &*known {
            Some(KnownToken { user: Some(_), .. }) => self.renew(token).await,
            _ => self.review_unknown(token, from).await,
        };
        match &asked {
            Ok(user) => {
                let until = self.clock.now() + answer_ttl(user.is_some());
                *known = Some(KnownToken { user: user.clone(), until });
            }
            // Nothing is known of it, so that it takes no room from others.
            Err(_) if known.is_none() => _ = self.known().pop(&key),
            Err(_) => {}
        }
        asked
    }

    fn known(&self) -> MutexGuard<'_, LruCache<TokenFingerprint, KnownTokenSlot>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn renew(&self, token: &str) -> Result<Option<ReviewedUser>, ReviewFailure> {
        if !self.renewals.take(self.clock.now()) {
            self.metrics.throttled.inc();
            return Err(ReviewFailure::Throttled);
        }
        self.review(token).await
    }

    async fn review_unknown(
        &self,
        token: &str,
        from: ClientAddress,
    ) -> Result<Option<ReviewedUser>, ReviewFailure> {
        let now = self.clock.now();
        let own = self.unknown_from.take(&from, now);
        if !own || !self.unknown.take(now) {
            if own {
                self.unknown_from.give_back(&from);
            }
            self.metrics.throttled.inc();
            return Err(ReviewFailure::Throttled);
        }
        let asked = self.review(token).await;
        if !matches!(asked, Ok(None)) {
            self.unknown_from.give_back(&from);
        }
        asked
    }

    async fn review(&self, token: &str) -> Result<Option<ReviewedUser>, ReviewFailure> {
        let mut review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token },
        });
        if !self.audiences.is_empty() {
            review["spec"]["audiences"] = json!(self.audiences);
        }
        let asked = self.reviews.post(&review).await.map(|answer| self.user_of(&answer["status"]));
        match &asked {
            Ok(Some(_)) => self.metrics.authenticated.inc(),
            Ok(None) => self.metrics.rejected.inc(),
            Err(_) => self.metrics.failed.inc(),
        }
        asked
    }

    fn user_of(&self, status: &Value) -> Option<ReviewedUser> {
        // An authenticator that knows nothing of audiences returns none: then the token is one for the API server.
        let meant_for = |audience: &String| {
            let found = status["audiences"].as_array();
            found.is_some_and(|found| found.iter().any(|found| found == audience))
        };
        let meant_for_us = self.audiences.is_empty() || self.audiences.iter().any(meant_for);
        let known = status["authenticated"] == true && status["user"].is_object() && meant_for_us;
        known.then(|| ReviewedUser(status["user"].to_string().into()))
    }
}

/// The request's token.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::super::review_server::ReviewServer;
    use super::*;
    use crate::ServerClock;
    use crate::metrics::Metrics;

    fn good(_: &str, review: &Value) -> Value {
        let known = review["spec"]["token"] == "good";
        json!({ "status": { "authenticated": known, "user": { "username": "ann" } } })
    }

    #[tokio::test]
    async fn who_was_accepted_before_is_not_kept_waiting_by_strangers() {
        let server = ReviewServer::new(good);
        let clock = ServerClock::assume_local().local_clock();
        let metrics = Metrics::new(0).unwrap().token_reviews();
        let tokens = TokenAuthenticator::new(server.client(), clock, Vec::new(), metrics);
        let address = ClientAddress::from(std::net::IpAddr::from([10, 0, 0, 1]));
        let told = async |token: &str| tokens.authenticate(token, address).await;
        let expire = || {
            for (_, slot) in tokens.known().iter() {
                slot.try_lock().unwrap().as_mut().unwrap().until = Time(0);
            }
        };
        assert!(told("good").await.unwrap().is_some());
        for at in 0..100 {
            _ = told(&format!("bad {at}")).await;
        }
        assert_eq!(told("new").await, Err(ReviewFailure::Throttled));
        expire();
        assert!(told("good").await.unwrap().is_some());
        // Also after the API server did not answer.
        server.set_answer(|_, _| json!({ "code": 500, "status": "Failure", "message": "no", "reason": "" }));
        expire();
        assert_eq!(told("good").await, Err(ReviewFailure::Unreachable));
        server.set_answer(good);
        assert!(told("good").await.unwrap().is_some());
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        let headers = |value: &str| HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        let token = |value: &str| bearer_token(&headers(value)).map(str::to_owned);
        assert_eq!(token("Bearer abc.def"), Some("abc.def".to_owned()));
        assert_eq!(token("bearer  abc "), Some("abc".to_owned()));
        for value in ["Basic abc", "Bearer ", "Bearer", ""] {
            assert_eq!(token(value), None, "{value}");
        }
    }
}
