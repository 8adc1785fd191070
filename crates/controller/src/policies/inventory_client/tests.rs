use serde_json::{Value, json};

use super::*;
use crate::clock::ServerClock;
use crate::reviews::review_server::{ReviewAnswer, ReviewServer};

/// There is no ConfigMap, and none can be created, because its namespace is missing.
fn lack_namespace(_: &str, created: &Value) -> Value {
    let kind = if created.is_null() { "configmaps" } else { "namespaces" };
    json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "not found",
        "details": { "name": "rollcall", "kind": kind } })
}

/// What is kept of a policy.
fn one_policy() -> BTreeMap<String, String> {
    let uid = "00000000-0000-4000-8000-000000000001".to_owned();
    let text = r#"{"policy":"db","written":[{"group":"example.com","kind":"Database","types":["Ready"]}]}"#;
    BTreeMap::from([(uid, text.to_owned())])
}

/// The ConfigMap is there, and an admission webhook empties whatever is written to it.
fn empty_writes(_: &str, _: &Value) -> Value {
    json!({ "kind": "ConfigMap", "apiVersion": "v1", "code": 200, "data": {},
        "metadata": { "name": "rollcall-inventory", "namespace": "rollcall", "resourceVersion": "7" } })
}

/// The ConfigMap keeps what is kept of one policy.
fn keep_one_policy(path: &str, changed: &Value) -> Value {
    let mut map = empty_writes(path, changed);
    map["data"] = json!(one_policy());
    map
}

fn client_of(server: &ReviewServer, leadership: Leadership) -> InventoryClient {
    let map = InventoryMap::new(&server.client(), "rollcall", "rollcall-inventory");
    InventoryClient::of_map(server.client(), map, leadership)
}

fn leader() -> Leadership {
    Leadership::permanent(ServerClock::assume_local().local_clock())
}

#[tokio::test(start_paused = true)]
async fn writes_that_do_not_last_are_tried_ever_more_rarely_though_requests_between_them_succeed() {
    for answer in [lack_namespace, empty_writes] {
        let server = ReviewServer::new(answer);
        let mut keeper = client_of(&server, leader());
        let mut told = keeper.published.subscribe();
        let mut inventory = Some(KeptState::read(&one_policy()).0);
        let end = Instant::now() + Duration::from_mins(30);
        let mut changes = 0;
        while Instant::now() < end {
            keeper.begin_request(true, &mut inventory);
            tokio::select! {
                _ = keeper.next_result() => {}
                () = sleep_until(end) => {}
            }
            changes +=
                usize::from(told.has_changed().expect("it is kept") && told.borrow_and_update().is_some());
        }
        assert!(server.asked() < 2 * 45, "{} requests in half an hour", server.asked());
        assert_eq!(changes, 1, "it is said once what is wrong, and stays said");
    }
}

/// Goes on until nothing waits for the inventory: what was read meanwhile.
async fn settle_plan(client: &mut InventoryClient, kept: &mut Option<KeptState>) -> Vec<String> {
    let mut read = Vec::new();
    loop {
        client.begin_request(true, kept);
        if !client.is_awaited(kept.as_ref()) {
            return read;
        }
        if let InventoryResult::Read(found) = client.next_result().await {
            read.extend(found.to_data().into_keys());
            kept.get_or_insert_default().merge(found);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_waits_until_what_policies_wrote_is_known_and_what_they_are_to_write_is_kept() {
    let known = one_policy().into_keys().collect::<Vec<_>>();
    let server = ReviewServer::new(keep_one_policy);
    assert_eq!((settle_plan(&mut client_of(&server, leader()), &mut None).await, server.asked()), (known, 1));

    // The server has something else than is to be kept: one write is waited for, whatever comes of it.
    for answer in [empty_writes as ReviewAnswer, lack_namespace] {
        let mut kept = Some(KeptState::read(&one_policy()).0);
        let server = ReviewServer::new(answer);
        settle_plan(&mut client_of(&server, leader()), &mut kept).await;
        assert_eq!(server.asked(), 2, "a read and a write");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_reads_what_policies_wrote_once_and_again_when_it_leads() {
    let clock = ServerClock::assume_local().local_clock();
    let (leadership, handle) = Leadership::with_handle(clock);
    let server = ReviewServer::new(keep_one_policy);
    let mut client = client_of(&server, leadership);
    let known = one_policy().into_keys().collect::<Vec<_>>();
    let mut kept = None;
    assert_eq!(settle_plan(&mut client, &mut kept).await, known);
    let end = Instant::now() + Duration::from_hours(1);
    while Instant::now() < end {
        client.begin_request(true, &mut kept);
        tokio::select! {
            _ = client.next_result() => {}
            () = sleep_until(end) => {}
        }
    }
    assert_eq!((server.asked(), kept.is_some()), (1, false), "nothing of it is kept by a standby");
    handle.set_until(Some(clock.now() + Duration::from_hours(3)));
    assert_eq!((settle_plan(&mut client, &mut kept).await, server.asked()), (known, 2));
}

#[test]
fn what_somebody_has_emptied_is_found_by_the_next_read_and_written_again() {
    let (mut inventory, unreadable) = KeptState::read(&one_policy());
    assert!(unreadable.is_empty(), "{unreadable:?}");
    let stored = |data| StoredInventory { version: Some("1".to_owned()), created: None, data };
    assert_eq!(wanted_request(None, Some(&inventory), false), Some(WantedRequest::Read));
    let (asked, _) = inventory.conditions.next_unconfirmed().expect("nothing has shown the policy yet");
    let asked = asked.to_owned();
    inventory.conditions.confirm(&asked, false);
    let kept = inventory.to_data();
    assert_eq!(wanted_request(Some(&stored(kept.clone())), Some(&inventory), false), None);
    let again = wanted_request(Some(&stored(kept.clone())), Some(&inventory), true);
    assert_eq!(again, Some(WantedRequest::ReadAgain));
    let emptied = wanted_request(Some(&stored(BTreeMap::new())), Some(&inventory), false);
    assert_eq!(emptied, Some(WantedRequest::Write(kept)));
}
