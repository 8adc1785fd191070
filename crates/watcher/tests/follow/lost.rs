//! Broken connections, expired versions, revoked permissions: no event is lost and none is invented.

use std::time::Duration;

use sandbox::store::SandboxStore;
use sandbox::{FaultAction, InjectedFault, RequestVerb, SandboxOptions, SandboxServer};
use serde_json::json;
use watcher::{ApiFailureCause, FollowOptions, ParentObject, follow};

use crate::cluster::{ConsumerMirror, FollowedCluster, deployment, hasty};

#[tokio::test]
async fn what_is_there_and_what_changes_is_followed() {
    let cluster = FollowedCluster::new().await.with(&["a", "b"]);
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a", "b"]).await;
    cluster.create(deployment("c"));
    mirror.knows(&["a", "b", "c"]).await;
    cluster.delete("b");
    mirror.knows(&["a", "c"]).await;
    assert_eq!((mirror.troubles.len(), cluster.asked(RequestVerb::List)), (0, 1));
}

#[tokio::test]
async fn watches_are_reopened_without_a_list() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a"]).await;
    for name in ["b", "c", "d"] {
        cluster.server.end_watches();
        cluster.create(deployment(name));
        mirror.until(name, |mirror| mirror.names().contains(&name)).await;
    }
    assert_eq!(cluster.asked(RequestVerb::List), 1);
}

#[tokio::test]
async fn only_what_is_asked_for_is_followed() {
    let cluster = FollowedCluster::new().await.with(&["a", "b"]);
    let options = FollowOptions { labels: Some("app in (b, c)".into()), ..hasty() };
    let mut mirror: ConsumerMirror<ParentObject> = cluster.follow_with(options).await;
    mirror.knows(&["b"]).await;
    cluster.create(deployment("d"));
    cluster.create(deployment("c"));
    mirror.knows(&["b", "c"]).await;

    let kind = cluster.kind("apps", "Deployment").await;
    let mut elsewhere: ConsumerMirror<ParentObject> =
        ConsumerMirror::new(follow(&cluster.client, &kind, Some("kube-system"), hasty()));
    elsewhere.knows(&[]).await;
    let nodes = cluster.kind("", "Node").await;
    let mut nodes: ConsumerMirror<ParentObject> =
        ConsumerMirror::new(follow(&cluster.client, &nodes, Some("default"), hasty()));
    nodes.knows(&[]).await;
    assert_eq!(nodes.troubles, [], "a cluster-scoped kind has no namespace to ask for");
}

#[tokio::test]
async fn a_large_list_comes_in_pages() {
    let cluster = FollowedCluster::new().await.with(&["a", "b", "c", "d", "e"]);
    let mut mirror: ConsumerMirror<ParentObject> =
        cluster.follow_with(FollowOptions { page: 2, ..hasty() }).await;
    mirror.knows(&["a", "b", "c", "d", "e"]).await;
    assert_eq!((cluster.asked(RequestVerb::List), mirror.lists), (3, 1));
}

#[tokio::test]
async fn a_list_that_breaks_off_never_counts_as_done() {
    let breaks = [
        FaultAction::Answer(500, None),
        FaultAction::Answer(410, None),
        FaultAction::Drop,
        FaultAction::Stall,
        FaultAction::AnswerRaw("{".into()),
    ];
    for act in breaks {
        let cluster = FollowedCluster::new().await.with(&["a", "b", "c", "d", "e"]);
        let second_page = InjectedFault::new(act.clone()).on_verb(RequestVerb::List).skip_first(1).once();
        cluster.server.faults().add(second_page);
        let mut mirror: ConsumerMirror<ParentObject> =
            cluster.follow_with(FollowOptions { page: 2, ..hasty() }).await;
        mirror.until("finished a list", |mirror| mirror.lists == 1).await;
        assert_eq!(mirror.names(), ["a", "b", "c", "d", "e"], "{act:?}");
        assert_eq!(mirror.troubles.len(), 1, "{act:?}: {:?}", mirror.troubles);
        assert_eq!(cluster.asked(RequestVerb::List), 2 + 3, "{act:?}");
    }
}

#[tokio::test]
async fn gone_as_a_status_is_answered_by_a_list() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let gone = cluster.on_watches(FaultAction::Answer(410, None));
    let mut mirror = cluster.follow().await;
    mirror.until("listed twice", |mirror| mirror.lists == 2).await;
    mirror.hears_of(ApiFailureCause::Gone).await;
    assert_eq!((gone.fired_count(), cluster.asked(RequestVerb::List)), (1, 2));
    cluster.create(deployment("b"));
    mirror.knows(&["a", "b"]).await;
}

