//! A response's body that cannot stall for ever and that is always text.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

use super::utf8::Sanitiser;
use super::{BoxError, Shared, Stalled};
use crate::event::{Cause, Trouble};

/// A server that says something says so at most this often: a heartbeat need not be louder.
const BEAT: Duration = Duration::from_secs(1);

/// What the body of a response is, and so how long it may be silent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Span {
    /// It is a page of a list and should come in one go: silence for this long is an error.
    Page(Duration),
    /// It says why there is none.
    Refusal(Duration),
    /// It is a watch: it may be silent, but the server should end it itself before this has passed.
    Watch(Duration),
}

/// The body of a response, guarded.
pub(crate) struct Guarded {
    inner: kube::client::Body,
    sanitiser: Sanitiser,
    shared: Arc<Shared>,
    span: Span,
    sleep: Pin<Box<Sleep>>,
    opened: Instant,
    beat: Instant,
    over: bool,
}

impl Guarded {
    pub(super) fn new(inner: kube::client::Body, shared: Arc<Shared>, span: Span) -> Self {
        let now = Instant::now();
        let (Span::Page(limit) | Span::Refusal(limit) | Span::Watch(limit)) = span;
        Guarded {
            inner,
            sanitiser: Sanitiser::default(),
            shared,
            span,
            sleep: Box::pin(sleep_until(now + limit)),
            opened: now,
            beat: now,
            over: false,
        }
    }

    fn data(&mut self, chunk: Bytes) -> Bytes {
        let now = Instant::now();
        match self.span {
            Span::Page(limit) | Span::Refusal(limit) => self.sleep.as_mut().reset(now + limit),
            Span::Watch(_) if now.duration_since(self.beat) >= BEAT => {
                self.beat = now;
                self.shared.alive();
            }
            Span::Watch(_) => {}
        }
        self.sanitiser.chunk(chunk)
    }

    /// Nothing came for too long.
    fn stalled(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.over = true;
        match self.span {
            Span::Page(limit) | Span::Refusal(limit) => Some(Err(self.broke(Box::new(Stalled(limit))))),
            Span::Watch(limit) => {
                let detail = format!("a watch stood for {limit:?} and was not ended by the server");
                self.shared.say(Trouble { cause: Cause::Stalled, detail });
                None
            }
        }
    }

    /// The server ended it: a page is read, or a watch is over.
    fn ended(&mut self) {
        self.over = true;
        let lived = self.opened.elapsed();
        match self.span {
            Span::Page(_) => self.shared.alive(),
            Span::Watch(_) if self.shared.brief(lived) => {
                let detail = format!("a watch ended {lived:?} after it was opened");
                self.shared.say(Trouble { cause: Cause::EndedAtOnce, detail });
            }
            Span::Watch(_) | Span::Refusal(_) => {}
        }
    }

    /// A page that breaks off is a failure like one that never came; a watch is judged by how long it stood.
    fn broke(&mut self, error: BoxError) -> BoxError {
        self.over = true;
        if matches!(self.span, Span::Page(_)) {
            self.shared.failed();
        }
        error
    }
}

impl Body for Guarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(chunk) => Frame::data(self.data(chunk)),
                Err(other) => other,
            }))),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(self.broke(error.into())))),
            Poll::Ready(None) => {
                self.ended();
                let rest = self.sanitiser.end();
                Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
            }
            Poll::Pending if self.sleep.as_mut().poll(cx).is_ready() => Poll::Ready(self.stalled()),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if matches!(self.span, Span::Watch(_)) {
            self.shared.watch_over(self.opened.elapsed());
        }
    }
}
