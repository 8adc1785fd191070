//! A client of the sandbox's store without a socket, so that time can be virtual.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use percent_encoding::percent_decode_str;
use sandbox::store::{EpochMillis, SandboxStore, StoreRequest, StoreResponse, WatchCursor};
use serde_json::Value;
use tokio::time::Instant;

/// When the server's clock stands at its start.
const EPOCH: EpochMillis = 1_780_000_000_000;
/// How often a watch looks for what has happened.
const WATCH_TICK: Duration = Duration::from_millis(20);

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct TimedRequest {
    /// Since the start.
    pub(crate) at: Duration,
    /// The verb as RBAC names it, and the plural of the kind: `list parts`.
    pub(crate) target: String,
    /// Number of objects that a list asks for; 0 for all.
    pub(crate) limit: usize,
}

/// The store, and the requests that it was sent.
#[derive(Clone)]
pub(crate) struct StoreClient(Arc<StoreState>);

struct StoreState {
    start: Instant,
    store: Mutex<SandboxStore>,
    sent: Mutex<Vec<TimedRequest>>,
    /// Version that no watch delivers; 0 for none.
    lost_version: AtomicU64,
}

impl StoreClient {
    pub(crate) fn new() -> StoreClient {
        StoreClient(Arc::new(StoreState {
            start: Instant::now(),
            store: Mutex::new(SandboxStore::new_at(1, EPOCH)),
            sent: Mutex::default(),
            lost_version: AtomicU64::new(0),
        }))
    }

    pub(crate) fn now(&self) -> EpochMillis {
        EPOCH + EpochMillis::try_from(self.0.start.elapsed().as_millis()).unwrap()
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, SandboxStore> {
        self.0.store.lock().unwrap()
    }

    pub(crate) fn create(&self, object: Value) -> Value {
        (*self.store().create_with_status(self.now(), object).unwrap()).clone()
    }

    /// Changes the status of an object; no watch ever tells of it.
    pub(crate) fn patch_status_unseen(&self, (kind, namespace, name): (&str, &str, &str), patch: &Value) {
        let mut store = self.store();
        store.patch_status(self.now(), "example.com/v1", kind, namespace, name, patch).unwrap();
        self.0.lost_version.store(store.revision(), Ordering::Relaxed);
    }

    /// The requests so far.
    pub(crate) fn sent(&self) -> Vec<TimedRequest> {
        self.0.sent.lock().unwrap().clone()
    }

    fn answer(&self, request: &StoreRequest) -> Answer {
        let target = named_target(request);
        let limit = request.query_param("limit").and_then(|limit| limit.parse().ok()).unwrap_or(0);
        self.0.sent.lock().unwrap().push(TimedRequest { at: self.0.start.elapsed(), target, limit });
        if !request.is_watch() {
            let answered = self.store().handle_request(self.now(), request);
            return whole(answered);
        }
        let opened = self.store().open_watch(self.now(), request);
        match opened {
            Ok(cursor) => {
                let client = self.clone();
                let lines = futures::stream::unfold((client, cursor), |(client, mut cursor)| async move {
                    let lines = client.next_lines(&mut cursor).await?;
                    Some((Ok(Frame::data(lines)), (client, cursor)))
                });
                Response::new(UnsyncBoxBody::new(StreamBody::new(lines.boxed())))
            }
            Err(refusal) => whole(refusal.into()),
        }
    }

    /// What happens next in a watch; `None` at its end.
    async fn next_lines(&self, cursor: &mut WatchCursor) -> Option<Bytes> {
        loop {
            let lost = self.0.lost_version.load(Ordering::Relaxed).to_string();
            let mut lines = Vec::new();
            while let Some(line) = { self.store().next_line(self.now(), cursor) } {
                if line.object["metadata"]["resourceVersion"].as_str() != Some(&lost) {
                    lines.extend(line.to_bytes());
                }
            }
            if !lines.is_empty() {
                return Some(lines.into());
            }
            if cursor.has_ended() {
                return None;
            }
            tokio::time::sleep(WATCH_TICK).await;
        }
    }
}

impl tower_service::Service<Request<Body>> for StoreClient {
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
            let uri = head.uri.to_string();
            let target = percent_decode_str(&uri).decode_utf8_lossy();
            let target =
                target.split_once("://").map_or(&*target, |(_, rest)| &rest[rest.find('/').unwrap()..]);
            let request = StoreRequest {
                content_type: header("content-type"),
                accept: header("accept"),
                user_agent: header("user-agent"),
                body: body.collect_bytes().await?.to_vec(),
                ..StoreRequest::new(head.method.as_str(), target)
            };
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(client.answer(&request))
        })
    }
}

fn named_target(request: &StoreRequest) -> String {
    let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
    let below = match parts[..] {
        ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
        _ => &[],
    };
    let below = match below {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        _ => below,
    };
    let verb = match (request.method.as_str(), below.len()) {
        ("GET", 1) if request.is_watch() => "watch".to_owned(),
        ("GET", 1) => "list".to_owned(),
        (method, _) => method.to_lowercase(),
    };
    match below {
        [] => format!("{verb} {}", request.path),
        [plural, ..] => format!("{verb} {plural}"),
    }
}

fn whole(answer: StoreResponse) -> Answer {
    let body = futures::stream::iter([Ok(Frame::data(Bytes::from(answer.body)))]);
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(UnsyncBoxBody::new(StreamBody::new(body))).unwrap()
}