#[tokio::test]
async fn gone_in_the_stream_is_answered_by_a_list() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    cluster.on_watches(FaultAction::ErrorEvent(410));
    let mut mirror = cluster.follow().await;
    mirror.until("listed twice", |mirror| mirror.lists == 2).await;
    mirror.hears_of(ApiFailureCause::Gone).await;
    assert_eq!(cluster.asked(RequestVerb::List), 2);
    cluster.create(deployment("b"));
    mirror.knows(&["a", "b"]).await;
}

#[tokio::test]
async fn gone_as_a_bare_status_in_the_stream_is_answered_by_a_list() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let status = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":410}\n";
    cluster.on_watches(FaultAction::RawLine(status.into()));
    let mut mirror = cluster.follow().await;
    mirror.until("listed twice", |mirror| mirror.lists == 2).await;
    mirror.hears_of(ApiFailureCause::Gone).await;
}

#[tokio::test]
async fn a_history_that_was_really_compacted_is_answered_by_a_list() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a"]).await;
    cluster.server.faults().add(InjectedFault::new(FaultAction::Drop).on_verb(RequestVerb::Watch).at_most(2));
    cluster.server.end_watches();
    mirror.hears_of(ApiFailureCause::Connection).await;
    cluster.delete("a");
    cluster.create(deployment("b"));
    let revision = cluster.server.lock_store().revision();
    cluster.server.lock_store().compact(revision);
    mirror.knows(&["b"]).await;
    assert_eq!(cluster.asked(RequestVerb::List), 2);
}

#[tokio::test]
async fn an_error_in_the_stream_that_goes_on_is_answered_by_a_list() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let errors = cluster
        .server
        .faults()
        .add(InjectedFault::new(FaultAction::ErrorEvent(500)).on_verb(RequestVerb::Watch).at_most(3));
    let mut mirror = cluster.follow().await;
    mirror.until("listed twice", |mirror| mirror.lists == 2).await;
    mirror.hears_of(ApiFailureCause::ServerError).await;
    assert_eq!((errors.fired_count(), cluster.asked(RequestVerb::List)), (3, 2));
}

#[tokio::test]
async fn a_delete_lost_across_a_reconnect_is_found_by_the_list_that_follows() {
    let cluster = FollowedCluster::new().await.with(&["a", "b"]);
    let mut mirror = cluster.follow().await;
    mirror.watches().await;
    let lost = cluster.server.faults().add(InjectedFault::new(FaultAction::DropEvent).on_name("b"));
    cluster.on_watches(FaultAction::Answer(410, None));
    cluster.delete("b");
    cluster.create(deployment("c"));
    mirror.until("heard of c", |mirror| mirror.names().contains(&"c")).await;
    assert_eq!((mirror.names(), lost.fired_count()), (vec!["a", "b", "c"], 1), "the event is lost");
    cluster.server.end_watches();
    mirror.knows(&["a", "c"]).await;
}

#[tokio::test]
async fn a_watch_that_is_cut_in_the_middle_of_a_line_loses_nothing() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    cluster.on_watches(FaultAction::CutAfter(1));
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a"]).await;
    cluster.create(deployment("b"));
    cluster.create(deployment("c"));
    mirror.knows(&["a", "b", "c"]).await;
    assert_eq!(cluster.asked(RequestVerb::List), 1);
}

#[tokio::test]
async fn a_watch_whose_socket_stalls_is_given_up_and_loses_nothing() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    cluster.on_watches(FaultAction::StallAfter(1));
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a"]).await;
    cluster.create(deployment("b"));
    cluster.create(deployment("c"));
    mirror.knows(&["a", "b", "c"]).await;
    mirror.hears_of(ApiFailureCause::Stalled).await;
    assert_eq!(cluster.asked(RequestVerb::List), 1);
}

#[tokio::test]
async fn a_request_that_is_never_answered_is_given_up_and_asked_again() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let (list, watch) = (cluster.on_lists(FaultAction::Stall), cluster.on_watches(FaultAction::Stall));
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a"]).await;
    cluster.create(deployment("b"));
    mirror.knows(&["a", "b"]).await;
    let stalls = mirror.troubles.iter().filter(|trouble| trouble.cause == ApiFailureCause::Stalled).count();
    assert_eq!((list.fired_count(), watch.fired_count(), stalls), (1, 1, 2));
}

