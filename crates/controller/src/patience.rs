//! A listener that waits for no reader for ever: what cannot be sent for too long ends its connection.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// A reader may take so long to take anything at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// The listener.
pub(crate) struct Patient(pub(crate) TcpListener);

impl Listener for Patient {
    type Io = Limited<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, addr) = Listener::accept(&mut self.0).await;
        // Events are small, and meant to be seen at once.
        _ = stream.set_nodelay(true);
        (Limited::new(stream), addr)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// A connection on which every write has to get somewhere within a while.
pub(crate) struct Limited<S> {
    inner: S,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Limited<S> {
    pub(crate) fn new(inner: S) -> Self {
        Limited { inner, waiting: None }
    }

    /// Passes on what came of a write; where it has been stuck for too long, that is an error.
    fn judge<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waiting = None;
            return done;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the reader takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.judge(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_flush(cx);
        self.judge(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.judge(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.judge(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_let_go_and_who_is_slow_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = Limited::new(ours);
        let slow = async {
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE / 2).await;
                theirs.read_exact(&mut [0; 16]).await.unwrap();
            }
        };
        let (sent, ()) = tokio::join!(stream.write_all(&[0; 80]), slow);
        sent.unwrap();
        let refused = stream.write_all(&[0; 80]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
    }
}
