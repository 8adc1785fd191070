//! A page over given parents, whose API server has neither users nor objects: for fuzzing.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use http::{Request, Response};
use kube::client::Body;
use prometheus::{IntCounterVec, Opts};
use readiness::rollup::ParentReason;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::authz::PageAuthorizer;
use super::page_service::{PageConfig, PageService};
use super::view::PageView;
use super::{LOOP_QUERY_QUEUE_SIZE, LoopQuery, page_router};
use crate::clock::ServerClock;
use crate::kind_tasks::ResolvedKinds;
use crate::listener::fixture::serve_connection;
use crate::metrics::Metrics;
use crate::reviews::{AccessAuthorizer, TokenAuthenticator};
use crate::transitions::TransitionHub;
use rollcall_core::{ParentChanges, ParentDetail};

/// Time after which a client goes away; longer than every limit of the listener.
const CLIENT_STAY: Duration = Duration::from_secs(45);
/// Capacity of each direction of a connection, in bytes.
const PIPE_SIZE: usize = 256 * 1024;

/// A page over given parents.
pub struct PageFixture {
    router: Router,
    metrics: Arc<Metrics>,
    _transitions: Arc<TransitionHub>,
}

impl PageFixture {
    /// A page that listens on loopback, or where tokens are needed. Its parents: namespace, name and reason.
    pub async fn new(is_local: bool, parents: &[(&str, &str, ParentReason)]) -> anyhow::Result<PageFixture> {
        let client = kube::Client::new(EmptyServer, "default");
        let metrics = Arc::new(Metrics::new(0)?);
        let clock = ServerClock::assume_local();
        let tokens =
            TokenAuthenticator::new(client.clone(), clock.local_clock(), Vec::new(), metrics.token_reviews());
        let rights = AccessAuthorizer::new(client.clone(), clock.local_clock());
        let (queries, asked) = mpsc::channel(LOOP_QUERY_QUEUE_SIZE);
        tokio::spawn(answer_queries(asked));
        let resolved = ResolvedKinds::default();
        let dropped = IntCounterVec::new(Opts::new("dropped", "dropped"), &["by"])?;
        let transitions = Arc::new(TransitionHub::new(resolved.clone(), dropped));
        let page = PageService::new(PageConfig {
            authz: PageAuthorizer::new(is_local, tokens, rights),
            client,
            reflector: Arc::new(Reflector::new(|| ())),
            resolved,
            metrics: metrics.clone(),
            clock,
            queries,
            snapshot: watch::channel(Arc::default()).1,
            transitions: Arc::downgrade(&transitions),
            stop: CancellationToken::new(),
        });
        page.0.views.hold_view(PageView::of_parents(parents)).await;
        Ok(PageFixture { router: page_router(page), metrics, _transitions: transitions })
    }

    /// Everything that a client gets that sends these bytes and waits.
    pub async fn exchange(&self, sent: &[u8]) -> Vec<u8> {
        let (mut client, server) = tokio::io::duplex(PIPE_SIZE);
        let served = serve_connection(server, self.router.clone(), &self.metrics);
        let mut received = Vec::new();
        let asked = async {
            // The server may have closed it before.
            _ = client.write_all(sent).await;
            _ = client.read_to_end(&mut received).await;
        };
        _ = tokio::time::timeout(CLIENT_STAY, async { tokio::join!(served, asked) }).await;
        received
    }
}

/// Answers as a loop without parents does.
async fn answer_queries(mut asked: mpsc::Receiver<LoopQuery>) {
    while let Some(query) = asked.recv().await {
        match query {
            LoopQuery::Changes(_, to) => _ = to.send(ParentChanges::default()),
            LoopQuery::EndChanges => {}
            LoopQuery::Edges(to) => _ = to.send(Vec::new()),
            LoopQuery::Details(of, to) => _ = to.send(vec![ParentDetail::default(); of.len()]),
        }
    }
}

/// An API server that authenticates no user and has no objects.
#[derive(Clone)]
struct EmptyServer;

impl tower_service::Service<Request<Body>> for EmptyServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_review = request.uri().path().ends_with("/tokenreviews");
        let answer = if is_review {
            json!({ "status": { "authenticated": false } })
        } else {
            json!({ "kind": "Status", "code": 404, "reason": "NotFound", "message": "nothing is here" })
        };
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() =
            if is_review { http::StatusCode::CREATED } else { http::StatusCode::NOT_FOUND };
        std::future::ready(Ok(response))
    }
}
