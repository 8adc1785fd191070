//! Access control and streams, against a simulated API server and a simulated loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use prometheus::{IntCounterVec, Opts};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::authz::PageViewer;
use super::page_service::MAX_STREAMS;
use super::view_cache::ChangeBatch;
use super::*;
use crate::clock::ServerClock;
use crate::kind_tasks::ResolvedKinds;
use crate::metrics::Metrics;
use crate::reviews::review_server::ReviewServer;
use crate::reviews::{AccessAuthorizer, AccessRight, TokenAuthenticator};
use crate::snapshot::StatsSnapshot;
use crate::transitions::TransitionHub;
use rollcall_core::{ParentChanges, ParentDetail};

mod lately;
mod scope;

/// Ann may list databases in `a`; all other tokens are unknown.
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

struct PageHarness {
    page: PageService,
    /// Number of times the loop was queried for the state of all parents.
    worlds: Arc<AtomicUsize>,
    /// Number of times the loop heard that nobody asks any more.
    ends: Arc<AtomicUsize>,
    transitions: Arc<TransitionHub>,
    played: ReviewServer,
    stop: CancellationToken,
    snapshot: watch::Sender<Arc<StatsSnapshot>>,
}

fn authorizer(listen: &str, played: &ReviewServer) -> PageAuthorizer {
    let listen: std::net::SocketAddr = listen.parse().unwrap();
    let clock = ServerClock::assume_local().local_clock();
    let metrics = Metrics::new(0).unwrap().token_reviews();
    let tokens = TokenAuthenticator::new(played.client(), clock, Vec::new(), metrics);
    let rights = AccessAuthorizer::new(played.client(), clock);
    PageAuthorizer::new(listen.ip().is_loopback(), tokens, rights)
}

/// A page in front of a loop without parents.
fn stage(listen: &str) -> PageHarness {
    let played = ReviewServer::new(ann);
    let (asks, mut asked) = mpsc::channel(LOOP_QUERY_QUEUE_SIZE);
    let worlds = Arc::new(AtomicUsize::new(0));
    let ends = Arc::new(AtomicUsize::new(0));
    let (counted, ended) = (worlds.clone(), ends.clone());
    tokio::spawn(async move {
        while let Some(ask) = asked.recv().await {
            match ask {
                LoopQuery::Changes(_, to) => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    _ = to.send(ParentChanges::default());
                }
                LoopQuery::EndChanges => _ = ended.fetch_add(1, Ordering::Relaxed),
                LoopQuery::Edges(to) => _ = to.send(Vec::new()),
                LoopQuery::Details(of, to) => _ = to.send(vec![ParentDetail::default(); of.len()]),
            }
        }
    });
    let (snapshot, snapshots) = watch::channel(Arc::default());
    let (known, stop) = (ResolvedKinds::default(), CancellationToken::new());
    let dropped = IntCounterVec::new(Opts::new("dropped", "dropped"), &["by"]).unwrap();
    let transitions = Arc::new(TransitionHub::new(known.clone(), dropped));
    let page = PageService::new(PageConfig {
        authz: authorizer(listen, &played),
        client: played.client(),
        reflector: Arc::new(Reflector::new(|| ())),
        resolved: known,
        metrics: Arc::new(Metrics::new(0).unwrap()),
        clock: ServerClock::assume_local(),
        queries: asks,
        snapshot: snapshots,
        transitions: Arc::downgrade(&transitions),
        stop: stop.clone(),
    });
    PageHarness { page, worlds, ends, transitions, played, stop, snapshot }
}

fn with(name: header::HeaderName, value: &str) -> ViewerRequest {
    let headers = HeaderMap::from_iter([(name, value.parse().unwrap())]);
    ViewerRequest { headers, address: std::net::IpAddr::from([10, 0, 0, 1]).into() }
}

fn local() -> ViewerRequest {
    with(header::HOST, "localhost:8080")
}

async fn open(page: &PageService, request: ViewerRequest) -> (StatusCode, Body) {
    let response = stream::open_stream(State(page.clone()), request).await.into_response();
    (response.status(), response.into_body())
}

