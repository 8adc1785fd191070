//! Effects of faults on watches: lines are lost, late, doubled, out of order, broken, or stop coming.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod wire;

use std::time::Duration;

use sandbox::{FaultAction, InjectedFault, RequestVerb, SandboxOptions, SandboxServer};
use serde_json::{Value, json};
use wire::{WireConnection, ask, get, watch};

const NOTES: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Delay long enough that even a busy machine does everything else before. 3 s.
const LATE: Duration = Duration::from_secs(3);

/// Starts a server and a watch of its ConfigMaps that opens with this fault.
async fn watched(act: FaultAction) -> (SandboxServer, WireConnection) {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    server.faults().add(InjectedFault::new(act).on_kind("", "configmaps").once());
    let notes = watch(&server, &format!("{NOTES}?watch=1")).await;
    (server, notes)
}

async fn post(server: &SandboxServer, names: &[&str]) {
    for name in names {
        post_to(server, NOTES, name).await;
    }
}

async fn post_to(server: &SandboxServer, collection: &str, name: &str) {
    let object = json!({"metadata": {"name": name}});
    let answer = ask(&server.url(), "POST", collection, &object).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.body);
}

#[tokio::test]
async fn a_lost_event_is_never_told_and_the_next_one_is() {
    let (server, mut notes) = watched(FaultAction::DropEvent).await;
    post(&server, &["a", "b"]).await;
    assert_eq!(notes.tells(1).await, ["ADDED b"]);
}

#[tokio::test]
async fn a_watch_that_asks_for_more_time_than_there_is_lives_on() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let mut notes = watch(&server, &format!("{NOTES}?watch=1&timeoutSeconds={}", i64::MAX)).await;
    post(&server, &["a"]).await;
    assert_eq!(notes.tells(1).await, ["ADDED a"]);
}

#[tokio::test]
async fn a_doubled_event_is_told_twice() {
    let (server, mut notes) = watched(FaultAction::DuplicateEvent).await;
    post(&server, &["a", "b"]).await;
    assert_eq!(notes.tells(3).await, ["ADDED a", "ADDED a", "ADDED b"]);
}

#[tokio::test]
async fn two_events_of_a_kind_change_places() {
    let (server, mut notes) = watched(FaultAction::SwapEvent).await;
    post(&server, &["a", "b", "c"]).await;
    assert_eq!(notes.tells(3).await, ["ADDED b", "ADDED a", "ADDED c"]);
}

#[tokio::test]
async fn a_late_event_holds_back_what_follows_it_and_keeps_the_order() {
    let (server, mut notes) = watched(FaultAction::DelayEvent(LATE)).await;
    post(&server, &["a", "b"]).await;
    assert!(notes.is_silent().await);
    assert_eq!(notes.tells(2).await, ["ADDED a", "ADDED b"]);
}

#[tokio::test]
async fn kinds_overtake_each_other() {
    let (server, mut notes) = watched(FaultAction::DelayEvent(LATE)).await;
    let mut secrets = watch(&server, &format!("{SECRETS}?watch=1")).await;
    post(&server, &["first"]).await;
    post_to(&server, SECRETS, "second").await;
    tokio::select! {
        biased;
        told = notes.tells(1) => panic!("{told:?} came before the later write of the other kind"),
        told = secrets.tells(1) => assert_eq!(told, ["ADDED second"]),
    }
    assert_eq!(notes.tells(1).await, ["ADDED first"]);
}

#[tokio::test]
async fn only_the_events_of_one_object_are_lost() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let fault = server
        .faults()
        .add(InjectedFault::new(FaultAction::DropEvent).on_kind("", "configmaps").on_name("b"));
    let mut notes = watch(&server, &format!("{NOTES}?watch=1")).await;
    post(&server, &["a", "b", "c"]).await;
    assert_eq!(notes.tells(2).await, ["ADDED a", "ADDED c"]);
    assert_eq!(fault.fired_count(), 1);
}

