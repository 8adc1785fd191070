//! API discovery of a group and kind.

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::json;
use watcher::{ApiFailureCause, Discovered, discover, resolve_kind};

use crate::cluster::FollowedCluster;

#[tokio::test]
async fn kinds_are_found_by_group_and_name() {
    let cluster = FollowedCluster::new().await;
    let cases = [
        ("apps", None, "Deployment", "/apis/apps/v1/deployments", true),
        ("", None, "Pod", "/api/v1/pods", true),
        ("", Some("v1"), "ConfigMap", "/api/v1/configmaps", false),
        (
            "autoscaling",
            Some("v1"),
            "HorizontalPodAutoscaler",
            "/apis/autoscaling/v1/horizontalpodautoscalers",
            true,
        ),
        (
            "rbac.authorization.k8s.io",
            None,
            "ClusterRole",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            false,
        ),
    ];
    for (group, version, kind, path, has_status) in cases {
        let found = resolve_kind(&cluster.client, group, version, kind).await.unwrap().unwrap();
        assert_eq!((found.list_path(None).as_str(), found.has_status), (path, has_status), "{kind}");
    }
    assert!(!cluster.kind("", "Node").await.namespaced);
    assert_eq!(cluster.kind("", "Node").await.list_path(Some("default")), "/api/v1/nodes");
}

#[tokio::test]
async fn what_is_not_installed_is_no_error() {
    let cluster = FollowedCluster::new().await;
    for (group, version, kind) in [
        ("example.com", None, "Widget"),
        ("apps", None, "Widget"),
        ("apps", Some("v9"), "Deployment"),
        ("", None, "Widget"),
        // A subresource is not a kind: `deployments/scale` returns a Scale.
        ("apps", None, "Scale"),
    ] {
        assert_eq!(
            resolve_kind(&cluster.client, group, version, kind).await.unwrap(),
            None,
            "{group}/{kind}"
        );
    }
}

#[tokio::test]
async fn a_kind_is_found_in_the_version_that_has_it() {
    let cluster = FollowedCluster::new().await;
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let define = |kind: &str, plural: &str, versions: serde_json::Value| {
        cluster.create(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"kind": kind, "plural": plural}, "versions": versions},
        }));
    };
    define("New", "news", json!([version("v1", true)]));
    define("Old", "olds", json!([version("v1beta1", true)]));
    let old = cluster.kind("example.com", "Old").await;
    assert_eq!((old.version.as_str(), old.namespaced, old.has_status), ("v1beta1", false, true));
    assert_eq!(cluster.kind("example.com", "New").await.version, "v1");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_one_that_has_no_such_kind() {
    let cluster = FollowedCluster::new().await;
    cluster
        .server
        .faults()
        .add(InjectedFault::new(FaultAction::Answer(503, None)).on_verb(RequestVerb::Other));
    let error = resolve_kind(&cluster.client, "apps", None, "Deployment").await.unwrap_err();
    assert_eq!(error.cause, ApiFailureCause::ServerError);
}

#[tokio::test]
async fn a_kind_is_absent_only_where_the_server_lists_what_it_has_and_lacks_it() {
    let cluster = FollowedCluster::new().await;
    let found = async |group: &str, version: Option<&str>, kind: &str| {
        discover(&cluster.client, group, version, kind).await.unwrap()
    };
    assert!(matches!(found("apps", None, "Deployment").await, Discovered::Served(_)));
    assert!(matches!(found("apps", Some("v1"), "Deployment").await, Discovered::Served(_)));
    for (group, version, kind) in [
        ("example.com", None, "Widget"),
        ("apps", None, "Widget"),
        ("apps", Some("v9"), "Widget"),
        ("", None, "Widget"),
    ] {
        assert_eq!(found(group, version, kind).await, Discovered::Absent, "{group}/{kind}");
    }
    let elsewhere = found("apps", Some("v9"), "Deployment").await;
    let Discovered::Unserved { why, elsewhere: Some(found) } = &elsewhere else { panic!("{elsewhere:?}") };
    assert!(why.contains("apps/v1") && found.version == "v1", "{elsewhere:?}");
}

#[tokio::test]
async fn a_page_of_discovery_that_is_missing_is_no_proof_that_a_kind_is_absent() {
    for skip in [0, 1] {
        let cluster = FollowedCluster::new().await;
        let missing = InjectedFault::new(FaultAction::Answer(404, None))
            .on_verb(RequestVerb::Other)
            .skip_first(skip)
            .once();
        let missing = cluster.server.faults().add(missing);
        let found = discover(&cluster.client, "apps", None, "Deployment").await.unwrap();
        assert!(matches!(found, Discovered::Unserved { .. }), "page {skip}: {found:?}");
        assert_eq!(missing.fired_count(), 1);
    }
}
