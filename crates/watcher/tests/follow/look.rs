//! Live reads.

use std::time::Duration;

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;
use watcher::wire::{ChildObject, WireMeta};
use watcher::{
    ApiFailureCause, ParentObject, WireObject, get_live, get_live_head, list_live, list_live_heads,
    list_live_metadata,
};

use crate::cluster::{FollowedCluster, deployment};

#[tokio::test]
async fn one_object_is_read_as_it_is_now() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let kind = cluster.kind("apps", "Deployment").await;
    let read = async |name: &str| {
        get_live::<ParentObject>(&cluster.client, &kind, Some("default"), name).await.unwrap()
    };
    let a = read("a").await.unwrap();
    assert_eq!((&*a.meta().name, &*a.meta().namespace), ("a", "default"));
    cluster.delete("a");
    assert!(read("a").await.is_none());
    assert!(read("never-was").await.is_none());
}

#[tokio::test]
async fn where_a_kind_is_not_served_for_now_nothing_is_known_of_its_objects() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let kind = cluster.kind("apps", "Deployment").await;
    let read = async || get_live::<ParentObject>(&cluster.client, &kind, Some("default"), "a").await;
    let unserved = cluster
        .server
        .faults()
        .add(InjectedFault::new(FaultAction::Answer(404, None)).on_verb(RequestVerb::Get));
    assert_eq!(read().await.unwrap_err().cause, ApiFailureCause::NotInstalled);
    unserved.lift();
    assert!(read().await.unwrap().is_some());
    let mut other = kind.clone();
    other.version = "v9".into();
    let error = get_live::<ParentObject>(&cluster.client, &other, Some("default"), "a").await.unwrap_err();
    assert_eq!(error.cause, ApiFailureCause::NotInstalled, "a version that is not served");
}

#[tokio::test]
async fn reads_name_no_version_so_that_no_cache_may_answer() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let kind = cluster.kind("apps", "Deployment").await;
    cluster.server.forget_requests();
    let _: Option<ParentObject> = get_live(&cluster.client, &kind, Some("default"), "a").await.unwrap();
    let _: Vec<ParentObject> = list_live(&cluster.client, &kind, None, None).await.unwrap();
    let _ = list_live_metadata(&cluster.client, &kind, None, None).await.unwrap();
    let requests = cluster.server.logged_requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(request.query.iter().all(|(key, _)| !key.starts_with("resourceVersion")), "{request:?}");
    }
}

#[tokio::test]
async fn a_name_that_is_none_is_never_asked_for() {
    let cluster = FollowedCluster::new().await;
    let kind = cluster.kind("apps", "Deployment").await;
    cluster.server.forget_requests();
    for name in ["../../secrets/x", "a/b", "", "..", "a?watch=1"] {
        assert!(
            get_live::<ParentObject>(&cluster.client, &kind, Some("default"), name).await.unwrap().is_none()
        );
        assert!(get_live::<ParentObject>(&cluster.client, &kind, Some(name), "a").await.unwrap().is_none());
    }
    assert_eq!(cluster.server.logged_requests().len(), 0);
}

#[tokio::test]
async fn a_long_list_is_read_whole_and_by_labels() {
    let cluster = FollowedCluster::new().await;
    let names: Vec<String> = (0..1_100).map(|n| format!("d{n:04}")).collect();
    for name in &names {
        cluster.create(deployment(name));
    }
    let kind = cluster.kind("apps", "Deployment").await;
    cluster.server.forget_requests();
    let all: Vec<ParentObject> = list_live(&cluster.client, &kind, Some("default"), None).await.unwrap();
    let mut found: Vec<_> = all.iter().map(|object| object.meta().name.to_string()).collect();
    found.sort();
    assert_eq!(found, names);
    assert_eq!(cluster.asked(RequestVerb::List), 3, "500 at a time");
    let some =
        list_live::<ParentObject>(&cluster.client, &kind, None, Some("app in (d0001, d0777)")).await.unwrap();
    assert_eq!(some.len(), 2);
}

#[tokio::test]
async fn a_list_that_outlives_the_history_is_read_anew_in_one_piece() {
    let cluster = FollowedCluster::new().await;
    (0..600).for_each(|n| cluster.create(deployment(&format!("d{n}"))));
    let kind = cluster.kind("apps", "Deployment").await;
    cluster.server.faults().add(
        InjectedFault::new(FaultAction::Answer(410, None)).on_verb(RequestVerb::List).skip_first(1).once(),
    );
    let all: Vec<ParentObject> = list_live(&cluster.client, &kind, None, None).await.unwrap();
    assert_eq!(all.len(), 600);
    let last = cluster.server.logged_requests().pop().unwrap();
    assert!(last.query.iter().all(|(key, _)| key != "limit" && key != "continue"), "{last:?}");
}

