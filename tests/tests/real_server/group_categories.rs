//! Groups of all kinds of a category.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::objects::{deployment, playing};
use acceptance::recorder::StateRecorder;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const PART_OF: &str = "app.kubernetes.io/part-of";

/// The namespaced kinds that a plain API server has in category `all`.
fn kinds_of_all() -> Value {
    let kind = |(group, kind): &(&str, &str)| json!({ "group": group, "kind": kind });
    let kinds = [
        ("", "Pod"),
        ("", "ReplicationController"),
        ("", "Service"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("batch", "CronJob"),
        ("batch", "Job"),
    ];
    kinds.iter().map(kind).collect()
}

fn of_category(category: &str) -> Value {
    json!({ "settle": "100ms", "members": [{ "category": category, "labels": { PART_OF: "shop" } }] })
}

/// A Deployment that is part of the shop, as its Pods are.
fn part_of_shop(name: &str) -> Value {
    let mut object = deployment(name, 1);
    object["metadata"]["labels"] = json!({ PART_OF: "shop" });
    object["spec"]["template"]["metadata"]["labels"][PART_OF] = json!("shop");
    object
}

#[tokio::test]
async fn all_that_is_part_of_an_application_is_a_group_and_what_its_members_make_is_not() -> Result<()> {
    let tenant = TestTenant::start("category").await?;
    let kinds = json!({ "members": [{ "kinds": kinds_of_all(), "labels": { PART_OF: "shop" } }] });
    let _running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", kinds)]).await?;
    tenant.readiness_group("shop", of_category("all")).await?;
    let listed = tenant.plane.kubectl(&["api-resources", "--categories", "all"])?;
    ensure!(listed.contains("deployments") && !listed.contains("configmaps"), "{listed}");
    let empty = mentions("Ready", "object of category all missing (0 of at least 1 found)");
    tenant.until("ReadinessGroup/shop", because("Ready", "ChildrenMissing").and(empty)).await?;
    tenant.create(playing("hold", part_of_shop("web"))).await?;
    let service = json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "labels": { PART_OF: "shop" } }, "spec": { "ports": [{ "port": 80 }] } });
    tenant.create(service).await?;
    let held = says("Ready", "False").and(mentions("Ready", "1 of 2 not ready"));
    tenant.until("ReadinessGroup/shop", held.and(mentions("Ready", "Deployment web"))).await?;
    tenant.play("web", None).await?;
    // Its ReplicaSet and its Pod carry the label, too.
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    Ok(())
}

#[tokio::test]
async fn kinds_come_into_a_category_and_what_may_not_be_listed_of_it_is_named() -> Result<()> {
    let tenant = TestTenant::start("category").await?;
    let category = format!("managed-{}", tenant.name);
    tenant.crd(&CrdBuilder::new("Bucket").in_category(&category)).await?;
    let known =
        json!([{ "group": tenant.group, "kind": "Bucket" }, { "group": tenant.group, "kind": "Queue" }]);
    let kinds = json!({ "members": [{ "kinds": known, "labels": { PART_OF: "shop" } }] });
    let _running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", kinds)]).await?;
    let create = async |kind: &str, name: &str| {
        let mut object = tenant.custom(kind, name);
        object["metadata"]["labels"] = json!({ PART_OF: "shop" });
        tenant.create(object).await?;
        let ready = json!([{ "type": "Ready", "status": "True", "reason": "Up", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        tenant.change_status(&format!("{kind}/{name}"), json!({ "conditions": ready })).await
    };
    create("Bucket", "images").await?;
    tenant.readiness_group("shop", of_category(&category)).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    let recorder = StateRecorder::start(&tenant, &["ReadinessGroup"]).await?;
    tenant.crd(&CrdBuilder::new("Queue").in_category(&category)).await?;
    create("Queue", "orders").await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    // A kind that has joined is listed before anything is said of it.
    let told = recorder.stop().await?.statuses(&tenant.address("ReadinessGroup/shop")?, "Ready");
    assert!(!told.contains(&"Unknown".to_owned()), "{told:?}");
    tenant.crd(&CrdBuilder::new("Topic").in_category(&category)).await?;
    tenant
        .until(
            "ReadinessGroup/shop",
            says("Ready", "Unknown").and(because("Ready", "KindNotVisible")).and(mentions("Ready", "Topic")),
        )
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_group_with_members_that_are_in_no_namespace_says_so() -> Result<()> {
    let tenant = TestTenant::start("category").await?;
    let objects =
        json!([{ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "view" }]);
    let spec = json!({ "settle": "100ms", "members": [{ "objects": objects }] });
    let _running = tenant
        .rollcall_for_groups(&[tenant.group_manifest(
            "g",
            json!({ "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" } }] }),
        )])
        .await?;
    tenant.readiness_group("shop", spec).await?;
    let refused =
        because("Ready", "TemplateFailed").and(mentions("Ready", "ClusterRole.rbac.authorization.k8s.io is"));
    tenant.until("ReadinessGroup/shop", says("Ready", "Unknown").and(refused)).await?;
    Ok(())
}
