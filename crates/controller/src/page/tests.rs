//! Who gets in, and what becomes of those who listen: with a played API server and a played loop.

use std::future::Ready;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use prometheus::{IntCounterVec, Opts};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::desk::Batch;
use super::gate::{Right, Viewer};
use super::*;
use crate::core::{Words, World};

/// Path and review in, answer out.
type Answer = fn(&str, &Value) -> Value;

/// An API server that knows one token, and grants what it is told to.
#[derive(Clone)]
struct Played {
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<Answer>>,
}

impl tower_service::Service<Request<kube::client::Body>> for Played {
    type Response = http::Response<kube::client::Body>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (parts, body) = request.into_parts();
        let body = futures::executor::block_on(body.collect()).unwrap().to_bytes();
        let review: Value = serde_json::from_slice(&body).unwrap();
        let answer = self.answer.lock().unwrap()(parts.uri.path(), &review);
        let code = answer["code"].as_u64().unwrap_or(201);
        let body = kube::client::Body::from(answer.to_string().into_bytes());
        std::future::ready(Ok(http::Response::builder().status(code as u16).body(body).unwrap()))
    }
}

/// Ann may list databases in `a`; nobody else is known.
fn ann(path: &str, review: &Value) -> Value {
    let spec = &review["spec"];
    if path.ends_with("/tokenreviews") {
        let known = spec["token"] == "ann's";
        let user = json!({ "username": "ann", "groups": ["dev"], "extra": { "k": ["v"] } });
        return json!({ "status": { "authenticated": known, "user": if known { user } else { Value::Null } } });
    }
    assert_eq!(
        (&spec["user"], &spec["groups"], &spec["extra"]),
        (&json!("ann"), &json!(["dev"]), &json!({ "k": ["v"] }))
    );
    let right = &spec["resourceAttributes"];
    let may = right["verb"] == "list" && right["resource"] == "databases" && right["namespace"] == "a";
    json!({ "status": { "allowed": may } })
}

struct Stage {
    page: Page,
    /// How often the loop was asked where everybody stands.
    worlds: Arc<AtomicUsize>,
    played: Played,
    stop: CancellationToken,
    snapshot: watch::Sender<Arc<Snapshot>>,
}

/// A page before a loop that has nothing to tell.
fn stage(listen: &str) -> Stage {
    let played = Played { asked: Arc::default(), answer: Arc::new(Mutex::new(ann)) };
    let (asks, mut asked) = mpsc::channel(ASKS);
    let worlds = Arc::new(AtomicUsize::new(0));
    let counted = worlds.clone();
    tokio::spawn(async move {
        while let Some(ask) = asked.recv().await {
            match ask {
                Ask::World(to) => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    _ = to.send(World::default());
                }
                Ask::Words(of, to) => _ = to.send(vec![Words::default(); of.len()]),
            }
        }
    });
    let (snapshot, snapshots) = watch::channel(Arc::default());
    let (known, stop) = (Known::default(), CancellationToken::new());
    let dropped = IntCounterVec::new(Opts::new("dropped", "dropped"), &["by"]).unwrap();
    let transitions = Arc::new(Transitions::new(known.clone(), dropped));
    let page = Page::new(Setting {
        listen: listen.parse().unwrap(),
        client: kube::Client::new(played.clone(), "default"),
        reflector: Arc::new(Reflector::new(|| ())),
        known,
        metrics: Arc::new(Metrics::new(0).unwrap()),
        clock: ServerClock::shared(),
        asks,
        snapshot: snapshots,
        transitions: Arc::downgrade(&transitions),
        stop: stop.clone(),
    });
    Stage { page, worlds, played, stop, snapshot }
}

fn with(name: header::HeaderName, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name, value.parse().unwrap())])
}

fn local() -> HeaderMap {
    with(header::HOST, "localhost:8080")
}

async fn open(page: &Page, headers: HeaderMap) -> (StatusCode, Body) {
    let response = stream::stream(State(page.clone()), headers).await.into_response();
    (response.status(), response.into_body())
}