#[tokio::test]
async fn a_watch_that_ends_at_once_is_paced_and_its_events_still_come() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let ends =
        cluster.server.faults().add(InjectedFault::new(FaultAction::EndWatch).on_verb(RequestVerb::Watch));
    let mut mirror = cluster.follow().await;
    mirror.until("heard of it ten times", |mirror| mirror.troubles.len() == 10).await;
    assert!(mirror.troubles.iter().all(|trouble| trouble.cause == ApiFailureCause::EndedAtOnce));
    assert!(ends.fired_count() <= 11, "each is reported, so there are no others: {}", ends.fired_count());
    ends.lift();
    cluster.create(deployment("b"));
    mirror.knows(&["a", "b"]).await;
    assert_eq!(cluster.asked(RequestVerb::List), 1);
}

#[tokio::test]
async fn a_server_that_restarts_is_listed_once() {
    let cluster = FollowedCluster::new().await.with(&["a", "b"]);
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a", "b"]).await;
    let FollowedCluster { server, client } = cluster;
    let addr = server.addr();
    let mut store = std::mem::replace(&mut *server.lock_store(), SandboxStore::new(2));
    drop(server);
    mirror.hears_of(ApiFailureCause::Connection).await;
    let now = 1_800_000_000_000;
    store.delete_object(now, "apps/v1", "Deployment", "default", "a").unwrap();
    let server = SandboxServer::start_with_store(SandboxOptions { addr, ..SandboxOptions::default() }, store)
        .await
        .unwrap();
    // The server's answers while its caches fill, and then that the version has expired.
    let warming = server
        .faults()
        .add(InjectedFault::new(FaultAction::Answer(429, Some(1))).on_verb(RequestVerb::Watch).at_most(2));
    server.faults().add(InjectedFault::new(FaultAction::ErrorEvent(410)).on_verb(RequestVerb::Watch).once());
    mirror.knows(&["b"]).await;
    mirror.hears_of(ApiFailureCause::Throttled).await;
    let again = FollowedCluster { server, client };
    assert_eq!((again.asked(RequestVerb::List), warming.fired_count(), mirror.lists), (1, 2, 2));
}

#[tokio::test]
async fn a_permission_that_goes_and_comes_back_needs_no_restart() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let revoked =
        cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_kind("apps", "deployments"));
    let mut mirror = cluster.follow().await;
    mirror.hears_of(ApiFailureCause::Forbidden).await;
    assert_eq!(mirror.lists, 0, "what may not be listed is never done");
    revoked.lift();
    mirror.knows(&["a"]).await;
}

#[tokio::test]
async fn a_kind_that_is_removed_and_installed_again_needs_no_restart() {
    let cluster = FollowedCluster::new().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let widget = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}});
    cluster.create(definition.clone());
    cluster.create(widget("old"));
    let kind = cluster.kind("example.com", "Widget").await;
    let mut mirror: ConsumerMirror<ParentObject> =
        ConsumerMirror::new(follow(&cluster.client, &kind, None, hasty()));
    mirror.knows(&["old"]).await;
    let now = cluster.server.now();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let request = sandbox::store::StoreRequest::new("DELETE", path);
    assert!(cluster.server.lock_store().handle_request(now, &request).is_success());
    cluster.server.end_watches();
    mirror.hears_of(ApiFailureCause::NotInstalled).await;
    cluster.create(definition);
    cluster.create(widget("new"));
    mirror.knows(&["new"]).await;
}

#[tokio::test]
async fn a_duplicated_a_delayed_and_a_swapped_event_leave_the_newest_state() {
    for act in [
        FaultAction::DuplicateEvent,
        FaultAction::DelayEvent(Duration::from_millis(50)),
        FaultAction::SwapEvent,
    ] {
        let cluster = FollowedCluster::new().await.with(&["a"]);
        let mut mirror = cluster.follow().await;
        mirror.knows(&["a"]).await;
        let fault = cluster.server.faults().add(InjectedFault::new(act).on_name("b").once());
        cluster.create(deployment("b"));
        cluster.create(deployment("c"));
        mirror.knows(&["a", "b", "c"]).await;
        assert_eq!(fault.fired_count(), 1);
    }
}
