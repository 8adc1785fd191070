//! HTTP listener that no client can take from the others: bounded connections, and time limits on whatever a client is
//! to send or to read.
//!
//! **Invariant:** a client holds nothing by being slow. A request has to be complete within the header timeout, bodies
//! are never waited for, and so much of a response has to be read within the write timeout that each comes to its end.

mod admission;
mod certificate;
#[cfg(feature = "fixtures")]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use admission::{Admission, ConnectionId, ConnectionTable};
use write_timeout::TimeoutStream;

pub(crate) use admission::{ClientAddress, ConnectionLimits};
pub(crate) use certificate::{CertificateSource, ReloadedCertificate};

use crate::metrics::ListenerMetrics;

/// Maximum size of a request's head, and of what is read ahead of it, in bytes. A token with many groups fits.
const MAX_REQUEST_HEAD_SIZE: usize = 32 * 1024;
/// Wait after a connection could not be accepted, usually for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Time limits of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerTimeouts {
    /// From the start of a connection, or the end of a response, until the next request's head is complete; the same
    /// again for a TLS handshake.
    pub(crate) header: Duration,
    /// Longest time for which a client may read less than 64 KiB, and not all, while data is pending.
    pub(crate) write: Duration,
}

impl ListenerTimeouts {
    /// Limits of the listener of page, API and metrics.
    pub(crate) const PAGE: ListenerTimeouts =
        ListenerTimeouts { header: Duration::from_secs(10), write: Duration::from_secs(20) };
    /// Limits of the listener of probes.
    pub(crate) const PROBES: ListenerTimeouts =
        ListenerTimeouts { header: Duration::from_secs(5), write: Duration::from_secs(5) };
}

/// A bound listener with its limits.
pub(crate) struct HttpListener {
    /// The socket.
    pub(crate) socket: TcpListener,
    /// Maximum numbers of connections.
    pub(crate) limits: ConnectionLimits,
    /// Time limits.
    pub(crate) timeouts: ListenerTimeouts,
    /// Encrypts the connections.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Counts the connections.
    pub(crate) metrics: ListenerMetrics,
}

/// What the connections of a listener share.
struct ListenerState {
    table: Mutex<ConnectionTable<CancellationToken>>,
    timeouts: ListenerTimeouts,
    tls: Option<TlsAcceptor>,
    metrics: ListenerMetrics,
    router: Router,
    stop: CancellationToken,
}

impl HttpListener {
    /// Serves `router` until `stop`, then finishes the responses that were begun.
    pub(crate) async fn serve(self, router: Router, stop: CancellationToken) -> anyhow::Result<()> {
        let HttpListener { socket, limits, timeouts, tls, metrics } = self;
        let table = Mutex::new(ConnectionTable::new(limits));
        let state = Arc::new(ListenerState { table, timeouts, tls, metrics, router, stop: stop.clone() });
        let connections = TaskTracker::new();
        while let Some((stream, peer)) = accept(&socket, &stop).await {
            if let Some(serving) = state.clone().admit(stream, peer) {
                connections.spawn(serving);
            }
        }
        drop(socket);
        for waiting in state.table().close_waiting() {
            waiting.cancel();
        }
        connections.close();
        connections.wait().await;
        Ok(())
    }
}

/// Next connection; `None` after `stop`.
async fn accept(socket: &TcpListener, stop: &CancellationToken) -> Option<(TcpStream, SocketAddr)> {
    loop {
        let accepted = tokio::select! { biased;
            () = stop.cancelled() => return None,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => return Some(accepted),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection; will retry");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// True if the error says nothing about the listener: the client was gone before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl ListenerState {
    fn table(&self) -> MutexGuard<'_, ConnectionTable<CancellationToken>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a connection, or drops it; returns what serves it.
    fn admit(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let (address, closed) = (ClientAddress::from(peer.ip()), CancellationToken::new());
        let admission = self.table().admit(address, closed.clone());
        let id = match admission {
            Admission::Admitted(id) => id,
            Admission::AdmittedInPlaceOf(id, other) => {
                self.metrics.evicted.inc();
                other.cancel();
                id
            }
            Admission::Refused => {
                self.metrics.refused.inc();
                return None;
            }
        };
        self.metrics.open.inc();
        let entry = ConnectionEntry { state: self, id, address };
        Some(async move {
            tokio::select! { biased;
                () = closed.cancelled() => {}
                () = entry.serve(stream) => {}
            }
        })
    }
}

/// Place of a connection in its listener's table; left when dropped.
struct ConnectionEntry {
    state: Arc<ListenerState>,
    id: ConnectionId,
    address: ClientAddress,
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.state.table().close(self.id);
        self.state.metrics.open.dec();
    }
}

impl ConnectionEntry {
    async fn serve(self, stream: TcpStream) {
        // Messages are small, and should be delivered without delay.
        _ = stream.set_nodelay(true);
        let stream = TimeoutStream::new(stream, self.state.timeouts.write);
        let Some(tls) = self.state.tls.clone() else { return self.serve_http(stream).await };
        // A client that does not finish its handshake has lost nothing but its own time.
        if let Ok(Ok(stream)) = tokio::time::timeout(self.state.timeouts.header, tls.accept(stream)).await {
            self.serve_http(stream).await;
        }
    }

    async fn serve_http(self, io: impl AsyncRead + AsyncWrite + Unpin) {
        let stop = self.state.stop.clone();
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.state.timeouts.header)
            .max_buf_size(MAX_REQUEST_HEAD_SIZE);
        let entry = Arc::new(self);
        let serving =
            builder.serve_connection(TokioIo::new(io), service_fn(|request| entry.clone().answer(request)));
        let mut serving = std::pin::pin!(serving);
        // An error concerns this client alone, which is gone.
        tokio::select! { biased;
            _ = serving.as_mut() => {}
            () = stop.cancelled() => {
                serving.as_mut().graceful_shutdown();
                _ = serving.await;
            }
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<AnswerBody>, Infallible> {
        self.state.table().begin_request(self.id);
        let answering = AnsweringGuard(self.clone());
        // No route reads a body, so none is waited for: what a client has not sent by now is not read.
        let mut request = request.map(|_| Body::empty());
        request.extensions_mut().insert(self.address);
        let response = self.state.router.clone().call(request).await?;
        Ok(response.map(|body| AnswerBody { body, _answering: answering }))
    }
}

/// Marks the connection as waiting again when the response was sent.
struct AnsweringGuard(Arc<ConnectionEntry>);

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.state.table().end_request(self.0.id);
    }
}

/// Body of a response, which tells when it is done with.
struct AnswerBody {
    body: Body,
    _answering: AnsweringGuard,
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
