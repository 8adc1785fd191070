//! Parents whose own status says that they have failed, although everything that they own is ready.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, has, mentions, says};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// A tenant with a parent whose only child is ready, under a policy with these fields beside its children.
async fn at_rest(word: &str, beside: Value) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut spec = json!({ "children": [tenant.child("Deployment")], "settle": "200ms" });
    spec.as_object_mut()
        .into_iter()
        .for_each(|spec| spec.extend(beside.as_object().cloned().unwrap_or_default()));
    tenant.policy("db", "Database", spec).await?;
    let mut db = tenant.custom("Database", "db");
    db["spec"] = json!({ "size": 1 });
    let db = tenant.create(db).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    Ok(tenant)
}

#[tokio::test]
async fn what_the_status_says_of_a_failure_counts_whatever_the_children_are() -> Result<()> {
    let tenant = at_rest("own-status", json!({})).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    tenant.change_status("Database/db", json!({ "phase": "Failed" })).await?;
    let failed = says("Ready", "False")
        .and(because("Ready", "OperatorFailed"))
        .and(mentions("Ready", "its status says phase Failed"))
        .and(current("Ready"));
    let told = tenant.until("Database/db", failed.and(says("Stalled", "True"))).await?;
    // Whoever comes next finds it as it is.
    rollcall.kill()?;
    rollcall.again().await?;
    rollcall.until_ready().await?;
    let after = tenant.get("Database/db").await?;
    assert_eq!(after["metadata"]["resourceVersion"], told["metadata"]["resourceVersion"]);

    // What it says may be of the generation before, and is none that has failed for good.
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let again = says("Ready", "False").and(because("Ready", "OperatorFailed")).and(current("Ready"));
    let told = tenant.until("Database/db", again.and(mentions("Ready", "generation 2"))).await?;
    assert!(condition(&told, "Stalled").is_none_or(|stalled| stalled["status"] != "True"), "{told}");
    tenant.change_status("Database/db", json!({ "phase": "Running" })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.first_word_is_unknown(&parent, "Ready")?;
    let order = recording.statuses(&parent, "Ready");
    assert_eq!(order, ["Unknown", "True", "False", "Unknown", "False", "True"]);
    Ok(())
}

#[tokio::test]
async fn a_policy_may_ignore_what_its_parents_say_of_themselves() -> Result<()> {
    let tenant = at_rest("own-status-no", json!({ "ownStatus": "ignore" })).await?;
    tenant.change_status("Database/db", json!({ "phase": "Failed" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.until("Database/db", has("Ready", true)).await?;
    Ok(())
}
