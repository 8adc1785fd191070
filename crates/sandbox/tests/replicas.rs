//! Two servers over the same objects, one of which lags, as a client behind a load balancer sees them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod wire;

use sandbox::{FaultAction, FaultHandle, InjectedFault, SandboxOptions, SandboxServer};
use serde_json::json;
use wire::{WireResponse, ask, get, watch};

const NOTES: &str = "/api/v1/namespaces/default/configmaps";

/// Starts a server and a lagging replica: both know the object `old`, only the first knows `new`. Also returns the
/// fault's handle and the revision of the lag.
async fn two() -> (SandboxServer, SandboxServer, FaultHandle, u64) {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let replica = server.start_replica().await.unwrap();
    post(&server, "old").await;
    let revision = server.lock_store().revision();
    let lag = replica.faults().add(InjectedFault::new(FaultAction::LagAt(revision)));
    post(&server, "new").await;
    (server, replica, lag, revision)
}

async fn post(server: &SandboxServer, name: &str) {
    let object = json!({"metadata": {"name": name}});
    assert_eq!(ask(&server.url(), "POST", NOTES, &object).await.unwrap().status, 201);
}

fn names(list: &WireResponse) -> Vec<&str> {
    list.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn replicas_share_their_objects_and_not_their_faults() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let replica = server.start_replica().await.unwrap();
    server.faults().add(InjectedFault::new(FaultAction::Answer(503, None)));
    post(&replica, "a").await;
    assert_eq!(get(&server, NOTES).await.status, 503);
    assert_eq!(names(&get(&replica, NOTES).await), ["a"]);
    assert_eq!((server.logged_requests().len(), replica.logged_requests().len()), (1, 2));
}

#[tokio::test]
async fn a_lagging_cache_answers_with_the_past_where_the_reader_allows_it() {
    let (server, replica, lag, revision) = two().await;
    let cached = format!("{NOTES}?resourceVersion=0");
    assert_eq!(names(&get(&server, &cached).await), ["new", "old"]);
    let past = get(&replica, &cached).await;
    assert_eq!(names(&past), ["old"]);
    assert_eq!(past.body["metadata"]["resourceVersion"], revision.to_string());
    assert_eq!(get(&replica, &format!("{NOTES}/new?resourceVersion=0")).await.status, 404);
    lag.lift();
    assert_eq!(names(&get(&replica, &cached).await), ["new", "old"]);
}

#[tokio::test]
async fn a_read_without_a_version_is_consistent_on_a_lagging_replica() {
    let (_server, replica, _lag, _) = two().await;
    assert_eq!(names(&get(&replica, NOTES).await), ["new", "old"]);
    assert_eq!(get(&replica, &format!("{NOTES}/new")).await.status, 200);
}

#[tokio::test]
async fn a_lagging_replica_refuses_to_answer_as_of_what_it_has_not_seen() {
    let (server, replica, _lag, _) = two().await;
    let newest = server.lock_store().revision();
    for target in
        [format!("{NOTES}?resourceVersion={newest}"), format!("{NOTES}/new?resourceVersion={newest}")]
    {
        let refused = get(&replica, &target).await;
        assert_eq!((refused.status, &refused.body["reason"]), (504, &json!("Timeout")), "{target}");
        assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
        assert_eq!(refused.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    }
}

#[tokio::test]
async fn a_watch_on_a_lagging_replica_is_silent_until_it_catches_up() {
    let (server, replica, lag, revision) = two().await;
    let target = format!("{NOTES}?watch=1&resourceVersion={revision}");
    let mut there = watch(&server, &target).await;
    let mut here = watch(&replica, &target).await;
    assert_eq!(there.tells(1).await, ["ADDED new"]);
    assert!(here.is_silent().await);
    lag.lift();
    assert_eq!(here.tells(1).await, ["ADDED new"]);
}

#[tokio::test]
async fn a_streamed_list_on_a_lagging_replica_ends_when_it_is_as_fresh_as_a_consistent_read() {
    let (_server, replica, lag, _) = two().await;
    let streamed = format!(
        "{NOTES}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut consistent = watch(&replica, &streamed).await;
    assert_eq!(consistent.tells(1).await, ["ADDED old"]);
    assert!(consistent.is_silent().await, "not before it caught up");
    let mut any = watch(&replica, &format!("{streamed}&resourceVersion=0")).await;
    assert_eq!(any.tells(2).await, ["ADDED old", "BOOKMARK"], "any version will do");
    lag.lift();
    assert_eq!(consistent.tells(2).await, ["ADDED new", "BOOKMARK"]);
}
