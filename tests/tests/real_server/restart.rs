//! Ends and beginnings of the process itself.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, mentions, says};
use acceptance::objects::{deployment, job, owned_by, playing, stateful_set};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// All objects that Rollcall could have written: resourceVersion and status of each.
async fn written(tenant: &TestTenant) -> Result<Vec<(Value, Value)>> {
    let (parents, _) = tenant.admin.list(&tenant.kind("Database"), &tenant.name, "").await?;
    let policies = tenant.policies().await?;
    let version_and_status =
        |object: &Value| (object["metadata"]["resourceVersion"].clone(), object["status"].clone());
    Ok(parents.iter().chain(&policies).map(version_and_status).collect())
}

#[tokio::test]
async fn twenty_restarts_at_rest_write_nothing() -> Result<()> {
    let tenant = TestTenant::start("rest").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment"), tenant.child("Job")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    for (name, part) in [("well", None), ("ill", Some("hold"))] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        let web = deployment(&format!("web-{name}"), 1);
        tenant.create(owned_by(&db, part.map_or(web.clone(), |part| playing(part, web)))).await?;
        tenant.create(owned_by(&db, job(&format!("job-{name}")))).await?;
    }
    tenant.until("Database/well", says("Ready", "True")).await?;
    tenant.until("Database/ill", says("Ready", "False").and(mentions("Ready", "1 of 2 not ready"))).await?;
    // The words of the message and the numbers in the policy's status have come to rest, too.
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    assert!(rollcall.terminate().await?.success());
    rollcall.again().await?;
    settled(&rollcall).await?;
    let counts = StateExpectation::new("1 of 2 ready", |policy: &Value| {
        policy["status"]["parents"] == 2 && policy["status"]["ready"] == 1
    });
    tenant
        .until_at(
            &policy_address(&tenant, "db")?,
            &counts.and(says("Ready", "True")).and(says("Watching", "True")),
        )
        .await?;
    assert!(rollcall.terminate().await?.success());

    let before = written(&tenant).await?;
    for round in 0..20 {
        rollcall.again().await?;
        settled(&rollcall).await?;
        if round % 2 == 0 {
            assert!(rollcall.terminate().await?.success());
        } else {
            rollcall.kill()?;
        }
    }
    assert_eq!(written(&tenant).await?, before);
    Ok(())
}

/// It has judged both parents, and its own metric says so: whatever there is to write is written.
async fn settled(rollcall: &acceptance::rollcall::RollcallProcess) -> Result<()> {
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    rollcall.until_metric("rollcall_parents", &[], |count| count >= 2.0).await?;
    Ok(())
}

#[tokio::test]
async fn a_kill_in_mid_rollout_ends_exact_all_the_same() -> Result<()> {
    let tenant = TestTenant::start("killed").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment"), tenant.child("StatefulSet")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "StatefulSet"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.create(owned_by(&db, playing("hold", stateful_set("store", 2)))).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    rollcall.kill()?;
    tenant.until_pods("store", 2).await?;
    tenant.play("store", None).await?;
    rollcall.again().await?;
    tenant.until("Database/db", mentions("Ready", "1 of 2 not ready")).await?;
    rollcall.kill()?;
    tenant.play("web", None).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    rollcall.again().await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1), ("StatefulSet", 1)])?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    Ok(())
}

#[tokio::test]
async fn what_happened_while_it_was_away_is_found() -> Result<()> {
    let tenant = TestTenant::start("away").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    for name in ["kept", "emptied"] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, deployment(&format!("{name}-web"), 1))).await?;
        tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
    }
    assert!(rollcall.terminate().await?.success());
    tenant.delete("Deployment/emptied-web").await?;
    tenant.until("Deployment/emptied-web", acceptance::expectation::gone()).await?;
    rollcall.again().await?;
    tenant.until("Database/emptied", says("Ready", "False")).await?;
    tenant.until("Database/kept", says("Ready", "True")).await?;
    Ok(())
}
