//! Groups: parents for what has none.

use std::time::Duration;

use acceptance::caller::version_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::helm::HelmChart;
use acceptance::objects::{deployment, job, playing};
use acceptance::recorder::StateRecorder;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

use crate::live::run;

const PART_OF: &str = "app.kubernetes.io/part-of";

fn deployments() -> Value {
    json!([{ "group": "apps", "kind": "Deployment" }])
}

/// A group of the Deployments that are part of something.
fn part_of(what: &str) -> Value {
    json!({ "members": [{ "kinds": deployments(), "labels": { PART_OF: what } }], "settle": "100ms" })
}

/// Deployments that are part of something, with a Job by its name.
fn with_job(what: &str, name: &str) -> Value {
    let objects = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": name }]);
    json!({ "settle": "100ms", "members": [
        { "kinds": deployments(), "labels": { PART_OF: what } }, { "objects": objects },
    ] })
}

fn labelled(labels: &Value, mut object: Value) -> Value {
    object["metadata"]["labels"] = labels.clone();
    object
}

#[tokio::test]
async fn a_group_is_ready_when_all_of_its_members_are_and_not_before() -> Result<()> {
    let tenant = TestTenant::start("group").await?;
    let specs = [with_job("shop", "migrate"), part_of("books")];
    let manifests: Vec<_> = specs.iter().map(|spec| tenant.group_manifest("g", spec.clone())).collect();
    let _running = tenant.rollcall_for_groups(&manifests).await?;
    let created = tenant.readiness_group("shop", specs[0].clone()).await?;
    // Its very first state, as the server returns it.
    let first = acceptance::objects::condition(&created, "Ready").cloned().unwrap_or_default();
    assert_eq!(
        (&first["status"], &first["reason"]),
        (&json!("Unknown"), &json!("ChildrenPending")),
        "{created}"
    );
    let recorder = StateRecorder::start(&tenant, &["ReadinessGroup"]).await?;
    tenant.readiness_group("books", specs[1].clone()).await?;
    tenant
        .until(
            "ReadinessGroup/shop",
            because("Ready", "ChildrenMissing").and(mentions("Ready", "Job migrate")),
        )
        .await?;
    let shop = json!({ PART_OF: "shop" });
    tenant.create(labelled(&shop, playing("hold", deployment("web", 2)))).await?;
    tenant.create(job("migrate")).await?;
    tenant.create(job("unrelated")).await?;
    tenant.create(labelled(&json!({ PART_OF: "books" }), deployment("shelf", 1))).await?;
    tenant.until("ReadinessGroup/books", says("Ready", "True").and(current("Ready"))).await?;
    tenant
        .until("ReadinessGroup/shop", says("Ready", "False").and(mentions("Ready", "Deployment web")))
        .await?;
    tenant.play("web", None).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    // A member that comes later, and one that is relabelled, count at once.
    tenant.create(labelled(&shop, playing("hold", deployment("late", 1)))).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "False").and(mentions("Ready", "late"))).await?;
    let moved = json!({ "metadata": { "labels": { PART_OF: "books" } } });
    tenant.change("Deployment/late", moved).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True")).await?;
    tenant.until("ReadinessGroup/books", says("Ready", "False").and(mentions("Ready", "late"))).await?;
    let recording = recorder.stop().await?;
    let told = recording.statuses(&tenant.address("ReadinessGroup/shop")?, "Ready");
    assert_eq!(told, ["Unknown", "False", "True", "False", "True"]);
    Ok(())
}

