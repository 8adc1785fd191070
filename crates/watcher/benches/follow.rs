//! Cost of `follow` per event, compared with kube's watcher alone over the same bytes, decoded to the same fields.
//!
//! Prints ratios of one run; figures of different machines do not compare.

use std::borrow::Cow;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta};
use kube::client::Body;
use kube::core::DynamicResourceScope;
use kube::runtime::watcher as bare;
use serde::{Deserialize, Deserializer};
use tokio::time::Instant;
use tower_service::Service;
use watcher::wire::ChildObject;
use watcher::{ApiKind, FollowEvent, FollowOptions, follow};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

const EVENTS: usize = 20_000;
const ROUNDS: usize = 5;
/// Largest content of a TLS record, and therefore of one frame of a busy watch.
const CHUNK: usize = 16 * 1024;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for bytes in [800, 7_800] {
        let server = StoredWatch::new(bytes);
        let mut best = [Duration::MAX; 4];
        for _ in 0..ROUNDS {
            let round = runtime.block_on(server.round());
            best.iter_mut().zip(round).for_each(|(best, took)| *best = took.min(*best));
        }
        report(bytes, best);
    }
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn report(bytes: usize, [decode, alone, followed, dynamic]: [Duration; 4]) {
    let each =
        |took: Duration| took.as_secs_f64() * 1e6 / f64::from(u32::try_from(EVENTS).expect("few events"));
    println!(
        "{bytes:5} B  decode alone {:5.2} µs  kube's watcher {:5.2} µs  follow {:5.2} µs  kube's watcher of DynamicObject {:6.2} µs",
        each(decode),
        each(alone),
        each(followed),
        each(dynamic),
    );
    println!(
        "         follow / kube's watcher = {:.2}   DynamicObject / follow = {:.1}",
        followed.as_secs_f64() / alone.as_secs_f64(),
        dynamic.as_secs_f64() / followed.as_secs_f64(),
    );
}

/// A watch that delivers the same bytes every time, from memory.
#[derive(Clone)]
struct StoredWatch {
    object: Bytes,
    chunks: Vec<Bytes>,
}

impl StoredWatch {
    fn new(bytes: usize) -> Self {
        let object = pod(bytes);
        let line = format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
        let all = Bytes::from(line.repeat(EVENTS));
        let chunks =
            (0..all.len()).step_by(CHUNK).map(|at| all.slice(at..all.len().min(at + CHUNK))).collect();
        StoredWatch { object: object.into(), chunks }
    }

    /// Measures decoding alone; kube's watcher; `follow`; kube's watcher with the type that most programs use.
    async fn round(&self) -> [Duration; 4] {
        let client = || kube::Client::new(self.clone(), "default");
        let kind = pods();
        let resource = resource(&kind);
        let decode = stream::iter(0..EVENTS).map(|_| {
            serde_json::from_slice::<ChildObject>(std::hint::black_box(&self.object))
                .map(std::hint::black_box)
                .is_ok()
        });
        let alone: Api<BareObject> = Api::all_with(client(), &resource);
        let alone =
            bare(alone, bare::Config::default()).map(|event| matches!(event, Ok(bare::Event::Apply(_))));
        let followed = follow::<ChildObject>(&client(), &kind, None, FollowOptions::new(timer::Seed(1)));
        let followed = followed.map(|event| matches!(event, FollowEvent::Apply(_)));
        let dynamic: Api<DynamicObject> = Api::all_with(client(), &resource);
        let dynamic =
            bare(dynamic, bare::Config::default()).map(|event| matches!(event, Ok(bare::Event::Apply(_))));
        [timed(decode).await, timed(alone).await, timed(followed).await, timed(dynamic).await]
    }
}

async fn timed(events: impl Stream<Item = bool>) -> Duration {
    let start = Instant::now();
    events.filter(|applied| std::future::ready(*applied)).take(EVENTS).count().await;
    start.elapsed()
}

impl Service<Request<Body>> for StoredWatch {
    type Response = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, BoxError>>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let list = br#"{"metadata":{"resourceVersion":"1"},"items":[]}"#;
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let chunks = if is_watch { self.chunks.clone() } else { vec![Bytes::from_static(list)] };
        let frames = stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk)));
        Box::pin(async move { Ok(Response::new(StreamBody::new(frames.boxed()))) })
    }
}

/// The smallest object type that kube's watcher accepts around the same fields.
#[derive(Clone, Debug)]
struct BareObject {
    meta: ObjectMeta,
    _child: ChildObject,
}

impl<'de> Deserialize<'de> for BareObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let child = ChildObject::deserialize(deserializer)?;
        let version = Some(child.meta.resource_version.to_string());
        Ok(BareObject {
            meta: ObjectMeta { resource_version: version, ..ObjectMeta::default() },
            _child: child,
        })
    }
}

impl kube::Resource for BareObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
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

fn resource(kind: &ApiKind) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// A pod of about this many bytes, in the shape of a real one: most of it is `spec` and `managedFields`.
fn pod(bytes: usize) -> String {
    let head = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7d4b9c6f5-x2x9k","namespace":"shop","uid":"0f6f2d5e-63a5-4a2b-9c39-7b1f1d8a5f10","resourceVersion":"123456","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web","pod-template-hash":"7d4b9c6f5"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d4b9c6f5","uid":"5a1c","controller":true}]},"spec":{"containers":["#;
    let tail = r#"]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"}]}}"#;
    let container = r#"{"name":"app","image":"registry.example/shop/web:1.2.3","env":[{"name":"MODE","value":"production"},{"name":"PORT","value":"8080"}],"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"50m","memory":"64Mi"}},"volumeMounts":[{"name":"data","mountPath":"/data"}],"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}"#;
    let count = (bytes.saturating_sub(head.len() + tail.len()) / (container.len() + 1)).max(1);
    format!("{head}{}{tail}", vec![container; count].join(","))
}
