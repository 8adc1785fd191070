//! A response body that cannot stall forever and is always valid UTF-8.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

use super::errors::{BoxError, ResponseStalled};
use super::guard_state::GuardState;
use super::utf8::Utf8Sanitiser;
use crate::api_client::connection::is_discarded;
use crate::event::{ApiFailureCause, FollowFailure};

/// Shortest interval between heartbeat signals.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Kind of a response body, which sets how long it may be silent.
#[derive(Clone, Copy, Debug)]
pub(super) enum GuardedBodyKind {
    /// A page of a list, which should arrive without pauses: silence for this long is an error.
    Page(Duration),
    /// An error response.
    Refusal(Duration),
    /// A watch: it may be silent, but the server should end it before this time has passed. That it was opened
    /// is no sign of life: servers and what stands before them break watches as they open them.
    Watch(Duration),
}

/// A guarded response body.
pub(crate) struct GuardedBody {
    inner: kube::client::Body,
    sanitiser: Utf8Sanitiser,
    shared: Arc<GuardState>,
    span: GuardedBodyKind,
    sleep: Pin<Box<Sleep>>,
    opened: Instant,
    beat: Instant,
    /// Something came.
    spoke: bool,
    /// It is a watch that has stood for long enough to be a sign of life.
    stood: bool,
    over: bool,
}

impl GuardedBody {
    pub(super) fn new(inner: kube::client::Body, shared: Arc<GuardState>, span: GuardedBodyKind) -> Self {
        let now = Instant::now();
        let limit = match span {
            GuardedBodyKind::Page(limit) | GuardedBodyKind::Refusal(limit) => limit,
            GuardedBodyKind::Watch(limit) => limit.min(shared.limits.brief),
        };
        GuardedBody {
            inner,
            sanitiser: Utf8Sanitiser::default(),
            shared,
            span,
            sleep: Box::pin(sleep_until(now + limit)),
            opened: now,
            beat: now,
            spoke: false,
            stood: false,
            over: false,
        }
    }

    fn on_data(&mut self, chunk: Bytes) -> Bytes {
        let now = Instant::now();
        self.spoke = true;
        match self.span {
            GuardedBodyKind::Page(limit) | GuardedBodyKind::Refusal(limit) => {
                self.sleep.as_mut().reset(now + limit);
            }
            GuardedBodyKind::Watch(_) if now.duration_since(self.beat) >= HEARTBEAT_INTERVAL => {
                self.beat = now;
                self.shared.signal_alive();
            }
            GuardedBodyKind::Watch(_) => {}
        }
        self.sanitiser.sanitise_chunk(chunk)
    }

    /// Handles a body that was silent for too long.
    fn on_stall(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.over = true;
        match self.span {
            GuardedBodyKind::Page(limit) | GuardedBodyKind::Refusal(limit) => {
                Some(Err(self.on_broken(Box::new(ResponseStalled(limit)))))
            }
            GuardedBodyKind::Watch(limit) => {
                if !self.spoke {
                    self.shared.unproven();
                }
                let detail = format!("the server did not end a watch within {limit:?}");
                self.shared.signal_failure(FollowFailure { cause: ApiFailureCause::Stalled, detail });
                None
            }
        }
    }

    /// Handles a timeout: a watch that stands goes on, and everything else is given up.
    #[expect(clippy::option_option, reason = "whether there is an answer, and an answer that may be the end")]
    fn timed_out(&mut self) -> Option<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.span {
            GuardedBodyKind::Watch(limit) if !self.stood => {
                self.stood = true;
                self.shared.signal_alive();
                self.sleep.as_mut().reset(self.opened + limit);
                None
            }
            _ => Some(self.on_stall()),
        }
    }

    /// Handles the end of the body: a page is complete, or a watch is over.
    fn on_end(&mut self) {
        self.over = true;
        let lived = self.opened.elapsed();
        match self.span {
            GuardedBodyKind::Watch(_) if self.shared.is_brief(lived) => {
                let detail = format!("a watch ended {lived:?} after it was opened");
                self.shared.signal_failure(FollowFailure { cause: ApiFailureCause::EndedAtOnce, detail });
            }
            GuardedBodyKind::Page(_) | GuardedBodyKind::Watch(_) => self.shared.signal_alive(),
            GuardedBodyKind::Refusal(_) => {}
        }
    }

    /// Handles a broken body. A broken page counts as a failed request; a watch counts by its duration.
    fn on_broken(&mut self, error: BoxError) -> BoxError {
        self.over = true;
        if matches!(self.span, GuardedBodyKind::Page(_)) {
            self.shared.note_failure();
        }
        error
    }
}

impl Body for GuardedBody {
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
                Ok(chunk) => Frame::data(self.on_data(chunk)),
                Err(other) => other,
            }))),
            // A watch goes on from its place over a new connection: to whom it belongs, that is no failure.
            Poll::Ready(Some(Err(error)))
                if matches!(self.span, GuardedBodyKind::Watch(_)) && is_discarded(&error) =>
            {
                self.over = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(self.on_broken(error.into())))),
            Poll::Ready(None) => {
                self.on_end();
                let rest = self.sanitiser.flush_carried();
                Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
            }
            Poll::Pending => {
                while self.sleep.as_mut().poll(cx).is_ready() {
                    if let Some(end) = self.timed_out() {
                        return Poll::Ready(end);
                    }
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for GuardedBody {
    fn drop(&mut self) {
        if matches!(self.span, GuardedBodyKind::Watch(_)) {
            self.shared.on_watch_ended(self.opened.elapsed());
        }
    }
}
