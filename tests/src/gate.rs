//! A proxy before the API server that passes, holds or refuses requests as a test demands. It reproduces the failures
//! that a network causes by chance.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt;
use http::{Method, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::TEST_TIMEOUT;
use crate::caller::ApiCaller;

/// Treatment of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum GateRule {
    /// Requests go on to the server.
    Pass,
    /// Requests of this method whose path contains this wait until the rule changes.
    Hold(Method, String),
    /// Requests of this method whose path contains this are answered with this status, without reaching the server.
    Answer(Method, String, StatusCode),
    /// Requests of this method whose path contains this reach the server, but their answer is lost.
    LoseAnswer(Method, String),
    /// Watches send nothing, and their events are lost; all other requests pass.
    Mute,
    /// Nothing reaches the server, and open requests are cut.
    Down,
}

impl GateRule {
    fn meets(&self, request: &Request) -> bool {
        match self {
            Self::Pass | Self::Mute => false,
            Self::Down => true,
            Self::Hold(method, part) | Self::Answer(method, part, _) | Self::LoseAnswer(method, part) => {
                request.method() == method && request.uri().to_string().contains(part)
            }
        }
    }
}

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
    /// One permit for every request that met a rule other than `Pass`.
    caught: Semaphore,
}

impl ApiGate {
    /// Opens a gate; passing requests are sent with the identity of `caller`.
    pub async fn open(caller: &ApiCaller) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (rule, watching) = watch::channel(GateRule::Pass);
        let shared =
            Arc::new(GateState { server: caller.client(), rule: watching, caught: Semaphore::new(0) });
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
            GateRule::Pass | GateRule::Mute => {}
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
        }
    }
    match forward(&shared.server, request).await {
        Ok(response) if is_watch => response.map(|body| watch_body(body, watching)),
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

fn watch_body(body: kube::client::Body, watching: watch::Receiver<GateRule>) -> Body {
    let mut until = watching.clone();
    let down = async move { until.wait_for(|rule| *rule == GateRule::Down).await.is_ok() };
    let heard = Body::new(body).into_data_stream().filter(move |_| {
        let muted = *watching.borrow() == GateRule::Mute;
        async move { !muted }
    });
    Body::from_stream(heard.take_until(Box::pin(down)))
}

fn answer(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