#[tokio::test]
async fn a_line_is_cut_in_its_middle_and_the_connection_closed() {
    let (server, mut notes) = watched(FaultAction::CutAfter(1)).await;
    post(&server, &["a", "b"]).await;
    let (text, ended) = notes.rest().await;
    assert!(ended.is_err(), "no proper end of the body");
    let lines: Vec<&str> = text.split('\n').collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(serde_json::from_str::<Value>(lines[0]).is_ok());
    assert!(lines[1].starts_with("{\"type\":\"ADDED\""), "{text}");
    assert!(serde_json::from_str::<Value>(lines[1]).is_err(), "half a line");
}

#[tokio::test]
async fn a_stalled_watch_says_no_more_and_stays_open() {
    let (server, mut notes) = watched(FaultAction::StallAfter(1)).await;
    post(&server, &["a", "b", "c"]).await;
    assert_eq!(notes.tells(1).await, ["ADDED a"]);
    assert!(notes.is_silent().await);
    let mut other = watch(&server, &format!("{NOTES}?watch=1")).await;
    assert_eq!(other.tells(3).await, ["ADDED a", "ADDED b", "ADDED c"], "another watch is well");
}

#[tokio::test]
async fn a_watch_ends_at_once_properly() {
    let (_server, mut notes) = watched(FaultAction::EndWatch).await;
    let (text, ended) = notes.rest().await;
    assert_eq!(text, "");
    assert!(ended.is_ok());
}

#[tokio::test]
async fn too_old_comes_as_a_status_or_as_an_event() {
    let (_server, mut notes) = watched(FaultAction::ErrorEvent(410)).await;
    assert_eq!(notes.tells(1).await, ["ERROR 410"]);
    assert!(notes.rest().await.1.is_ok(), "and the watch ends");

    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    server
        .faults()
        .add(InjectedFault::new(FaultAction::Answer(410, None)).on_verb(RequestVerb::Watch).once());
    let refused = get(&server, &format!("{NOTES}?watch=1&resourceVersion=1")).await;
    assert_eq!((refused.status, &refused.body["reason"]), (410, &json!("Expired")));
}

#[tokio::test]
async fn what_was_forgotten_is_too_old_for_a_watch_to_resume() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    post(&server, &["a", "b", "c"]).await;
    let revision = server.lock_store().revision();
    server.lock_store().compact(revision - 1);
    let mut old = watch(&server, &format!("{NOTES}?watch=1&resourceVersion={}", revision - 2)).await;
    assert_eq!(old.tells(1).await, ["ERROR 410"]);
    let mut new = watch(&server, &format!("{NOTES}?watch=1&resourceVersion={}", revision - 1)).await;
    assert_eq!(new.tells(1).await, ["ADDED c"]);
}

#[tokio::test]
async fn a_line_can_be_any_bytes() {
    let (server, mut notes) =
        watched(FaultAction::RawLine(b"{\"type\":\"ADDED\",\"object\":null}\n".to_vec())).await;
    post(&server, &["a"]).await;
    assert_eq!(notes.tells(2).await, ["ADDED ", "ADDED a"]);
}

#[tokio::test]
async fn all_watches_end_when_the_server_says_so_and_can_be_resumed() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    post(&server, &["a"]).await;
    let revision = server.lock_store().revision();
    let mut notes = watch(&server, &format!("{NOTES}?watch=1&resourceVersion={revision}")).await;
    assert!(notes.is_silent().await);
    server.end_watches();
    assert!(notes.rest().await.1.is_ok());
    post(&server, &["b"]).await;
    let mut again = watch(&server, &format!("{NOTES}?watch=1&resourceVersion={revision}")).await;
    assert_eq!(again.tells(1).await, ["ADDED b"]);
}

#[tokio::test]
async fn an_edit_behind_the_clients_backs_is_told_too() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let mut notes = watch(&server, &format!("{NOTES}?watch=1")).await;
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    let now = server.now();
    server.lock_store().create_object(now, object).unwrap();
    assert_eq!(notes.tells(1).await, ["ADDED a"]);
}
