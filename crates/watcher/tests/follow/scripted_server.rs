//! A scripted server, one function under paused time, for tests that take minutes. It knows nothing about Kubernetes.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;
use watcher::{ApiFailureCause, ApiKind, FollowEvent, FollowOptions, ParentObject, RetryTurns, follow};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A part of a response body.
#[derive(Clone)]
pub(crate) enum BodyPart {
    Text(String),
    Silence(Duration),
    SilenceForEver,
    Break,
}

/// A scripted response.
pub(crate) enum ScriptedResponse {
    Status(u16, Option<u64>),
    Parts(Vec<BodyPart>),
    NoConnection,
    Never,
}

/// A complete list.
pub(crate) fn list(items: &[&str]) -> ScriptedResponse {
    let items = items.join(",");
    text(&format!(
        r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#
    ))
}

/// One chunk.
pub(crate) fn text(text: &str) -> ScriptedResponse {
    ScriptedResponse::Parts(vec![BodyPart::Text(text.into())])
}

/// A watch without events, which the server ends after the requested time.
pub(crate) fn quiet(target: &str) -> ScriptedResponse {
    let seconds = parameter(target, "timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap();
    ScriptedResponse::Parts(vec![BodyPart::Silence(Duration::from_secs(seconds))])
}

/// Returns a query parameter of a request.
pub(crate) fn parameter<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = target.split_once('?')?;
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// One request and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedRequest {
    pub(crate) at: Duration,
    pub(crate) target: String,
}

impl RecordedRequest {
    pub(crate) fn is_watch(&self) -> bool {
        parameter(&self.target, "watch").is_some()
    }
}

#[derive(Clone)]
struct ScriptedServer<F> {
    answer: Arc<Mutex<F>>,
    log: Arc<Mutex<Vec<RecordedRequest>>>,
    start: Instant,
}

impl<F: FnMut(&str) -> ScriptedResponse + Send + 'static> Service<Request<Body>> for ScriptedServer<F> {
    type Response = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, BoxError>>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let target = request.uri().to_string();
        self.log.lock().unwrap().push(RecordedRequest { at: self.start.elapsed(), target: target.clone() });
        let answer = (self.answer.lock().unwrap())(&target);
        Box::pin(async move {
            let (status, come_back, parts) = match answer {
                ScriptedResponse::Status(status, come_back) => (status, come_back, Vec::new()),
                ScriptedResponse::Parts(parts) => (200, None, parts),
                ScriptedResponse::NoConnection => return Err("connection refused".into()),
                ScriptedResponse::Never => std::future::pending().await,
            };
            let mut response = Response::builder().status(status);
            if let Some(seconds) = come_back {
                response = response.header("Retry-After", seconds);
            }
            Ok(response.body(StreamBody::new(stream::iter(parts).filter_map(scripted_server).boxed()))?)
        })
    }
}

async fn scripted_server(part: BodyPart) -> Option<Result<Frame<Bytes>, BoxError>> {
    match part {
        BodyPart::Text(text) => Some(Ok(Frame::data(text.into()))),
        // Time is paused: the server is silent for this long, and no timeout is expected meanwhile.
        BodyPart::Silence(span) => {
            sleep(span).await;
            None
        }
        BodyPart::SilenceForEver => std::future::pending().await,
        BodyPart::Break => Some(Err("connection reset".into())),
    }
}

/// One kind that is followed on a scripted server.
pub(crate) struct ScriptedFollow {
    pub(crate) events: std::pin::Pin<Box<dyn Stream<Item = FollowEvent<ParentObject>> + Send>>,
    log: Arc<Mutex<Vec<RecordedRequest>>>,
    /// Those of its server.
    pub(crate) turns: Arc<RetryTurns>,
}

impl ScriptedFollow {
    pub(crate) fn new(answer: impl FnMut(&str) -> ScriptedResponse + Send + 'static) -> Self {
        ScriptedFollow::seeded(1, answer)
    }

    pub(crate) fn seeded(seed: u64, answer: impl FnMut(&str) -> ScriptedResponse + Send + 'static) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(Mutex::new(answer));
        let client =
            kube::Client::new(ScriptedServer { answer, log: log.clone(), start: Instant::now() }, "default");
        let options = FollowOptions::new(timer::Seed(seed));
        let turns = options.turns.clone();
        ScriptedFollow { events: Box::pin(follow(&client, &pods(), None, options)), log, turns }
    }

    /// Returns the events within this time.
    pub(crate) async fn for_span(&mut self, span: Duration) -> Vec<FollowEvent<ParentObject>> {
        let end = Instant::now() + span;
        let mut said = Vec::new();
        while let Ok(event) = timeout(end.saturating_duration_since(Instant::now()), self.events.next()).await
        {
            said.extend(event);
        }
        said
    }

    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        self.log.lock().unwrap().clone()
    }
}

pub(crate) fn pods() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        namespaced: true,
        has_status: true,
    }
}

/// Number of failures of this cause.
pub(crate) fn troubles(said: &[FollowEvent<ParentObject>], cause: ApiFailureCause) -> usize {
    said.iter()
        .filter(|event| matches!(event, FollowEvent::Failure(trouble) if trouble.cause == cause))
        .count()
}
