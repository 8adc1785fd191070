//! A proxy before the API server that passes, holds or refuses requests as a test demands. It reproduces the failures
//! that a network causes by chance.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::TEST_TIMEOUT;
use crate::caller::ApiCaller;
pub use crate::gate_rule::GateRule;
use crate::watch_lines::WatchLines;

/// A listening gate; closed when dropped.
pub struct ApiGate {
    /// URL for clients.
    pub url: String,
    rule: watch::Sender<GateRule>,
    shared: Arc<GateState>,
    server: JoinHandle<()>,
}

struct GateState {
    server: kube::Client,
    rule: watch::Receiver<GateRule>,
    /// One permit for every request that met a rule other than `Pass`, and every line of a watch that was held up or cut.
    caught: Arc<Semaphore>,
    bookmarks: bool,
}

impl ApiGate {
    /// Opens a gate; passing requests are sent with the identity of `caller`.
    pub async fn open(caller: &ApiCaller) -> Result<Self> {
        Self::open_with(caller, true).await
    }

    /// Like [`ApiGate::open`]; no watch through it ever has a bookmark.
    pub async fn open_without_bookmarks(caller: &ApiCaller) -> Result<Self> {
        Self::open_with(caller, false).await
    }

    async fn open_with(caller: &ApiCaller, bookmarks: bool) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (rule, watching) = watch::channel(GateRule::Pass);
        let caught = Arc::new(Semaphore::new(0));
        let shared = Arc::new(GateState { server: caller.client(), rule: watching, caught, bookmarks });
        let app = axum::Router::new().fallback(pass).with_state(shared.clone());
        let server = tokio::spawn(async move {
            // Runs until the gate is dropped.
            let _ = axum::serve(listener, app).into_future().await;
        });
        Ok(Self { url, rule, shared, server })
    }

    /// Sets the rule; it applies to waiting requests too.
    pub fn set(&self, rule: GateRule) {
        // Permits of the earlier rule must not count for the new one.
        self.shared.caught.forget_permits(usize::MAX >> 4);
        self.rule.send_replace(rule);
    }

    /// Waits until the rule has caught a request.
    pub async fn caught(&self) -> Result<()> {
        self.caught_within(TEST_TIMEOUT).await
    }

    /// Like [`ApiGate::caught`], with a time limit.
    pub async fn caught_within(&self, bound: Duration) -> Result<()> {
        let permit = timeout(bound, self.shared.caught.acquire()).await;
        permit.map_err(|_| anyhow!("no request met the gate's rule {:?}", *self.rule.borrow()))??.forget();
        Ok(())
    }

    /// Number of requests that the rule has caught, without those that were waited for.
    pub fn count_caught(&self) -> usize {
        self.shared.caught.available_permits()
    }
}

impl Drop for ApiGate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(State(shared): State<Arc<GateState>>, request: Request) -> Response {
    let mut watching = shared.rule.clone();
    let rule = watching.borrow_and_update().clone();
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    if rule.meets(&request) {
        let caught = || shared.caught.add_permits(1);
        match rule {
            GateRule::Pass | GateRule::Mute | GateRule::Late(_) | GateRule::CutLines => {}
            GateRule::Hold(..) => {
                caught();
                // An error means that the gate is dropped, and the request with it.
                let _ = watching.changed().await;
            }
            GateRule::Answer(_, _, status) => {
                caught();
                return answer(status);
            }
            GateRule::Down => {
                caught();
                return answer(StatusCode::SERVICE_UNAVAILABLE);
            }
            GateRule::LoseAnswer(..) => {
                let _ = forward(&shared.server, request).await;
                caught();
                return answer(StatusCode::GATEWAY_TIMEOUT);
            }
            GateRule::HoldAnswer(..) => {
                let response = forward(&shared.server, request).await;
                caught();
                let _ = watching.changed().await;
                return response
                    .map_or_else(|_| answer(StatusCode::BAD_GATEWAY), |whole| whole.map(Body::new));
            }
            GateRule::Throttle(seconds) => {
                caught();
                return throttled(seconds);
            }
        }
    }
    match forward(&shared.server, request).await {
        Ok(response) if is_watch => {
            let lines =
                WatchLines { rule: watching, caught: shared.caught.clone(), bookmarks: shared.bookmarks };
            response.map(|body| lines.carry(body))
        }
        Ok(response) => response.map(Body::new),
        Err(_) => answer(StatusCode::BAD_GATEWAY),
    }
}

async fn forward(server: &kube::Client, request: Request) -> Result<Response<kube::client::Body>> {
    let (mut parts, body) = request.into_parts();
    // Requests carry the caller's identity; the client sets these two headers itself.
    parts.headers.remove(http::header::AUTHORIZATION);
    parts.headers.remove(http::header::HOST);
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    Ok(server.send(http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()))).await?)
}

/// As the API server answers whom it has no room for.
fn throttled(seconds: u32) -> Response {
    let mut response = Response::new(Body::from("Too many requests, please try again later.\n"));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    response
}

fn answer(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