/// Content of a stream until its end.
async fn heard(body: Body) -> String {
    let body = tokio::time::timeout(Duration::from_secs(5), body.collect()).await.unwrap().unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

fn databases(namespace: &str) -> AccessRight {
    let (group, resource) = ("example.com".to_owned(), "databases".to_owned());
    AccessRight { verb: "list", group, resource, namespace: namespace.to_owned(), name: String::new() }
}

#[tokio::test]
async fn a_wrong_token_is_no_token_and_a_right_one_is_asked_about_once() {
    let stage = stage("0.0.0.0:80");
    let gate = &stage.page.0.authz;
    let refused =
        |request| async move { gate.identify_viewer(&request).await.unwrap_err().into_response().status() };
    assert_eq!(refused(local()).await, StatusCode::UNAUTHORIZED);
    assert_eq!(refused(with(header::AUTHORIZATION, "Bearer bob's")).await, StatusCode::UNAUTHORIZED);
    let asked = stage.played.asked();
    for _ in 0..3 {
        assert!(matches!(
            gate.identify_viewer(&with(header::AUTHORIZATION, "Bearer ann's")).await,
            Ok(PageViewer::User(_))
        ));
        assert_eq!(refused(with(header::AUTHORIZATION, "Bearer bob's")).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(stage.played.asked(), asked + 1);
}

#[tokio::test]
async fn what_may_not_be_listed_is_not_seen_and_what_was_asked_is_remembered() {
    let stage = stage("0.0.0.0:80");
    let gate = &stage.page.0.authz;
    let viewer = gate.identify_viewer(&with(header::AUTHORIZATION, "Bearer ann's")).await.unwrap();
    let asked = stage.played.asked();
    for _ in 0..3 {
        let rights = ["", "a", "b"].map(databases).to_vec();
        let (allowed, cut) = gate.allowed_rights(&viewer, rights).await.unwrap();
        assert_eq!((allowed.into_iter().collect::<Vec<_>>(), cut), (vec![1], false));
    }
    assert_eq!(stage.played.asked(), asked + 3);
    let many = (0..1_000).map(|n| databases(&format!("n{n}"))).collect();
    let (allowed, cut) = gate.allowed_rights(&viewer, many).await.unwrap();
    assert!(allowed.is_empty() && cut, "one request asks so many questions and no more");
    assert_eq!(stage.played.asked(), asked + 3 + 256);
}

#[tokio::test]
async fn who_may_not_ask_says_so_and_lets_nobody_in() {
    let stage = stage("0.0.0.0:80");
    stage.played.set_answer(|_, _| json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no" }));
    let refused =
        stage.page.0.authz.identify_viewer(&with(header::AUTHORIZATION, "Bearer ann's")).await.unwrap_err();
    assert_eq!(refused, refusal::PageRefusal::ReviewForbidden);
    assert_eq!(refused.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// Prometheus may read metrics.
fn prometheus(path: &str, review: &Value) -> Value {
    let spec = &review["spec"];
    if path.ends_with("/tokenreviews") {
        let user = json!({ "username": spec["token"] });
        return json!({ "status": { "authenticated": spec["token"] != "nobody", "user": user } });
    }
    let may = spec["user"] == "prometheus" && spec["nonResourceAttributes"]["path"] == "/metrics";
    json!({ "status": { "allowed": may } })
}

#[tokio::test]
async fn metrics_are_for_those_who_may_get_that_path() {
    let played = ReviewServer::new(prometheus);
    for (listen, request, code) in [
        ("0.0.0.0:80", local(), Some(StatusCode::UNAUTHORIZED)),
        ("0.0.0.0:80", with(header::AUTHORIZATION, "Bearer nobody"), Some(StatusCode::UNAUTHORIZED)),
        ("0.0.0.0:80", with(header::AUTHORIZATION, "Bearer ann"), Some(StatusCode::FORBIDDEN)),
        ("0.0.0.0:80", with(header::AUTHORIZATION, "Bearer prometheus"), None),
        // Prometheus in a pod's network, or on this machine, names it as it likes.
        ("127.0.0.1:80", with(header::HOST, "rollcall"), None),
    ] {
        let refused = authorizer(listen, &played).authorize_metrics(&request).await.err();
        let refused = refused.map(|refused| refused.into_response().status());
        assert_eq!(refused, code, "{listen} {:?}", request.headers);
    }
}

#[tokio::test]
async fn on_loopback_no_token_is_asked_for_but_the_name_of_this_machine() {
    for (listen, host, code) in [
        ("127.0.0.1:80", "127.0.0.1:80", StatusCode::OK),
        ("[::1]:80", "localhost", StatusCode::OK),
        ("127.0.0.1:80", "evil.example", StatusCode::MISDIRECTED_REQUEST),
        // A sidecar or a port-forward also connects from loopback: the source address does not identify the client.
        ("0.0.0.0:80", "127.0.0.1:80", StatusCode::UNAUTHORIZED),
    ] {
        let stage = stage(listen);
        assert_eq!(open(&stage.page, with(header::HOST, host)).await.0, code, "{listen} {host}");
        stage.stop.cancel();
    }
}

fn reload() -> Arc<ChangeBatch> {
    Arc::new(ChangeBatch {
        number: 7,
        now: readiness::Time(7),
        changed: Vec::new(),
        gone: Vec::new(),
        reload: true,
        names: Arc::default(),
    })
}

#[tokio::test]
async fn a_slow_reader_is_let_go_and_the_others_are_not() {
    let stage = stage("127.0.0.1:80");
    let (_, slow) = open(&stage.page, local()).await;
    let (_, mut quick) = open(&stage.page, local()).await;
    for _ in 0..100 {
        stage.page.0.views.batches.send(reload()).unwrap();
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
    for _ in 0..MAX_STREAMS {
        let (code, body) = open(&stage.page, local()).await;
        assert_eq!(code, StatusCode::OK);
        streams.push(body);
    }
    assert_eq!(open(&stage.page, local()).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stage.page.0.metrics.page_streams.get(), i64::try_from(MAX_STREAMS).unwrap());
    // In the middle of a stream: one event was received, and more will follow.
    _ = streams[0].frame().await;
    drop(streams.swap_remove(0));
    assert_eq!(stage.page.0.metrics.page_streams.get(), i64::try_from(MAX_STREAMS - 1).unwrap());
    assert_eq!(open(&stage.page, local()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn however_many_look_the_loop_is_asked_once_and_again_only_if_something_moved() {
    let stage = stage("127.0.0.1:80");
    let asked = || stage.worlds.load(Ordering::Relaxed);
    let look = || async { stage.page.0.views.current_view().await.unwrap() };
    futures::future::join_all((0..500).map(|_| look())).await;
    assert_eq!(asked(), 1);
    // Without changes the view stays fresh forever.
    stage.page.0.views.expire_view().await;
    look().await;
    assert_eq!(asked(), 1);
    stage.snapshot.send_replace(Arc::default());
    futures::future::join_all((0..500).map(|_| look())).await;
    assert_eq!(asked(), 2);
    // With continuous changes the view is not rebuilt before its fresh time has passed.
    let clock = &stage.page.0.views.clock;
    let start = clock.now();
    for _ in 0..50 {
        stage.snapshot.send_replace(Arc::default());
        look().await;
    }
    let most = 3 + (clock.now() - start).as_millis() / 250;
    assert!(asked() as u128 <= most, "{} times, at most {most}", asked());
}

#[tokio::test(start_paused = true)]
async fn a_view_that_nobody_looks_at_is_dropped_however_much_changes() {
    let stage = stage("127.0.0.1:80");
    tokio::spawn(stage.page.0.views.clone().run(stage.stop.clone()));
    stage.page.0.views.current_view().await.unwrap();
    for (seconds, ends) in [(40, 0), (40, 1), (100, 1)] {
        for _ in 0..seconds / 2 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            stage.snapshot.send_replace(Arc::default());
        }
        assert_eq!(stage.ends.load(Ordering::Relaxed), ends);
    }
    assert_eq!(stage.worlds.load(Ordering::Relaxed), 1);
}

fn node(depth: usize, name: &str, kind: u32) -> tree::PageNode {
    tree::PageNode {
        depth,
        kind: String::new(),
        label: String::new(),
        namespace: String::new(),
        name: name.to_owned(),
        verdict: "Ready",
        reason: rollcall_core::NodeReason::default(),
        detail: String::new(),
        since: None,
        since_from: None,
        optional: false,
        uid: None,
        policy: String::new(),
        more: 0,
        id: aggregator::ObjectId(0),
        kind_namespace: (aggregator::KindId(kind), "a".into()),
        rule_index: 0,
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
    let left = |unseen: u32| {
        let mut nodes = tree();
        let hidden =
            tree::hide_nodes(&mut nodes, |node| node.depth, |node| node.kind_namespace.0.0 != unseen);
        (nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(" "), hidden)
    };
    assert_eq!(left(9), ("shop db pod deep web job x".to_owned(), false));
    assert_eq!(left(2), ("shop web job x".to_owned(), true));
    assert_eq!(left(3), ("shop db job".to_owned(), true));
    assert_eq!(left(1), (String::new(), true));
}

#[test]
fn the_page_names_nothing_outside_of_it() {
    for (path, _, text) in PAGE_ASSETS {
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
    let bytes: usize = PAGE_ASSETS.iter().map(|(_, _, text)| text.len()).sum();
    assert!(bytes < 96 * 1024, "{bytes} bytes come to a browser that has nothing yet");
}