#[tokio::test]
async fn metadata_alone_has_what_identifies_and_links_an_object() {
    let cluster = FollowedCluster::new().await;
    let mut object = deployment("a");
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Shop", "name": "shop", "uid": "u-shop"});
    object["metadata"]["ownerReferences"] = json!([owner]);
    let now = cluster.server.now();
    cluster.server.lock_store().set_controllers(false);
    cluster.server.lock_store().create_object(now, object).unwrap();
    let kind = cluster.kind("apps", "Deployment").await;
    let metas = list_live_metadata(&cluster.client, &kind, None, Some("app=a")).await.unwrap();
    assert_eq!((metas.len(), &*metas[0].name, &*metas[0].owners[0].uid), (1, "a", "u-shop"));
    assert!(metas[0].resource_version > 0);
}

/// The object as received, and its metadata.
#[derive(Clone, Debug)]
struct ObjectWithMetadata(String, WireMeta);

impl<'de> Deserialize<'de> for ObjectWithMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(ObjectWithMetadata(text.get().to_owned(), ChildObject::from_raw(&text).meta))
    }
}

impl WireObject for ObjectWithMetadata {
    fn meta(&self) -> &WireMeta {
        &self.1
    }
}

#[tokio::test]
async fn of_what_is_nobodys_business_the_server_sends_the_metadata_alone() {
    let cluster = FollowedCluster::new().await;
    let mut object = deployment("a");
    object["spec"]["password"] = json!("a word that nobody is told");
    cluster.server.lock_store().create_object(cluster.server.now(), object).unwrap();
    let kind = cluster.kind("apps", "Deployment").await;
    let heads: Vec<ObjectWithMetadata> = list_live_heads(&cluster.client, &kind, None).await.unwrap();
    let head: Option<ObjectWithMetadata> =
        get_live_head(&cluster.client, &kind, Some("default"), "a").await.unwrap();
    let all: Vec<ObjectWithMetadata> = list_live(&cluster.client, &kind, None, None).await.unwrap();
    let told = |whole: &ObjectWithMetadata| whole.0.contains("a word that nobody is told");
    assert!(told(&all[0]), "{all:?}");
    for head in heads.iter().chain(&head) {
        assert!(*head.meta().name == *"a" && !told(head), "{head:?}");
    }
    assert_eq!((heads.len(), head.is_some()), (1, true));
}

#[tokio::test]
async fn a_refusal_is_told_at_once_and_with_its_cause() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let kind = cluster.kind("apps", "Deployment").await;
    let cases = [
        (FaultAction::Answer(429, Some(1)), ApiFailureCause::Throttled, Some(1)),
        (FaultAction::Answer(503, Some(2)), ApiFailureCause::ServerError, Some(2)),
        (FaultAction::Answer(500, None), ApiFailureCause::ServerError, None),
        (FaultAction::Forbid, ApiFailureCause::Forbidden, None),
        (FaultAction::Drop, ApiFailureCause::Connection, None),
        (FaultAction::AnswerRaw("not json".into()), ApiFailureCause::Undecodable, None),
    ];
    for (act, cause, seconds) in cases {
        cluster.server.forget_requests();
        let fault = cluster.server.faults().add(InjectedFault::new(act).on_verb(RequestVerb::Get));
        let error = get_live::<ParentObject>(&cluster.client, &kind, Some("default"), "a").await.unwrap_err();
        assert_eq!((error.cause, error.retry_after), (cause, seconds.map(Duration::from_secs)), "{error}");
        assert!(error.to_string().starts_with("failed to get Deployment.apps default/a: "), "{error}");
        assert_eq!(fault.fired_count(), 1, "nobody retries behind our back");
        fault.lift();
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_named_and_not_left_out() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let kind = cluster.kind("apps", "Deployment").await;
    cluster.on_lists(FaultAction::RawItem(b"{\"metadata\":{\"name\":\"x\xff\",\"uid\":\"u\"}}".to_vec()));
    let all: Vec<ParentObject> = list_live(&cluster.client, &kind, None, None).await.unwrap();
    assert_eq!(all.len(), 2, "bytes that are no text are not the end of it");
    cluster.on_lists(FaultAction::RawItem("nonsense".into()));
    let error = list_live::<ParentObject>(&cluster.client, &kind, None, None).await.unwrap_err();
    assert_eq!(error.cause, ApiFailureCause::Undecodable);
}
