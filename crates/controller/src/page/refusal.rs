//! Errors of the page's API, each with advice on how to resolve it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageRefusal {
    /// The request has no token.
    NoToken,
    /// The API server does not accept the token, or no longer.
    WrongToken,
    /// The viewer is authenticated and may see nothing.
    NoRights,
    /// The parent does not exist, or the viewer may not see it: the two are indistinguishable.
    NotFound,
    /// The request's host name is not one of this machine.
    Misdirected,
    /// Rollcall may not create TokenReviews or SubjectAccessReviews.
    ReviewForbidden,
    /// The client's address, or its user, has asked for too many reviews.
    TooManyReviews,
    /// The user may not read metrics.
    MetricsForbidden,
    /// The API server or the loop does not respond.
    Unreachable,
    /// Too many streams are open.
    TooManyStreams,
    /// Too many searches below parents were asked for.
    TooManySearches,
    /// Below a tree of so many objects is not searched.
    TreeTooLarge,
    /// The request is malformed.
    BadRequest(&'static str),
}

impl PageRefusal {
    fn response_parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            PageRefusal::NoToken => (
                StatusCode::UNAUTHORIZED,
                "a Kubernetes token is needed",
                "send it as `Authorization: Bearer …`; `kubectl create token NAME` makes one for a service account",
            ),
            PageRefusal::WrongToken => (
                StatusCode::UNAUTHORIZED,
                "the API server does not accept this token; it may have expired",
                "`kubectl create token NAME` makes a new one for a service account",
            ),
            PageRefusal::NoRights => (
                StatusCode::FORBIDDEN,
                "you are not permitted to list any kind of parent in any namespace that has one",
                "ask for the right to `list` the parents' kind in their namespace",
            ),
            PageRefusal::NotFound => (
                StatusCode::NOT_FOUND,
                "no such parent, or you are not permitted to list its kind in its namespace",
                "",
            ),
            PageRefusal::Misdirected => (
                StatusCode::MISDIRECTED_REQUEST,
                "this listener serves only this machine",
                "open it as 127.0.0.1 or localhost; with another address in --listen it requires tokens instead",
            ),
            PageRefusal::ReviewForbidden => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Rollcall is not permitted to review tokens and access rights",
                "grant it `create` on tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io, or let it listen on loopback; --metrics-auth=false opens /metrics to anyone",
            ),
            PageRefusal::TooManyReviews => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many tokens from this address were not accepted, or too many rights were asked about",
                "try again in a few seconds",
            ),
            PageRefusal::MetricsForbidden => (
                StatusCode::FORBIDDEN,
                "you are not permitted to read the metrics",
                "ask for a ClusterRole with the verb `get` on the nonResourceURL `/metrics`",
            ),
            PageRefusal::Unreachable => {
                (StatusCode::SERVICE_UNAVAILABLE, "no answer from the API server", "try again")
            }
            PageRefusal::TooManyStreams => {
                (StatusCode::SERVICE_UNAVAILABLE, "too many streams are open", "try again later")
            }
            PageRefusal::TooManySearches => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many searches below parents were asked for",
                "try again in a few seconds",
            ),
            PageRefusal::TreeTooLarge => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "this parent has more than 100,000 objects",
                "`rollcall tree KIND/NAME` shows everything below it",
            ),
            PageRefusal::BadRequest(what) => (StatusCode::BAD_REQUEST, what, ""),
        }
    }
}

impl From<anyhow::Error> for PageRefusal {
    fn from(_: anyhow::Error) -> Self {
        // The loop has ended, and the process is about to end.
        PageRefusal::Unreachable
    }
}

impl IntoResponse for PageRefusal {
    fn into_response(self) -> Response {
        let (code, error, hint) = self.response_parts();
        let mut response = (code, Json(json!({ "error": error, "hint": hint }))).into_response();
        let headers = response.headers_mut();
        if code == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"kubernetes\""));
        }
        if matches!(code, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
