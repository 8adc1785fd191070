//! What stands between kube and the server: pace, deadlines, clean text.
//!
//! kube-runtime's `watcher` reopens a watch as fast as it ends, waits 290 s for a silent socket, and loses a whole list or
//! watch to one byte that is not UTF-8. None of that can be set, but all of it passes through the HTTP service below it,
//! so that is where it is held.

mod body;
mod fetch;
mod pace;
mod request;
pub(crate) mod utf8;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder, DynBody};
use timer::Seed;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tower_service::Service;

use crate::event::Trouble;
use body::{Guarded, Span};
pub(crate) use fetch::{Fetch, fetch};
pub(crate) use pace::Pace;
pub(crate) use request::UNKNOWN_VERSION;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A client without kube's hidden retries: who asks decides when to ask again.
///
/// [`follow`](crate::follow()) and [`look`](crate::look()) bring their own deadlines and pace, so any client serves them; with
/// another one kube would answer a 429 itself, up to fifteen times and for up to 1,000 s, and nobody would hear of it.
pub fn client(config: kube::Config) -> Result<kube::Client, kube::Error> {
    Ok(unhurried(config)?.build())
}

/// A client that is not finished, or why there is none.
type Unfinished<S> = Result<ClientBuilder<S>, kube::Error>;

/// What [`client`](client()) is made of, for whoever puts a layer around it.
pub(crate) fn unhurried(
    mut config: kube::Config,
) -> Unfinished<
    impl Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError, Future: Send>
    + Send
    + 'static,
> {
    config.default_retry = false;
    ClientBuilder::try_from(config)
}

/// Nothing came for this long although it should have.
#[derive(Debug, thiserror::Error)]
#[error("nothing came for {0:?}")]
pub(crate) struct Stalled(pub(crate) Duration);

/// How long one follow waits for what.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How long a watch may stand; each is given a length from within by the seed.
    pub(crate) watch: Range<Duration>,
    /// How long after that the server may take to end it.
    pub(crate) grace: Duration,
    /// How long a response, or the next part of a list, may take.
    pub(crate) read: Duration,
    /// A watch shorter than this has failed.
    pub(crate) brief: Duration,
    /// Where the lengths of watches come from.
    pub(crate) seed: Seed,
}

/// What the guard has to say beside what the responses say.
#[derive(Debug)]
pub(crate) enum Signal {
    /// The server answered.
    Alive,
    /// Something is wrong that kube would not mention.
    Trouble(Trouble),
}

/// What the requests of one follow have in common. The guard writes it, and the follow where it knows better.
pub(crate) struct Shared {
    limits: Limits,
    pace: Mutex<Pace>,
    place: Mutex<request::Place>,
    signals: mpsc::Sender<Signal>,
}

impl Shared {
    /// A full channel loses a signal: who does not listen needs no heartbeat.
    fn signal(&self, signal: Signal) {
        let _ = self.signals.try_send(signal);
    }

    fn alive(&self) {
        self.signal(Signal::Alive);
    }

    fn say(&self, trouble: Trouble) {
        self.signal(Signal::Trouble(trouble));
    }

    fn brief(&self, lived: Duration) -> bool {
        lived < self.limits.brief
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch_over(&self, lived: Duration) {
        self.pace().ended(Instant::now(), lived);
    }

    /// What was asked for did not come, or not whole.
    pub(crate) fn failed(&self) {
        self.pace().failed(Instant::now(), None);
    }

    /// See [`Pace::stood`].
    pub(crate) fn stood(&self) -> u64 {
        self.pace().stood()
    }

    /// See [`Pace::doubt`].
    pub(crate) fn doubt(&self) {
        self.pace().doubt(Instant::now());
    }
}

/// The HTTP service of one follow.
#[derive(Clone)]
pub(crate) struct Guard {
    client: kube::Client,
    shared: Arc<Shared>,
}

impl Guard {
    /// A client that is guarded, and what it shares with who uses it.
    pub(crate) fn client(
        inner: &kube::Client,
        limits: Limits,
        pace: Pace,
    ) -> (kube::Client, Arc<Shared>, mpsc::Receiver<Signal>) {
        let (signals, heard) = mpsc::channel(16);
        let shared = Arc::new(Shared { limits, pace: Mutex::new(pace), place: Mutex::default(), signals });
        let guard = Guard { client: inner.clone(), shared: shared.clone() };
        (kube::Client::new(guard, inner.default_namespace()), shared, heard)
    }

    async fn pass(self, request: Request<Body>) -> Result<Response<Guarded>, BoxError> {
        let not_before = self.shared.pace().not_before();
        if let Some(at) = not_before {
            sleep_until(at).await;
        }
        let (request, span) = self.prepared(request)?;
        let read = self.shared.limits.read;
        let response = match timeout(read, self.client.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                self.shared.failed();
                return Err(error.into());
            }
            Err(_) => {
                self.shared.failed();
                return Err(Box::new(Stalled(read)));
            }
        };
        let span = if response.status().is_success() {
            span
        } else {
            self.shared.pace().failed(Instant::now(), fetch::come_back(response.headers()));
            Span::Refusal(read)
        };
        if matches!(span, Span::Watch(_)) {
            self.shared.alive();
        }
        Ok(response.map(|body| Guarded::new(body, self.shared.clone(), span)))
    }

    fn prepared(&self, request: Request<Body>) -> Result<(Request<Body>, Span), BoxError> {
        let limits = &self.shared.limits;
        if !request::is_watch(request.uri()) {
            return Ok((request, Span::Page(limits.read)));
        }
        let mut place = self.shared.place.lock().unwrap_or_else(PoisonError::into_inner);
        let (uri, length) = place.watch(request.uri(), &limits.watch, limits.seed)?;
        let (mut parts, body) = request.into_parts();
        parts.uri = uri;
        Ok((Request::from_parts(parts, body), Span::Watch(length + limits.grace)))
    }
}

impl Service<Request<Body>> for Guard {
    type Response = Response<Guarded>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}
