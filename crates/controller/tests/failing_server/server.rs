//! An API server as a function, which fails what it is told to fail.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service;

use crate::cost::OutageRequest;
use crate::failure::{ANSWERED_AFTER, FAILS_AFTER, FailureScope, RequestFailure};
use crate::lease::ServedLease;
use crate::objects::ServedObjects;
use crate::request::ApiRequest;

/// What the server says what time it is, in answers that name a time to come back.
const RESPONSE_DATE: &str = "Fri, 31 Dec 2100 23:58:59 GMT";

/// How many kinds of children there are beside pods, where there are many.
const PART_KINDS: usize = 30;
/// How long a start takes.
const START: Duration = Duration::from_secs(30);

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// The server.
#[derive(Clone)]
pub(crate) struct FailingServer(Arc<FailingServerState>);

struct FailingServerState {
    failure: RequestFailure,
    scope: FailureScope,
    start: Instant,
    objects: ServedObjects,
    lease: ServedLease,
    parent_writes: AtomicUsize,
    /// Requests so far.
    requests: Mutex<Vec<OutageRequest>>,
}

impl FailingServer {
    pub(crate) fn new(parents: usize, scope: FailureScope, failure: RequestFailure) -> FailingServer {
        FailingServer(Arc::new(FailingServerState {
            failure,
            scope,
            start: Instant::now(),
            objects: ServedObjects::new(parents, if scope.breaks_watches() { PART_KINDS } else { 0 }),
            lease: ServedLease::default(),
            parent_writes: AtomicUsize::new(0),
            requests: Mutex::default(),
        }))
    }

    /// Takes the requests so far.
    pub(crate) fn take_requests(&self) -> Vec<OutageRequest> {
        std::mem::take(&mut self.0.requests.lock().unwrap())
    }

    /// Number of parents whose condition says True.
    pub(crate) fn count_ready(&self) -> usize {
        self.0.objects.count_ready()
    }
}

