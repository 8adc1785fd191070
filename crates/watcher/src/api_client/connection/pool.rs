//! One pool of connections, and the bodies that come over it.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::BoxError;

/// A response body as the connection brings it.
pub(super) type WireBody = UnsyncBoxBody<Bytes, BoxError>;

/// Sends requests over connections that it keeps.
pub(super) trait SendRequest: Send + Sync {
    /// Sends a request; the answer is there when its headers are.
    fn send_request(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<WireBody>, BoxError>>;
}

/// The pool was given up, and nothing had come over this connection since that was considered.
#[derive(Debug, thiserror::Error)]
#[error("the connection was given up: others did not answer either, and a new one did")]
pub(super) struct PoolDiscarded;

/// Whether a request or a body ended because its pool was given up.
pub(crate) fn is_discarded(error: &(dyn Error + 'static)) -> bool {
    error.is::<PoolDiscarded>() || error.source().is_some_and(is_discarded)
}

/// Connections that were opened since the same moment.
pub(super) struct ConnectionPool {
    pub(super) requests: Box<dyn SendRequest>,
    /// One connection that nothing but liveness reads goes over. Nothing that kills all connections of the pool leaves
    /// this one alive, while one of the others may have been opened since.
    pub(super) probes: Box<dyn SendRequest>,
    /// Which certificates its connections are made with.
    pub(super) certificates: u64,
    discarded: CancellationToken,
    /// Time since which a connection must have brought something to be kept.
    silent_since: OnceLock<Instant>,
}

impl ConnectionPool {
    pub(super) fn new(
        requests: Box<dyn SendRequest>,
        probes: Box<dyn SendRequest>,
        certificates: u64,
    ) -> Self {
        ConnectionPool {
            requests,
            probes,
            certificates,
            discarded: CancellationToken::new(),
            silent_since: OnceLock::new(),
        }
    }

    /// Gives up every connection over which nothing has come since `silent_since`.
    pub(super) fn discard(&self, silent_since: Instant) {
        _ = self.silent_since.set(silent_since);
        self.discarded.cancel();
    }

    /// Waits until the pool is given up.
    pub(super) async fn wait_until_discarded(&self) {
        self.discarded.cancelled().await;
    }

    fn is_live_by(&self, last_data_at: Instant) -> bool {
        self.silent_since.get().is_some_and(|silent_since| last_data_at >= *silent_since)
    }
}

/// A response body that ends with its pool, unless it still brings something.
pub(super) struct PooledBody {
    inner: WireBody,
    pool: Arc<ConnectionPool>,
    discarded: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    last_data_at: Instant,
}

impl PooledBody {
    pub(super) fn new(inner: WireBody, pool: Arc<ConnectionPool>) -> Self {
        let discarded = Some(Box::pin(pool.discarded.clone().cancelled_owned()));
        PooledBody { inner, pool, discarded, last_data_at: Instant::now() }
    }

    /// Whether the pool was given up, and this connection with it.
    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(discarded) = &mut self.discarded else { return false };
        if discarded.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.discarded = None;
        !self.pool.is_live_by(self.last_data_at)
    }
}

impl http_body::Body for PooledBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Pending if self.is_cut(cx) => Poll::Ready(Some(Err(Box::new(PoolDiscarded)))),
            Poll::Pending => Poll::Pending,
            Poll::Ready(frame) => {
                self.last_data_at = Instant::now();
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}
