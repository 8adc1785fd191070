//! Why somebody gets nothing, in words that say what to do about it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no token.
    NoToken,
    /// The server does not know it, or not any more.
    WrongToken,
    /// Somebody known, who may see nothing of it.
    NoRights,
    /// There is no such parent, or none that this somebody may see: the two look alike.
    NotFound,
    /// It came by a name that is not this machine's.
    Misdirected,
    /// We may not ask who they are and what they may see.
    MayNotAsk,
    /// The API server or the loop does not answer.
    Unreachable,
    /// There are too many streams already.
    TooMany,
    /// What was asked for makes no sense.
    Nonsense(&'static str),
}

impl Refusal {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Refusal::NoToken => (
                StatusCode::UNAUTHORIZED,
                "a Kubernetes token is needed",
                "send it as `Authorization: Bearer …`; `kubectl create token NAME` makes one for a service account",
            ),
            Refusal::WrongToken => (
                StatusCode::UNAUTHORIZED,
                "the API server does not know this token, or not any more",
                "`kubectl create token NAME` makes a new one for a service account",
            ),
            Refusal::NoRights => (
                StatusCode::FORBIDDEN,
                "you may list no kind of parent in any namespace that has one",
                "parents are shown to those who may `list` their kind in their namespace",
            ),
            Refusal::NotFound => {
                (StatusCode::NOT_FOUND, "no such parent, or you may not list its kind in its namespace", "")
            }
            Refusal::Misdirected => (
                StatusCode::MISDIRECTED_REQUEST,
                "this listener is for this machine alone",
                "call it 127.0.0.1 or localhost; --listen with another address asks for tokens instead",
            ),
            Refusal::MayNotAsk => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Rollcall may not ask the API server who you are",
                "grant it `create` on tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io, or let it listen on loopback",
            ),
            Refusal::Unreachable => {
                (StatusCode::SERVICE_UNAVAILABLE, "no answer from the API server", "try again")
            }
            Refusal::TooMany => {
                (StatusCode::SERVICE_UNAVAILABLE, "too many streams are open", "try again later")
            }
            Refusal::Nonsense(what) => (StatusCode::BAD_REQUEST, what, ""),
        }
    }
}

impl From<anyhow::Error> for Refusal {
    fn from(_: anyhow::Error) -> Self {
        // The loop is gone, and with it, in a moment, the process.
        Refusal::Unreachable
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (code, error, hint) = self.parts();
        let mut response = (code, Json(json!({ "error": error, "hint": hint }))).into_response();
        let headers = response.headers_mut();
        if code == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"kubernetes\""));
        }
        if code == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