impl FailingServerState {
    /// Answers as a server should.
    fn answer(&self, request: &ApiRequest) -> Answer {
        let ApiRequest { method, path, query, body } = request;
        if query.contains("watch=") {
            let seconds =
                query.split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds=")?.parse().ok());
            let span = Duration::from_secs(seconds.unwrap_or(60));
            let at = self.start.elapsed();
            return if self.scope.breaks_watches() && at <= FAILS_AFTER && at + span > FAILS_AFTER {
                silence_for(FAILS_AFTER.saturating_sub(at), Some(io::ErrorKind::ConnectionReset.into()))
            } else {
                silence_for(span, None)
            };
        }
        if ServedLease::is_asked(request) {
            let (code, text) = self.lease.answer(request);
            return whole(code, None, text);
        }
        if let Some(number) = ServedObjects::parent_number(path).filter(|_| method == Method::PATCH) {
            return match self.objects.patch_parent(number, body) {
                Some(patched) => whole(200, None, patched.to_string()),
                None => self.refuse(422, None, path),
            };
        }
        if let Some(text) = self.objects.read(path) {
            return whole(200, None, text);
        }
        match path.as_str() {
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                let allowed = !matches!(self.scope, FailureScope::Bindings | FailureScope::Roles);
                whole(201, None, json!({ "status": { "allowed": allowed } }).to_string())
            }
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
                let user = json!({ "username": "system:serviceaccount:home:rollcall" });
                whole(201, None, json!({ "status": { "userInfo": user } }).to_string())
            }
            _ if path.starts_with("/apis/rbac.authorization.k8s.io/v1/clusterroles/") => {
                let rule = json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] });
                whole(200, None, json!({ "rules": [rule] }).to_string())
            }
            _ if path.contains("/events") => whole(201, None, r#"{"kind":"Event"}"#),
            _ => whole(404, None, format!("404 page not found: {path}")),
        }
    }

    fn refuse(&self, code: u16, retry_after: Option<&str>, path: &str) -> Answer {
        let message = format!("the server could not take {path}: {:?}; {}", self.failure, "x".repeat(200));
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": message, "reason": "Failing", "code": code });
        whole(code, retry_after, status.to_string())
    }

    /// Fails as it was told.
    async fn fail(&self, request: &ApiRequest) -> Result<Answer, BoxError> {
        let path = &request.path;
        let number = ServedObjects::parent_number(path);
        Ok(match self.failure {
            RequestFailure::Status(code) => self.refuse(code, None, path),
            RequestFailure::RetryAfter(code, value) => self.refuse(code, Some(value), path),
            RequestFailure::Page(code) => {
                whole(code, None, format!("<html><body>Bad gateway{}</body></html>", " ".repeat(4_000)))
            }
            RequestFailure::Gone => {
                let name = path.trim_end_matches("/status").rsplit('/').next().unwrap_or_default();
                let plural = if path.contains("/caches/") { "caches" } else { "databases" };
                let status = json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
                    "details": { "name": name, "group": "example.com", "kind": plural } });
                whole(404, None, status.to_string())
            }
            RequestFailure::Invalid(reason, field, message) => {
                let cause = json!({ "reason": reason, "field": field, "message": message });
                let status = json!({ "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422,
                    "message": message, "details": { "causes": [cause] } });
                whole(422, None, status.to_string())
            }
            RequestFailure::Silence => std::future::pending().await,
            RequestFailure::Slow(delay) => {
                let answer = self.answer(request);
                tokio::time::sleep(delay).await;
                answer
            }
            RequestFailure::Refused => return Err("connection refused".into()),
            RequestFailure::Untrusted => return Err("invalid peer certificate: UnknownIssuer".into()),
            RequestFailure::Reset => broken(self.answer(request), true).await,
            RequestFailure::Truncated => broken(self.answer(request), false).await,
            RequestFailure::OtherObject => {
                let other = number.map_or(0, |number| number ^ 2);
                whole(200, None, self.objects.parent(other).to_string())
            }
            RequestFailure::Pruned => match number {
                Some(number) => whole(200, None, self.objects.parent(number).to_string()),
                None => self.answer(request),
            },
            RequestFailure::Rewritten(field) => {
                let answer = self.answer(request);
                match number.filter(|_| answer.status().is_success()) {
                    Some(number) => {
                        whole(200, None, self.objects.rewrite_conditions(number, field).to_string())
                    }
                    None => answer,
                }
            }
        })
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for FailingServer {
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let parts = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let request = ApiRequest {
                method: head.method,
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                body: body.collect().await?.to_bytes(),
            };
            let at = Instant::now() - parts.start;
            let watch = if request.query.contains("watch=") { " watch" } else { "" };
            let asked = format!("{} {}{watch}", request.method, request.path);
            let is_parent_write =
                request.method == Method::PATCH && ServedObjects::parent_number(&request.path).is_some();
            let number = parts.parent_writes.fetch_add(usize::from(is_parent_write), Ordering::Relaxed);
            let fails = !ServedLease::is_asked(&request) && parts.scope.fails(&request, number, at);
            let is_event = request.method == Method::POST && request.path.contains("/events");
            let is_news = !fails && (is_parent_write || is_event);
            let is_of_start =
                !request.path.starts_with("/apis/example.com/") && !ServedLease::is_asked(&request);
            let is_start = !fails && at < START && is_of_start;
            parts.requests.lock().unwrap().push(OutageRequest { at, asked, is_news, is_start, fails });
            tokio::time::sleep(ANSWERED_AFTER).await;
            if fails {
                return parts.fail(&request).await;
            }
            Ok(parts.answer(&request))
        })
    }
}

fn whole(status: u16, retry_after: Option<&str>, body: impl Into<Bytes>) -> Answer {
    let body = futures::stream::iter([Ok(Frame::data(body.into()))]);
    let mut response = Response::builder().status(status);
    if let Some(value) = retry_after {
        response = response.header("Retry-After", value).header("Date", RESPONSE_DATE);
    }
    response.body(UnsyncBoxBody::new(StreamBody::new(body))).unwrap()
}

/// The first half of an answer; the rest is lost in silence, or with an error.
async fn broken(answer: Answer, with_error: bool) -> Answer {
    let (head, body) = answer.into_parts();
    let mut whole = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    whole.truncate(whole.len() / 2);
    let error = with_error.then(|| Err(io::ErrorKind::ConnectionReset.into()));
    let frames = [Ok(Frame::data(whole))].into_iter().chain(error);
    Response::from_parts(head, UnsyncBoxBody::new(StreamBody::new(futures::stream::iter(frames))))
}

/// A watch over which nothing comes for so long, and that ends then, or breaks.
fn silence_for(span: Duration, error: Option<io::Error>) -> Answer {
    let end = futures::stream::once(async move {
        tokio::time::sleep(span).await;
        error.map_or_else(|| Ok(Frame::data(Bytes::new())), Err)
    });
    Response::new(UnsyncBoxBody::new(StreamBody::new(end)))
}
