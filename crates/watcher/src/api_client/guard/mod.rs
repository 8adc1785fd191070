//! The guard between kube and the server: pacing, deadlines, valid UTF-8.
//!
//! kube-runtime's `watcher` reopens a watch as fast as it ends, waits 290 s for a silent socket, and loses a whole list
//! or watch to one byte that is not UTF-8. None of that can be configured, but all of it passes through the HTTP
//! service below it, so the guard is placed there.

mod body;
mod errors;
mod fetch;
mod guard_state;
mod pacer;
mod request;
mod retry_turns;
pub(crate) mod utf8;

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tower_service::Service;

use super::retry_after::parse_retry_after;
use body::{GuardedBody, GuardedBodyKind};
pub(crate) use errors::{BlindWatch, BoxError, ResponseStalled};
pub(crate) use fetch::{FetchedResponse, fetch_response};
pub(crate) use guard_state::{GuardLimits, GuardSignal, GuardState};
pub(crate) use pacer::RequestPacer;
pub(crate) use request::UNKNOWN_VERSION;
pub use retry_turns::RetryTurns;

/// The guarded HTTP service of one follow.
#[derive(Clone)]
pub(crate) struct RequestGuard {
    client: kube::Client,
    shared: Arc<GuardState>,
}

impl RequestGuard {
    /// Creates a guarded client and the state that it shares with its user.
    pub(crate) fn wrap_client(
        inner: &kube::Client,
        limits: GuardLimits,
        pace: RequestPacer,
        turns: Arc<RetryTurns>,
    ) -> (kube::Client, Arc<GuardState>, mpsc::Receiver<GuardSignal>) {
        let (signals, receiver) = mpsc::channel(16);
        let shared =
            Arc::new(GuardState { limits, pace: Mutex::new(pace), turns, place: Mutex::default(), signals });
        let guard = RequestGuard { client: inner.clone(), shared: shared.clone() };
        (kube::Client::new(guard, inner.default_namespace()), shared, receiver)
    }

    /// Waits until then, or until the connections that failed are there again; what the server has asked for is waited for anyhow.
    async fn wait_until(&self, at: Instant) {
        let is_asked = self.shared.lock_pacer().is_asked_to_wait(Instant::now());
        tokio::select! {
            () = sleep_until(at) => {}
            () = self.shared.turns.wait_until_restored(), if !is_asked => {}
        }
    }

    async fn send_guarded(self, request: Request<Body>) -> Result<Response<GuardedBody>, BoxError> {
        let not_before = self.shared.lock_pacer().not_before();
        if let Some(at) = not_before {
            self.wait_until(at).await;
            self.shared.turns.wait_turn().await;
            self.shared.lock_pacer().pass(at);
        }
        let (request, span) = self.prepare_request(request)?;
        let read = self.shared.limits.read;
        let response = match timeout(read, self.client.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                self.shared.note_failure();
                return Err(error.into());
            }
            Err(_) => {
                self.shared.note_failure();
                return Err(Box::new(ResponseStalled(read)));
            }
        };
        let span = if response.status().is_success() {
            span
        } else {
            self.shared.lock_pacer().record_failure(Instant::now(), parse_retry_after(response.headers()));
            GuardedBodyKind::Refusal(read)
        };
        Ok(response.map(|body| GuardedBody::new(body, self.shared.clone(), span)))
    }

    fn prepare_request(&self, request: Request<Body>) -> Result<(Request<Body>, GuardedBodyKind), BoxError> {
        let limits = &self.shared.limits;
        if !request::is_watch(request.uri()) {
            return Ok((request, GuardedBodyKind::Page(limits.read)));
        }
        if self.shared.lock_pacer().is_blind(Instant::now(), limits.blind) {
            return Err(Box::new(BlindWatch));
        }
        let mut place = self.shared.place.lock().unwrap_or_else(PoisonError::into_inner);
        let (uri, length) = place.rewrite_watch(request.uri(), &limits.watch, limits.seed)?;
        let (mut parts, body) = request.into_parts();
        parts.uri = uri;
        Ok((Request::from_parts(parts, body), GuardedBodyKind::Watch(length + limits.grace)))
    }
}

impl Service<Request<Body>> for RequestGuard {
    type Response = Response<GuardedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send_guarded(request))
    }
}
