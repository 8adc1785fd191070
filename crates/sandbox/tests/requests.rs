//! Effects of faults on requests: the answer is late, wrong, missing or false, and the test knows which.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod wire;

use sandbox::{FaultAction, InjectedFault, RequestVerb, SandboxOptions, SandboxServer};
use serde_json::{Value, json};
use wire::{ask, get};

const NOTES: &str = "/api/v1/namespaces/default/configmaps";

async fn server() -> SandboxServer {
    SandboxServer::start(SandboxOptions::default()).await.unwrap()
}

fn note(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

async fn post(server: &SandboxServer, name: &str) -> std::io::Result<wire::WireResponse> {
    ask(&server.url(), "POST", NOTES, &note(name)).await
}

#[tokio::test]
async fn a_scripted_status_is_answered_once_and_nothing_is_done() {
    let cases = [
        (410, None, "Expired"),
        (429, Some(1), "TooManyRequests"),
        (500, None, "InternalError"),
        (503, Some(7), "ServiceUnavailable"),
        (504, None, "Timeout"),
    ];
    let server = server().await;
    for (code, retry_after, reason) in cases {
        let fault = server.faults().add(
            InjectedFault::new(FaultAction::Answer(code, retry_after)).on_verb(RequestVerb::Create).once(),
        );
        let refused = post(&server, "a").await.unwrap();
        assert_eq!(refused.status, code);
        assert_eq!(refused.body["kind"], "Status");
        assert_eq!(refused.body["reason"], reason);
        let header = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n"));
        assert_eq!(header.is_some(), refused.head.contains("retry-after"), "{}", refused.head);
        assert!(refused.head.contains(&header.unwrap_or_default()), "{}", refused.head);
        assert_eq!(get(&server, &format!("{NOTES}/a")).await.status, 404, "nothing was done");
        assert_eq!(fault.fired_count(), 1);
    }
    assert_eq!(post(&server, "a").await.unwrap().status, 201);
}

#[tokio::test]
async fn a_revoked_permission_is_named_as_rbac_names_it() {
    let server = server().await;
    let fault = server.faults().add(
        InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List).on_kind("apps", "deployments"),
    );
    let refused = get(&server, "/apis/apps/v1/namespaces/default/deployments").await;
    assert_eq!(refused.status, 403);
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.starts_with("deployments.apps is forbidden: User"), "{message}");
    assert!(message.contains("cannot list resource \"deployments\" in API group \"apps\""), "{message}");
    assert_eq!(get(&server, NOTES).await.status, 200, "other kinds are not touched");
    fault.lift();
    assert_eq!(get(&server, "/apis/apps/v1/namespaces/default/deployments").await.status, 200);
}

#[tokio::test]
async fn a_dropped_request_has_no_answer_and_did_nothing() {
    let server = server().await;
    server.faults().add(InjectedFault::new(FaultAction::Drop).on_verb(RequestVerb::Create).once());
    assert!(post(&server, "a").await.is_err());
    assert_eq!(get(&server, &format!("{NOTES}/a")).await.status, 404);
}

#[tokio::test]
async fn a_write_may_be_done_although_its_answer_is_lost() {
    let server = server().await;
    server.faults().add(InjectedFault::new(FaultAction::CommitThenDrop).on_verb(RequestVerb::Create).once());
    assert!(post(&server, "a").await.is_err());
    assert_eq!(get(&server, &format!("{NOTES}/a")).await.status, 200);
    server
        .faults()
        .add(InjectedFault::new(FaultAction::CommitThenAnswer(504)).on_verb(RequestVerb::Create).once());
    assert_eq!(post(&server, "b").await.unwrap().status, 504);
    assert_eq!(get(&server, &format!("{NOTES}/b")).await.status, 200);
}

#[tokio::test]
async fn a_stalled_request_is_taken_and_never_answered() {
    let server = server().await;
    server.faults().add(InjectedFault::new(FaultAction::Stall).on_verb(RequestVerb::List).once());
    let waiting = tokio::time::timeout(wire::SILENCE, ask(&server.url(), "GET", NOTES, &Value::Null)).await;
    assert!(waiting.is_err(), "it was answered: {waiting:?}");
    let seen: Vec<u16> = server.logged_requests().iter().map(|request| request.status).collect();
    assert_eq!(seen, [0], "it arrived, and was not answered");
    assert_eq!(get(&server, NOTES).await.status, 200, "others are answered meanwhile");
}

#[tokio::test]
async fn a_fault_hits_what_it_names_and_nothing_else() {
    let server = server().await;
    let fault = InjectedFault::new(FaultAction::Answer(500, None))
        .on_verb(RequestVerb::Patch)
        .on_kind("", "pods")
        .on_name("p")
        .on_subresource("status");
    let handle = server.faults().add(fault);
    for name in ["p", "q"] {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        ask(&server.url(), "POST", "/api/v1/namespaces/default/pods", &pod).await.unwrap();
    }
    let touch = json!({"metadata": {"labels": {"x": "y"}}});
    let cases = [("p/status", 500), ("p", 200), ("q/status", 200), ("p/status", 500)];
    for (below, wanted) in cases {
        let target = format!("/api/v1/namespaces/default/pods/{below}");
        assert_eq!(ask(&server.url(), "PATCH", &target, &touch).await.unwrap().status, wanted, "{below}");
    }
    assert_eq!(handle.fired_count(), 2);
}

