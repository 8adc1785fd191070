//! The one way that everything hangs on: children come up, break, recover, and their parent says so.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, gone, has, mentions, says};
use acceptance::objects::{condition, deployment, job, owned_by, playing, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Children of the three kinds that the tests here play with.
fn three_kinds(tenant: &TestTenant) -> Value {
    json!([tenant.child("Deployment"), tenant.child("StatefulSet"), tenant.child("Job")])
}

#[tokio::test]
async fn a_parent_goes_from_unknown_over_false_to_true_and_never_true_early() -> Result<()> {
    let tenant = TestTenant::start("rollout").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({ "children": three_kinds(&tenant), "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "StatefulSet", "Job"]).await?;

    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.until("Database/db", says("Ready", "Unknown").and(because("Ready", "ChildrenPending"))).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 2)))).await?;
    tenant.create(owned_by(&db, playing("hold", stateful_set("store", 3)))).await?;
    tenant.create(owned_by(&db, playing("hold", job("migrate")))).await?;
    for (app, pods) in [("web", 2), ("store", 3), ("migrate", 1)] {
        tenant.until_pods(app, pods).await?;
    }
    tenant.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenProgressing"))).await?;
    tenant.until("Database/db", mentions("Ready", "3 of 3 not ready")).await?;
    tenant.until("Database/db", says("Reconciling", "True")).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", mentions("Ready", "2 of 3 not ready")).await?;
    tenant.play("migrate", None).await?;
    tenant.play("store", None).await?;
    let well = says("Ready", "True").and(because("Ready", "AllChildrenReady")).and(current("Ready"));
    tenant.until("Database/db", well.and(has("Reconciling", false))).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1), ("StatefulSet", 1), ("Job", 1)])?;
    let order = recording.statuses(&parent, "Ready");
    assert_eq!(order, ["Unknown", "False", "True"], "{}", recording.transcript(&parent, "Ready"));
    Ok(())
}

#[tokio::test]
async fn kubectl_wait_returns_at_the_right_moment() -> Result<()> {
    let tenant = TestTenant::start("wait").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({ "children": three_kinds(&tenant), "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let kind = tenant.kind("Database");
    let mut wait = tenant
        .plane
        .kubectl_command()?
        .args(["wait", "--for=condition=Ready", "--timeout=60s", "-n", &tenant.name])
        .arg(format!("{}.{}/db", kind.plural(), kind.group()))
        .spawn()?;

    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, stateful_set("store", 1))).await?;
    tenant.create(owned_by(&db, playing("hold", job("migrate")))).await?;
    tenant.until("Database/db", mentions("Ready", "1 of 3 not ready")).await?;
    assert!(wait.try_wait()?.is_none(), "kubectl returned before the job was done");
    tenant.play("migrate", None).await?;
    let status = tokio::task::spawn_blocking(move || wait.wait()).await??;
    assert!(status.success(), "kubectl wait: {status}");
    let after = tenant.get("Database/db").await?;
    assert_eq!(condition(&after, "Ready").context("no Ready")?["status"], "True");
    Ok(())
}

#[tokio::test]
async fn a_child_that_breaks_later_is_named_in_the_message() -> Result<()> {
    let tenant = TestTenant::start("break").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment"), tenant.child("StatefulSet")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, stateful_set("store", 2))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    tenant.play("store", Some("crash")).await?;
    let named = mentions("Ready", "1 of 2 not ready").and(mentions("Ready", "StatefulSet store"));
    tenant.until("Database/db", says("Ready", "False").and(named)).await?;
    let stalled = StateExpectation::new("not Stalled: a crash loop may recover", |db| {
        condition(db, "Stalled").is_none()
    });
    tenant.until("Database/db", stalled).await?;
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_job_that_failed_for_good_is_named_and_stalls_its_parent() -> Result<()> {
    let tenant = TestTenant::start("failed").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({ "children": [tenant.child("Job")], "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("fail", job("migrate")))).await?;
    let named = mentions("Ready", "Job migrate failed").and(mentions("Ready", "BackoffLimitExceeded"));
    tenant.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenFailed"))).await?;
    tenant.until("Database/db", named.and(says("Stalled", "True")).and(has("Reconciling", false))).await?;
    Ok(())
}

#[tokio::test]
async fn a_child_that_the_garbage_collector_takes_is_missed() -> Result<()> {
    let tenant = TestTenant::start("garbage").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Backup")).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let backup = tenant.create(tenant.custom("Backup", "nightly")).await?;
    // Held by two owners: it goes when the last of them goes, but not before.
    tenant.create(owned_by(&backup, owned_by(&db, deployment("shared", 1)))).await?;
    tenant.create(owned_by(&backup, deployment("helper", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.delete("Backup/nightly").await?;
    tenant.until("Deployment/helper", gone()).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    tenant.delete("Deployment/shared").await?;
    let missed = says("Ready", "False").and(because("Ready", "ChildrenMissing"));
    tenant.until("Database/db", missed.and(mentions("Ready", "Deployment"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_parent_in_deletion_is_told_once_and_then_left_alone() -> Result<()> {
    let tenant = TestTenant::start("deletion").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let mut parent = tenant.custom("Database", "db");
    parent["metadata"]["finalizers"] = json!(["example.com/held"]);
    let db = tenant.create(parent).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.delete("Database/db").await?;
    tenant.until("Database/db", says("Ready", "False").and(because("Ready", "Terminating"))).await?;

    tenant.play("web", Some("crash")).await?;
    tenant.until("Deployment/web", says("Available", "False")).await?;
    tenant.change("Database/db", json!({ "metadata": { "finalizers": null } })).await?;
    tenant.until("Database/db", gone()).await?;
    let recording = recorder.stop().await?;
    let said = recording.said(&tenant.address("Database/db")?, "Ready");
    let last = said.iter().rev().take_while(|said| said.entry["reason"] == "Terminating").count();
    assert_eq!(last, 1, "{said:#?}");
    assert_eq!(said.last().context("nothing said")?.entry["reason"], "Terminating");
    Ok(())
}

#[tokio::test]
async fn the_pass_looks_below_a_workload_and_says_why_it_is_not_ready() -> Result<()> {
    let tenant = TestTenant::start("why").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment")]);
    let limits = json!({ "pending": "8s" });
    let spec = json!({ "children": children, "settle": "200ms", "limits": limits });
    tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&["--resync=1s"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut web = deployment("web", 1);
    // No node has this: the scheduler itself says so.
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    tenant.create(owned_by(&db, web)).await?;
    let pod = mentions("Ready", "Pod web-").and(mentions("Ready", "unschedulable"));
    tenant.until("Database/db", says("Ready", "False").and(pod)).await?;
    // Beyond the limit of its policy the workload is stuck, which its own status would never say.
    tenant.until("Database/db", because("Ready", "ChildrenStuck").and(says("Stalled", "True"))).await?;
    let mended = json!({ "spec": { "template": { "spec": { "nodeSelector": null } } } });
    tenant.change("Deployment/web", mended).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}
