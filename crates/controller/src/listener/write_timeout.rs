//! Connection with a write timeout: a client that stops reading, or reads next to nothing, is disconnected.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What a client has to take within the timeout, unless less is pending. 64 KiB.
const MIN_BYTES_PER_TIMEOUT: usize = 64 * 1024;

/// Connection on which so much has to be written, or all that is pending, within the timeout.
pub(super) struct TimeoutStream<S> {
    inner: S,
    timeout: Duration,
    /// Since a write had to wait: the rest of the timeout, and the number of bytes written meanwhile.
    waiting: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> TimeoutStream<S> {
    pub(super) fn new(inner: S, timeout: Duration) -> Self {
        TimeoutStream { inner, timeout, waiting: None }
    }

    /// Passes on the result of a write. Little progress does not make up for the time that it took.
    fn check_write(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(result) = done else { return self.check_timeout(cx) };
        if let (Ok(bytes), Some((_, written))) = (&result, &mut self.waiting) {
            *written += bytes;
            if *written >= MIN_BYTES_PER_TIMEOUT {
                self.waiting = None;
            }
        }
        Poll::Ready(result)
    }

    /// Passes on the result of a flush, after which nothing is pending.
    fn check_flush(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if done.is_pending() {
            return self.check_timeout(cx);
        }
        self.waiting = None;
        done
    }

    /// Waits on, or returns a `TimedOut` error if that has taken too long.
    fn check_timeout<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let timeout = self.timeout;
        let (rest, _) = self.waiting.get_or_insert_with(|| (Box::pin(sleep(timeout)), 0));
        ready!(rest.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client has stopped reading")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.check_write(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_flush(cx);
        self.check_flush(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.check_flush(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.check_write(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

    /// Reads so much after each pause, as often as the body needs it.
    async fn take(theirs: &mut DuplexStream, bytes: usize, pause: Duration) {
        let mut part = vec![0; bytes];
        loop {
            tokio::time::sleep(pause).await;
            if theirs.read_exact(&mut part).await.is_err() {
                return;
            }
        }
    }

    /// Sends a body to a reader, and waits until all is sent.
    async fn send(body: usize, bytes: usize, pause: Duration) -> io::Result<()> {
        let (ours, mut theirs) = tokio::io::duplex(4 * 1024);
        let mut stream = TimeoutStream::new(ours, WRITE_TIMEOUT);
        let sent = async {
            stream.write_all(&vec![0; body]).await?;
            stream.flush().await
        };
        tokio::select! {
            sent = sent => sent,
            () = take(&mut theirs, bytes, pause) => unreachable!("the stream is open"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_or_next_to_nothing_is_let_go_and_who_is_slow_is_not() {
        let slow = send(512 * 1024, 4 * 1024, Duration::from_secs(1)).await;
        slow.unwrap();
        // In the end less than that is pending.
        send(12 * 1024, 4 * 1024, WRITE_TIMEOUT / 3).await.unwrap();
        for (bytes, pause) in
            [(1, WRITE_TIMEOUT / 2), (1024, Duration::from_secs(1)), (1, WRITE_TIMEOUT * 10)]
        {
            let began = tokio::time::Instant::now();
            let refused = send(512 * 1024, bytes, pause).await.unwrap_err();
            assert_eq!(
                (refused.kind(), began.elapsed()),
                (ErrorKind::TimedOut, WRITE_TIMEOUT),
                "{bytes} in {pause:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_in_full_is_no_wait_of_what_is_sent_later() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = TimeoutStream::new(ours, WRITE_TIMEOUT);
        for _ in 0..4 {
            let taken = async {
                tokio::time::sleep(WRITE_TIMEOUT / 2).await;
                theirs.read_exact(&mut [0; 20]).await.unwrap();
            };
            let sent = async {
                stream.write_all(&[0; 20]).await.unwrap();
                stream.flush().await.unwrap();
            };
            tokio::join!(sent, taken);
            tokio::time::sleep(WRITE_TIMEOUT).await;
        }
    }
}