#[tokio::test]
async fn a_fault_lets_pass_and_stops_as_often_as_it_is_told() {
    let server = server().await;
    let handle = server.faults().add(
        InjectedFault::new(FaultAction::Answer(503, None))
            .on_verb(RequestVerb::List)
            .skip_first(1)
            .at_most(2),
    );
    let mut answered = Vec::new();
    for _ in 0..5 {
        answered.push(get(&server, NOTES).await.status);
    }
    assert_eq!(answered, [200, 503, 503, 200, 200]);
    assert_eq!(handle.fired_count(), 2);
}

#[tokio::test]
async fn an_answer_and_an_item_can_be_any_bytes() {
    let server = server().await;
    post(&server, "a").await.unwrap();
    server.faults().add(
        InjectedFault::new(FaultAction::RawItem(br#"{"metadata":7}"#.to_vec()))
            .on_verb(RequestVerb::List)
            .once(),
    );
    let listed = get(&server, NOTES).await;
    assert_eq!(listed.body["items"][0], json!({"metadata": 7}));
    assert_eq!(listed.body["items"][1]["metadata"]["name"], "a");
    server
        .faults()
        .add(InjectedFault::new(FaultAction::AnswerRaw(b"[1, 2".to_vec())).on_verb(RequestVerb::List).once());
    let listed = get(&server, NOTES).await;
    assert_eq!((listed.status, listed.body), (200, Value::Null), "half a document");
}

#[tokio::test]
async fn a_list_that_breaks_off_between_pages_goes_on_when_the_fault_is_over() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        post(&server, name).await.unwrap();
    }
    server.faults().add(
        InjectedFault::new(FaultAction::Answer(500, None)).on_verb(RequestVerb::List).skip_first(1).once(),
    );
    let first = get(&server, &format!("{NOTES}?limit=2")).await;
    let next = format!("{NOTES}?limit=2&continue={}", first.body["metadata"]["continue"].as_str().unwrap());
    assert_eq!(get(&server, &next).await.status, 500);
    let second = get(&server, &next).await;
    assert_eq!(second.body["items"][0]["metadata"]["name"], "c");
}

#[tokio::test]
async fn a_continue_token_that_is_too_old_is_410_and_says_how_to_go_on() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        post(&server, name).await.unwrap();
    }
    let first = get(&server, &format!("{NOTES}?limit=1")).await;
    post(&server, "d").await.unwrap();
    let now = server.lock_store().revision();
    server.lock_store().compact(now);
    let token = first.body["metadata"]["continue"].as_str().unwrap();
    let expired = get(&server, &format!("{NOTES}?limit=1&continue={token}")).await;
    assert_eq!((expired.status, &expired.body["reason"]), (410, &json!("Expired")));
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("{NOTES}?limit=5&continue={token}")).await;
    let names: Vec<&str> = rest.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "c", "d"], "the rest, of another moment");
}

#[tokio::test]
async fn a_continue_token_expires_five_minutes_after_the_world_moved_on() {
    let clock = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(0));
    let hand = clock.clone();
    let time: sandbox::SandboxClock =
        std::sync::Arc::new(move || hand.load(std::sync::atomic::Ordering::SeqCst));
    let server = SandboxServer::start(SandboxOptions { clock: Some(time), ..SandboxOptions::default() })
        .await
        .unwrap();
    for name in ["a", "b"] {
        post(&server, name).await.unwrap();
    }
    let first = get(&server, &format!("{NOTES}?limit=1")).await;
    let next = format!("{NOTES}?limit=1&continue={}", first.body["metadata"]["continue"].as_str().unwrap());
    let at = async |time: i64, name: &str| {
        clock.store(time, std::sync::atomic::Ordering::SeqCst);
        post(&server, name).await.unwrap();
        get(&server, &next).await.status
    };
    assert_eq!(at(1_000, "c").await, 200);
    assert_eq!(at(300_000, "d").await, 200);
    assert_eq!(at(302_000, "e").await, 410, "the change at 1 s is older than five minutes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sees_what_a_request_wrote_finds_the_request_in_the_log() {
    const WRITES: usize = 300;
    let server = std::sync::Arc::new(server().await);
    let reader = server.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let mut written = 0;
        while written < WRITES {
            written = reader.lock_store().list_objects("v1", "ConfigMap", "default").len();
            let logged = reader.logged_requests().iter().filter(|request| request.method == "POST").count();
            assert!(logged >= written, "{written} objects are there, and {logged} requests are logged");
        }
    });
    for number in 0..WRITES {
        assert_eq!(post(&server, &format!("n{number}")).await.unwrap().status, 201);
    }
    reading.await.unwrap();
}

#[tokio::test]
async fn every_request_is_counted_by_what_it_addresses() {
    let server = server().await;
    post(&server, "a").await.unwrap();
    for _ in 0..3 {
        get(&server, &format!("{NOTES}/a")).await;
    }
    ask(&server.url(), "PATCH", "/api/v1/namespaces/default/pods/none/status", &json!({})).await.unwrap();
    get(&server, "/version").await;
    let counts = server.request_counts();
    let counts: Vec<_> =
        counts.iter().map(|(at, n)| (at.verb.as_str(), &*at.plural, &*at.subresource, *n)).collect();
    let expected = [
        ("get", "configmaps", "", 3),
        ("create", "configmaps", "", 1),
        ("patch", "pods", "status", 1),
        ("get", "", "", 1),
    ];
    assert_eq!(counts, expected, "refused ones count too");
    server.forget_requests();
    assert!(server.request_counts().is_empty());
}
