//! Real Helm waits for a parent whose operator keeps `status.observedGeneration` and is slow: behind our own word at the
//! install, at an upgrade, and at one that fails.

use std::time::Duration;

use acceptance::expectation::{StateExpectation, because, current, says, there};
use acceptance::objects::{condition, deployment, job, owned_by, playing};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::generation::{StatusWrite, nothing_is_done, observe, observed};
use crate::helm::{assert_true_now, tenant_with_defaults};
use crate::readers::no_reader_is_early;

fn replicas(count: i64) -> StateExpectation {
    StateExpectation::new("replicas", move |web: &Value| web["spec"]["replicas"] == count)
}

async fn a_slow_operator_is_waited_for(by: StatusWrite) -> Result<()> {
    let (tenant, chart) = tenant_with_defaults("slowly").await?;
    let children =
        json!([tenant.child("Deployment"), { "kind": tenant.child("Job")["kind"], "expect": { "min": 0 } }]);
    let spec = json!({ "children": children, "settle": "300ms" });
    let policy = tenant.policy("db", "Database", spec).await?;
    let _running = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "Job"]).await?;

    let mut install = chart.begin("install", "db", &["--timeout", "100s"])?;
    let db = tenant.until("Database/db", there()).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    install.still_waits("a child is not ready")?;
    tenant.play("web", None).await?;
    install.succeeds().await?;
    // Only now does the operator say that it has handled the first generation, of which we have said so before.
    tenant.until("Database/db", observed(1)).await?;
    observe(&tenant, by, 1).await?;

    let mut upgrade = chart.begin("upgrade", "db", &["--timeout", "100s", "--set", "size=2"])?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    nothing_is_done(&tenant).await?;
    upgrade.still_waits("its operator has not handled the new generation")?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 2 } })).await?;
    observe(&tenant, by, 2).await?;
    // The second pod begins held, as the first one did.
    tenant.until_pods("web", 2).await?;
    upgrade.still_waits("its rollout is under way")?;
    tenant.play("web", None).await?;
    upgrade.succeeds().await?;
    assert_true_now(&tenant.get("Database/db").await?)?;
    tenant.until("Deployment/web", replicas(2)).await?;

    let mut failing = chart.begin("upgrade", "db", &["--timeout", "100s", "--set", "size=3"])?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    nothing_is_done(&tenant).await?;
    failing.still_waits("its operator has not handled this generation either")?;
    tenant.create(owned_by(&db, playing("fail", job("migrate")))).await?;
    observe(&tenant, by, 3).await?;
    tenant.until("Database/db", says("Stalled", "True").and(current("Ready"))).await?;
    let output = timeout(Duration::from_secs(60), failing.end()).await.context("it waits on")??;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it succeeded: {words}");
    assert!(!words.contains("deadline exceeded"), "it waited for its timeout: {words}");

    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    let told_true = |state: &Value| {
        let ready = condition(state, "Ready").filter(|ready| ready["status"] == "True");
        ready.is_some_and(|ready| ready["observedGeneration"] == 3)
    };
    let states = recording.entries().iter().filter_map(|entry| entry.state.as_ref());
    assert!(!states.filter(|state| state["kind"] == "Database").any(told_true), "of what failed");
    no_reader_is_early(&tenant, &policy, &recording, &parent)
}

#[tokio::test]
async fn helm_waits_for_an_operator_that_patches_its_status() -> Result<()> {
    a_slow_operator_is_waited_for(StatusWrite::Merge).await
}

#[tokio::test]
async fn helm_waits_for_an_operator_that_replaces_its_status() -> Result<()> {
    a_slow_operator_is_waited_for(StatusWrite::Put).await
}

#[tokio::test]
async fn helm_waits_for_an_operator_that_applies_its_status() -> Result<()> {
    a_slow_operator_is_waited_for(StatusWrite::Apply).await
}
