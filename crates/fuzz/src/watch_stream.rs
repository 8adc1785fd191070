//! The stream of a watch: however the network cuts it, and however a list is paged, the same events come out.

use std::cell::LazyCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use serde_json::Value;
use timer::Seed;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tower_service::Service;
use watcher::wire::ChildObject;
use watcher::{ApiKind, FollowEvent, FollowOptions, follow};

/// Virtual time in which everything that a scripted answer holds was read.
const QUIET_TIME: Duration = Duration::from_millis(50);
/// Most objects of a list.
const MAX_LISTED: usize = 16;

pub(crate) const WATCH_STREAM_WORDS: &[&str] = &[
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"8\"}}}\n",
    "{\"type\":\"MODIFIED\",\"object\":",
    "{\"type\":\"DELETED\",\"object\":",
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"9\"}}}\n",
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n",
    "\n",
    "\r\n",
    "\"uid\":\"1\"",
    "\"resourceVersion\":\"",
    "18446744073709551616",
    "\\ud800",
    "{}",
    "null",
];

thread_local! {
    /// Time stands still while anything can go on.
    static RUNTIME: LazyCell<Runtime> = const {
        LazyCell::new(|| {
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
        })
    };
}

/// The first line says by which lengths the stream is cut; its objects are listed too.
pub(crate) fn run(data: &[u8]) {
    let cut = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (lengths, stream) = (&data[..cut], &data[cut..]);
    let whole = vec![Bytes::copy_from_slice(stream)];
    let listed = [list_page(&[], false)];
    let at_once = followed(&listed, whole);
    assert_eq!(at_once, followed(&listed, cut_into(stream, lengths)), "however it is cut");
    check_pages(stream, lengths.len());
}

/// The objects of a stream as a list, whole and in pages.
fn check_pages(stream: &[u8], page: usize) {
    let event = |line: &[u8]| serde_json::from_slice::<Value>(line).ok()?.get_mut("object").map(Value::take);
    let is_object = |object: &Value| object.is_object();
    let objects: Vec<Value> =
        stream.split(|byte| *byte == b'\n').filter_map(event).filter(is_object).take(MAX_LISTED).collect();
    if objects.is_empty() {
        return;
    }
    let pages = objects.chunks(page.clamp(1, MAX_LISTED));
    let last = pages.len() - 1;
    let paged: Vec<Bytes> = pages.enumerate().map(|(at, page)| list_page(page, at != last)).collect();
    let at_once = followed(&[list_page(&objects, false)], Vec::new());
    assert_eq!(at_once, followed(&paged, Vec::new()), "in however many pages");
}

fn list_page(objects: &[Value], goes_on: bool) -> Bytes {
    let goes_on = if goes_on { ",\"continue\":\"c\"" } else { "" };
    let items = Value::from(objects);
    let metadata = format!("{{\"resourceVersion\":\"7\"{goes_on}}}");
    format!("{{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{metadata},\"items\":{items}}}").into()
}

fn cut_into(stream: &[u8], lengths: &[u8]) -> Vec<Bytes> {
    let mut rest = stream;
    let mut chunks = Vec::new();
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().map_or(1, |byte| usize::from(*byte) + 1).min(rest.len());
        let (chunk, after) = rest.split_at(length);
        chunks.push(Bytes::copy_from_slice(chunk));
        rest = after;
    }
    chunks
}

/// Events of one list and one watch. Failures are named by their cause.
fn followed(pages: &[Bytes], watch: Vec<Bytes>) -> Vec<FollowEvent<ChildObject>> {
    let answers = pages.iter().map(|page| vec![page.clone()]).chain([watch]).collect();
    let server = ScriptedAnswers { answers: Arc::new(Mutex::new(answers)) };
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let client = kube::Client::new(server, "default");
            let mut events = Box::pin(follow(&client, &pods(), None, FollowOptions::new(Seed(1))));
            let mut seen = Vec::new();
            while let Ok(Some(event)) = timeout(QUIET_TIME, events.next()).await {
                match event {
                    FollowEvent::Failure(mut failure) => {
                        failure.detail.clear();
                        seen.push(FollowEvent::Failure(failure));
                    }
                    // A sign of life comes with data, and by its own way.
                    FollowEvent::Alive => {}
                    event => seen.push(event),
                }
            }
            seen
        })
    })
}

fn pods() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        namespaced: true,
        has_status: true,
    }
}

/// A server that gives each of these bodies once, and then none.
#[derive(Clone)]
struct ScriptedAnswers {
    answers: Arc<Mutex<VecDeque<Vec<Bytes>>>>,
}

type ScriptedBody = StreamBody<stream::Map<stream::Iter<std::vec::IntoIter<Bytes>>, FrameOf>>;
type FrameOf = fn(Bytes) -> Result<Frame<Bytes>, Infallible>;

impl Service<Request<Body>> for ScriptedAnswers {
    type Response = Response<ScriptedBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            let Some(chunks) = answer else { return std::future::pending().await };
            let frame: FrameOf = |chunk| Ok(Frame::data(chunk));
            Ok(Response::new(StreamBody::new(stream::iter(chunks).map(frame))))
        })
    }
}
