//! Recorded answers are served unchanged, byte by byte, when they are requested.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod wire;

use sandbox::{ReplayScript, ReplayServer};
use serde_json::{Value, json};
use wire::{WireConnection, WireResponse, ask};

async fn get(server: &ReplayServer, target: &str) -> WireResponse {
    ask(&server.url(), "GET", target, &Value::Null).await.unwrap()
}

fn pod(number: usize) -> Vec<u8> {
    format!("{{\"metadata\":{{\"name\":\"p{number}\",\"resourceVersion\":\"{number}\"}}}}").into_bytes()
}

fn line(number: usize) -> Vec<u8> {
    [b"{\"type\":\"MODIFIED\",\"object\":".as_slice(), &pod(number), b"}\n"].concat()
}

#[tokio::test]
async fn a_recorded_list_comes_in_its_pages() {
    let items: Vec<Vec<u8>> = (0..5).map(pod).collect();
    let server =
        ReplayServer::start(ReplayScript::default().with_list("/api/v1/pods", "v1", "Pod", 77, &items, 2))
            .await
            .unwrap();
    let mut sizes = Vec::new();
    let mut token = String::new();
    loop {
        let page = get(&server, &format!("/api/v1/pods?limit=2&continue={token}")).await;
        assert_eq!(page.body["kind"], "PodList");
        assert_eq!(page.body["metadata"]["resourceVersion"], "77");
        sizes.push(page.body["items"].as_array().unwrap().len());
        match page.body["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
}

#[tokio::test]
async fn a_recorded_list_of_nothing_is_an_empty_list() {
    let server =
        ReplayServer::start(ReplayScript::default().with_list("/api/v1/pods", "v1", "Pod", 1, &[], 500))
            .await
            .unwrap();
    assert_eq!(get(&server, "/api/v1/pods").await.body["items"], json!([]));
}

#[tokio::test]
async fn recorded_lines_wait_for_their_release_and_then_come_whole_and_in_order() {
    const LINES: usize = 20_000;
    let server =
        ReplayServer::start(ReplayScript::default().with_watch("/api/v1/pods", (0..LINES).map(line)))
            .await
            .unwrap();
    let mut early = WireConnection::open(&server.url(), "/api/v1/pods?watch=1").await;
    assert!(early.is_silent().await);
    server.release_watches();
    let mut late = WireConnection::open(&server.url(), "/api/v1/pods?watch=true&resourceVersion=1").await;
    let wanted: Vec<u8> = (0..LINES).flat_map(line).collect();
    for watch in [&mut early, &mut late] {
        assert!(watch.bytes(wanted.len()).await == wanted, "other bytes than were recorded");
        assert!(watch.is_silent().await, "the watch stays open when all is told");
    }
}

#[tokio::test]
async fn other_answers_are_as_recorded_and_unknown_paths_are_404() {
    let server = ReplayServer::start(ReplayScript::default().with_answer("/api", r#"{"versions":["v1"]}"#))
        .await
        .unwrap();
    assert_eq!(get(&server, "/api").await.body, json!({"versions": ["v1"]}));
    assert_eq!(get(&server, "/apis").await.status, 404);
}
