//! The transport below every request of a client: it sends over the pool that is in use now.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower_service::Service;

use super::BoxError;
use super::pool::{ConnectionPool, PoolDiscarded, PooledBody, WireBody};

/// Time without response headers after which a request gives reason to look whether its connections are alive. 5 s.
const SLOW_RESPONSE: Duration = Duration::from_secs(5);

/// Opens pools of connections to one server.
pub(super) trait OpenPool: Send + Sync {
    /// Reads the certificates again if their files changed. Returns the number of times that they did.
    fn read_certificates(&self) -> u64;

    /// Opens a pool with the certificates that were read last; its connections are made when they are needed.
    fn open_pool(&self) -> ConnectionPool;
}

/// Marks a request as a liveness read of this pool.
#[derive(Clone)]
pub(super) struct LivenessRead(pub(super) Arc<ConnectionPool>);

/// The pool in use, shared by all requests of a client and by the monitor, which alone replaces it.
pub(super) struct PoolSlot {
    opener: Box<dyn OpenPool>,
    current: Mutex<Arc<ConnectionPool>>,
    doubt: Notify,
}

impl PoolSlot {
    pub(super) fn new(opener: impl OpenPool + 'static) -> Self {
        let current = Mutex::new(Arc::new(opener.open_pool()));
        PoolSlot { opener: Box::new(opener), current, doubt: Notify::new() }
    }

    pub(super) fn current_pool(&self) -> Arc<ConnectionPool> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens a pool with the certificates as their files have them.
    pub(super) fn open_pool(&self) -> Arc<ConnectionPool> {
        self.opener.read_certificates();
        Arc::new(self.opener.open_pool())
    }

    /// Whether the certificates changed since `pool` was opened.
    pub(super) fn is_outdated(&self, pool: &ConnectionPool) -> bool {
        pool.certificates != self.opener.read_certificates()
    }

    /// Puts a pool into use, and gives up the connections of the one before over which nothing has come since `silent_since`.
    pub(super) fn replace_pool(&self, pool: Arc<ConnectionPool>, silent_since: Instant) {
        let before =
            std::mem::replace(&mut *self.current.lock().unwrap_or_else(PoisonError::into_inner), pool);
        before.discard(silent_since);
    }

    /// Waits until a request has reason to doubt its connection.
    pub(super) async fn wait_for_doubt(&self) {
        self.doubt.notified().await;
    }

    async fn send(&self, mut request: Request<Body>) -> Result<Response<PooledBody>, BoxError> {
        if let Some(LivenessRead(pool)) = request.extensions().get().cloned() {
            let answer = pool.probes.send_request(request).await?;
            return Ok(answer.map(|body| PooledBody::new(body, pool)));
        }
        loop {
            let Some(again) = copy_of_read(&request) else {
                // What becomes of a write that is cut is not known: each has its own deadline instead.
                let pool = self.current_pool();
                let answer = self.await_answer(pool.requests.send_request(request)).await?;
                return Ok(answer.map(|body| PooledBody::new(body, pool)));
            };
            let pool = self.current_pool();
            let answer = tokio::select! { biased;
                answer = self.await_answer(pool.requests.send_request(request)) => answer,
                () = pool.wait_until_discarded() => Err(PoolDiscarded.into()),
            };
            match answer {
                Err(error) if error.is::<PoolDiscarded>() => request = again,
                answer => return Ok(answer?.map(|body| PooledBody::new(body, pool))),
            }
        }
    }

    /// Waits for an answer, for as long as it takes; one that is slow is reason for doubt.
    async fn await_answer(
        &self,
        answer: BoxFuture<'static, Result<Response<WireBody>, BoxError>>,
    ) -> Result<Response<WireBody>, BoxError> {
        let mut answer = answer;
        if let Ok(answer) = tokio::time::timeout(SLOW_RESPONSE, &mut answer).await {
            return answer;
        }
        self.doubt.notify_one();
        answer.await
    }
}

/// The same request again, if it only reads.
fn copy_of_read(request: &Request<Body>) -> Option<Request<Body>> {
    if request.method() != Method::GET {
        return None;
    }
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// Service at the bottom of a client.
#[derive(Clone)]
pub(super) struct PooledTransport(pub(super) Arc<PoolSlot>);

impl Service<Request<Body>> for PooledTransport {
    type Response = Response<PooledBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let slot = self.0.clone();
        Box::pin(async move { slot.send(request).await })
    }
}