/// What a stream says until it ends.
async fn heard(body: Body) -> String {
    let body = tokio::time::timeout(Duration::from_secs(5), body.collect()).await.unwrap().unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

fn databases(namespace: &str) -> Right {
    let (group, resource) = ("example.com".to_owned(), "databases".to_owned());
    Right { verb: "list", group, resource, namespace: namespace.to_owned(), name: String::new() }
}

#[tokio::test]
async fn a_wrong_token_is_no_token_and_a_right_one_is_asked_about_once() {
    let stage = stage("0.0.0.0:80");
    let gate = &stage.page.0.gate;
    let refused = |headers| async move { gate.who(&headers).await.unwrap_err().into_response().status() };
    assert_eq!(refused(local()).await, StatusCode::UNAUTHORIZED);
    assert_eq!(refused(with(header::AUTHORIZATION, "Bearer bob's")).await, StatusCode::UNAUTHORIZED);
    let asked = stage.played.asked.load(Ordering::Relaxed);
    for _ in 0..3 {
        assert!(matches!(gate.who(&with(header::AUTHORIZATION, "Bearer ann's")).await, Ok(Viewer::User(_))));
        assert_eq!(refused(with(header::AUTHORIZATION, "Bearer bob's")).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(stage.played.asked.load(Ordering::Relaxed), asked + 1);
}

#[tokio::test]
async fn what_may_not_be_listed_is_not_seen_and_what_was_asked_is_remembered() {
    let stage = stage("0.0.0.0:80");
    let gate = &stage.page.0.gate;
    let viewer = gate.who(&with(header::AUTHORIZATION, "Bearer ann's")).await.unwrap();
    let asked = stage.played.asked.load(Ordering::Relaxed);
    for _ in 0..3 {
        let rights = ["", "a", "b"].map(databases).to_vec();
        let (allowed, cut) = gate.allowed(&viewer, rights).await.unwrap();
        assert_eq!((allowed.into_iter().collect::<Vec<_>>(), cut), (vec![1], false));
    }
    assert_eq!(stage.played.asked.load(Ordering::Relaxed), asked + 3);
    let many = (0..1_000).map(|n| databases(&format!("n{n}"))).collect();
    let (allowed, cut) = gate.allowed(&viewer, many).await.unwrap();
    assert!(allowed.is_empty() && cut, "one request asks so many questions and no more");
    assert_eq!(stage.played.asked.load(Ordering::Relaxed), asked + 3 + 256);
}

#[tokio::test]
async fn who_may_not_ask_says_so_and_lets_nobody_in() {
    let stage = stage("0.0.0.0:80");
    *stage.played.answer.lock().unwrap() = |_, _| json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no" });
    let refused = stage.page.0.gate.who(&with(header::AUTHORIZATION, "Bearer ann's")).await.unwrap_err();
    assert_eq!(refused, refusal::Refusal::MayNotAsk);
    assert_eq!(refused.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn on_loopback_no_token_is_asked_for_but_the_name_of_this_machine() {
    for (listen, host, code) in [
        ("127.0.0.1:80", "127.0.0.1:80", StatusCode::OK),
        ("[::1]:80", "localhost", StatusCode::OK),
        ("127.0.0.1:80", "evil.example", StatusCode::MISDIRECTED_REQUEST),
        // A sidecar or a port-forward comes from loopback too: where it came from says nothing about who it is.
        ("0.0.0.0:80", "127.0.0.1:80", StatusCode::UNAUTHORIZED),
    ] {
        let stage = stage(listen);
        assert_eq!(open(&stage.page, with(header::HOST, host)).await.0, code, "{listen} {host}");
        stage.stop.cancel();
    }
}

fn reload() -> Arc<Batch> {
    Arc::new(Batch {
        now: readiness::Time(7),
        changed: Vec::new(),
        gone: Vec::new(),
        reload: true,
        names: shown::Names::default(),
    })
}

#[tokio::test]
async fn a_slow_reader_is_let_go_and_the_others_are_not() {
    let stage = stage("127.0.0.1:80");
    let (_, slow) = open(&stage.page, local()).await;
    let (_, mut quick) = open(&stage.page, local()).await;
    for _ in 0..100 {
        stage.page.0.desk.batches.send(reload()).unwrap();
        while !quick.frame().await.unwrap().unwrap().into_data().unwrap().starts_with(b"event: reload") {}
    }
    let said = heard(slow).await;
    assert!(said.ends_with("event: end\ndata: too slow\n\n"), "{said}");
    let metrics = &stage.page.0.metrics;
    assert_eq!((metrics.page_streams.get(), metrics.page_streams_dropped.get()), (1, 1));
    stage.stop.cancel();
    assert_eq!(heard(quick).await, "event: end\ndata: stopping\n\n");
}

#[tokio::test]
async fn streams_are_bounded_and_who_disconnects_makes_room() {
    let stage = stage("127.0.0.1:80");
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let (code, body) = open(&stage.page, local()).await;
        assert_eq!(code, StatusCode::OK);
        streams.push(body);
    }
    assert_eq!(open(&stage.page, local()).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stage.page.0.metrics.page_streams.get(), STREAMS as i64);
    // In the middle of it: something was heard, and more is to come.
    _ = streams[0].frame().await;
    drop(streams.swap_remove(0));
    assert_eq!(stage.page.0.metrics.page_streams.get(), STREAMS as i64 - 1);
    assert_eq!(open(&stage.page, local()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn however_many_look_the_loop_is_asked_once_and_again_only_if_something_moved() {
    let stage = stage("127.0.0.1:80");
    let asked = || stage.worlds.load(Ordering::Relaxed);
    let look = || async { stage.page.0.desk.shown().await.unwrap() };
    futures::future::join_all((0..500).map(|_| look())).await;
    assert_eq!(asked(), 1);
    // Nothing moves: what was made stays good for ever.
    stage.page.0.desk.rested().await;
    look().await;
    assert_eq!(asked(), 1);
    stage.snapshot.send_replace(Arc::default());
    futures::future::join_all((0..500).map(|_| look())).await;
    assert_eq!(asked(), 2);
    // It moves on and on: not before what was made has been good for a while.
    let clock = &stage.page.0.desk.clock;
    let start = clock.now();
    for _ in 0..50 {
        stage.snapshot.send_replace(Arc::default());
        look().await;
    }
    let most = 3 + (clock.now() - start).as_millis() / 250;
    assert!(asked() as u128 <= most, "{} times, at most {most}", asked());
}

fn node(depth: usize, name: &str, kind: u16) -> tree::Node {
    tree::Node {
        depth,
        kind: String::new(),
        label: String::new(),
        namespace: String::new(),
        name: name.to_owned(),
        verdict: "Ready",
        reason: String::new(),
        detail: String::new(),
        since: None,
        since_from: None,
        optional: false,
        uid: None,
        policy: String::new(),
        more: 0,
        place: (aggregator::KindId(kind), "a".into()),
        lens: 0,
    }
}

#[test]
fn what_may_not_be_seen_takes_along_what_is_below_it() {
    let all = [
        (0, "shop", 1),
        (1, "db", 2),
        (2, "pod", 3),
        (3, "deep", 1),
        (1, "web", 3),
        (1, "job", 1),
        (2, "x", 3),
    ];
    let tree = || all.map(|(depth, name, kind)| node(depth, name, kind)).to_vec();
    let left = |unseen: u16| {
        let mut nodes = tree();
        let hidden = tree::hide(&mut nodes, |(kind, _)| kind.0 != unseen);
        (nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(" "), hidden)
    };
    assert_eq!(left(9), ("shop db pod deep web job x".to_owned(), false));
    assert_eq!(left(2), ("shop web job x".to_owned(), true));
    assert_eq!(left(3), ("shop db job".to_owned(), true));
    assert_eq!(left(1), (String::new(), true));
}

#[test]
fn the_page_names_nothing_outside_of_it() {
    for (path, _, text) in ASSETS {
        let outside = text.replace("http://www.w3.org/2000/svg", "");
        for word in [
            "http:",
            "https:",
            "//cdn",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "eval(",
            "style=",
            "onclick=",
        ] {
            assert!(!outside.contains(word), "{word} in {path}");
        }
    }
}

#[test]
fn the_page_is_small() {
    let bytes: usize = ASSETS.iter().map(|(_, _, text)| text.len()).sum();
    assert!(bytes < 96 * 1024, "{bytes} bytes come to a browser that has nothing yet");
}