#[tokio::test]
async fn an_application_and_an_inventory_are_groups_by_the_annotations_of_their_tools() -> Result<()> {
    let tenant = TestTenant::start("tracked").await?;
    let replica_sets =
        json!([{ "group": "apps", "kind": "Deployment" }, { "group": "apps", "kind": "ReplicaSet" }]);
    let any = json!({ "min": 0 });
    // Of an Application outside of Argo CD's own namespace, and of a RootSync: neither would fit into a label.
    let (books, fleet) =
        (format!("team_{}", "books-".repeat(20) + "eu"), format!("fleet_{}", "shop-".repeat(20) + "eu"));
    let application = json!({ "settle": "100ms",
        "members": [{ "kinds": replica_sets, "application": books, "expect": any }] });
    let inventory = json!({ "settle": "100ms", "members": [{ "kinds": deployments(), "inventory": fleet }] });
    let specs = [application, inventory];
    let manifests: Vec<_> = specs.iter().map(|spec| tenant.group_manifest("g", spec.clone())).collect();
    let _running = tenant.rollcall_for_groups(&manifests).await?;
    let [application, inventory] = specs;
    tenant.readiness_group("books", application).await?;
    tenant.readiness_group("fleet", inventory).await?;
    let marked = |mut object: Value, key: &str, value: &str| {
        object["metadata"]["annotations"][key] = json!(value);
        object
    };
    let tracking_id = format!("{books}:apps/Deployment:{}/web", tenant.name);
    let web = marked(deployment("web", 1), "argocd.argoproj.io/tracking-id", &tracking_id);
    tenant.create(web).await?;
    let other = marked(playing("hold", deployment("shelf", 1)), "config.k8s.io/owning-inventory", &fleet);
    tenant.create(other).await?;
    // Its ReplicaSet has the annotation, too, copied by the controller of Deployments.
    let ready = says("Ready", "True").and(mentions("Ready", "1 of 1 ready"));
    tenant.until("ReadinessGroup/books", ready).await?;
    let held = says("Ready", "False").and(mentions("Ready", "Deployment shelf"));
    tenant.until("ReadinessGroup/fleet", held).await?;
    tenant.play("shelf", None).await?;
    tenant.until("ReadinessGroup/fleet", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_release_of_helm_is_a_group_though_its_chart_sets_no_label() -> Result<()> {
    let tenant = TestTenant::start("released").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    let chart = HelmChart::new(&tenant, tenant.custom("Site", "any"))?;
    let sites = json!([{ "group": tenant.group, "kind": "Site" }]);
    let spec = json!({ "settle": "100ms", "members": [{ "kinds": sites, "helmRelease": "shop" }] });
    let _running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", spec.clone())]).await?;
    tenant.readiness_group("shop", spec).await?;
    tenant.until("ReadinessGroup/shop", because("Ready", "ChildrenMissing")).await?;
    for release in ["other", "shop"] {
        chart.begin("install", release, &["--wait=hookOnly"])?.succeeds().await?;
    }
    tenant.until("ReadinessGroup/shop", mentions("Ready", "Site shop")).await?;
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    tenant.change_status("Site/shop", json!({ "conditions": ready })).await?;
    // That of the other release is none of its own.
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_group_that_selects_otherwise_than_before_begins_anew() -> Result<()> {
    let tenant = TestTenant::start("regroup").await?;
    let before = part_of("shop");
    let after = json!({ "settle": "100ms", "members": [{ "kinds": deployments(), "labels": { "team": "red", PART_OF: "shop" } }] });
    let manifests = [tenant.group_manifest("g", before.clone())];
    let _running = tenant.rollcall_for_groups(&manifests).await?;
    tenant.create(labelled(&json!({ PART_OF: "shop" }), deployment("web", 1))).await?;
    tenant
        .create(labelled(&json!({ PART_OF: "shop", "team": "red" }), playing("hold", deployment("red", 1))))
        .await?;
    tenant.readiness_group("shop", before).await?;
    tenant
        .until("ReadinessGroup/shop", says("Ready", "False").and(mentions("Ready", "1 of 2 not ready")))
        .await?;
    let recorder = StateRecorder::start(&tenant, &["ReadinessGroup"]).await?;
    tenant.change("ReadinessGroup/shop", json!({ "spec": after })).await?;
    let red = says("Ready", "False").and(mentions("Ready", "1 of 1 not ready")).and(current("Ready"));
    tenant.until("ReadinessGroup/shop", red).await?;
    tenant.play("red", None).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    let told = recorder.stop().await?.statuses(&tenant.address("ReadinessGroup/shop")?, "Ready");
    assert_eq!(told, ["False", "Unknown", "False", "True"]);
    Ok(())
}

#[tokio::test]
async fn a_group_of_groups_waits_for_each_of_them_and_a_restart_writes_nothing() -> Result<()> {
    let tenant = TestTenant::start("groups").await?;
    let inner = part_of("shop");
    let objects =
        json!([{ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "name": "inner" }]);
    let outer = json!({ "settle": "100ms", "members": [{ "objects": objects }] });
    let mut next = part_of("next");
    next["after"] = json!([{ "name": "inner" }]);
    let manifests = [&inner, &outer, &next].map(|spec| tenant.group_manifest("g", spec.clone()));
    let mut running = tenant.rollcall_for_groups(&manifests).await?;
    tenant.readiness_group("outer", outer).await?;
    tenant.until("ReadinessGroup/outer", because("Ready", "ChildrenMissing")).await?;
    tenant.readiness_group("inner", inner).await?;
    tenant.create(labelled(&json!({ PART_OF: "shop" }), playing("hold", deployment("web", 1)))).await?;
    tenant
        .until("ReadinessGroup/outer", says("Ready", "False").and(mentions("Ready", "Deployment web")))
        .await?;
    // One that comes after it is told of it, though all of its own members are ready.
    tenant.create(labelled(&json!({ PART_OF: "next" }), deployment("last", 1))).await?;
    tenant.readiness_group("next", next).await?;
    tenant
        .until(
            "ReadinessGroup/next",
            mentions("Ready", "1 of 2 not ready").and(mentions("Ready", "Deployment web")),
        )
        .await?;
    tenant.play("web", None).await?;
    tenant.until("ReadinessGroup/next", says("Ready", "True")).await?;
    let outer = tenant.until("ReadinessGroup/outer", says("Ready", "True")).await?;
    let inner = tenant.until("ReadinessGroup/inner", says("Ready", "True")).await?;
    running.terminate().await?;
    running.again().await?;
    running.until_ready().await?;
    running.until_metric("rollcall_parents", &["ReadinessGroup/"], |parents| parents >= 1.0).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    for (place, before) in [("ReadinessGroup/outer", outer), ("ReadinessGroup/inner", inner)] {
        assert_eq!(version_of(&tenant.get(place).await?), version_of(&before), "{place} was written at rest");
    }
    Ok(())
}

#[tokio::test]
async fn a_group_that_cannot_be_judged_says_why_and_keeps_nobody_else() -> Result<()> {
    let tenant = TestTenant::start("badgroup").await?;
    let good = part_of("shop");
    let _running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", good.clone())]).await?;
    let kinds: Vec<_> = (0..16).map(|n| json!({ "group": "example.com", "kind": format!("K{n}") })).collect();
    let member = json!({ "kinds": kinds, "labels": { "a": "b" } });
    tenant.readiness_group("wide", json!({ "members": vec![member; 5] })).await?;
    tenant
        .until(
            "ReadinessGroup/wide",
            says("Ready", "Unknown")
                .and(because("Ready", "TemplateFailed"))
                .and(mentions("Ready", "select in 80 ways")),
        )
        .await?;
    // What Rollcall may not list is named.
    let secret = json!({ "members": [{ "kinds": [{ "group": "apps", "kind": "StatefulSet" }], "labels": { "a": "b" } }] });
    tenant.readiness_group("unseen", secret).await?;
    tenant
        .until(
            "ReadinessGroup/unseen",
            because("Ready", "KindNotVisible").and(mentions("Ready", "StatefulSet")),
        )
        .await?;
    tenant.create(labelled(&json!({ PART_OF: "shop" }), deployment("web", 1))).await?;
    tenant.readiness_group("good", good).await?;
    tenant.until("ReadinessGroup/good", says("Ready", "True")).await?;
    // The server itself refuses what its schema can say.
    for spec in [json!({ "members": [] }), json!({ "members": [{ "labels": { "a": "b" } }] })] {
        let refused = tenant.readiness_group("refused", spec).await;
        assert!(refused.is_err_and(|error| format!("{error:#}").contains("spec.members")), "refused");
    }
    Ok(())
}

#[tokio::test]
async fn groups_of_another_release_are_left_alone() -> Result<()> {
    let (one, two) = (TestTenant::start("release").await?, TestTenant::start("release").await?);
    let spec = part_of("shop");
    let mut released = Vec::new();
    for tenant in [&one, &two] {
        let running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", spec.clone())]).await?;
        tenant.create(labelled(&json!({ PART_OF: "shop" }), deployment("web", 1))).await?;
        tenant.readiness_group("shop", spec.clone()).await?;
        let ready = tenant.until("ReadinessGroup/shop", says("Ready", "True")).await?;
        released.push((running, ready));
    }
    // With its last group gone, a release follows the kind no more, and cleans nothing of others.
    two.delete("ReadinessGroup/shop").await?;
    two.until("ReadinessGroup/shop", acceptance::expectation::gone()).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let now = one.get("ReadinessGroup/shop").await?;
    assert_eq!(version_of(&now), version_of(&released[0].1), "{now}");
    Ok(())
}

#[tokio::test]
async fn the_command_line_knows_groups() -> Result<()> {
    let tenant = TestTenant::start("groupcli").await?;
    let spec = with_job("shop", "migrate");
    tenant.readiness_group("shop", spec.clone()).await?;
    tenant.create(labelled(&json!({ PART_OF: "shop" }), deployment("web", 1))).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    let (code, out, err) = run(&tenant, &["tree", "readinessgroup/shop"]).await?;
    assert_eq!(code, 1, "{out}{err}");
    for part in ["ReadinessGroup", "shop", "Deployment", "web", "migrate"] {
        assert!(out.contains(part), "no {part} in:\n{out}{err}");
    }
    tenant.create(job("migrate")).await?;
    let (code, out, err) = run(&tenant, &["wait", "readinessgroup/shop", "--timeout", "2m"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = run(&tenant, &["explain", "readinessgroup/shop"]).await?;
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("AllChildrenReady") && out.contains("2 of 2 ready"), "{out}{err}");
    Ok(())
}
