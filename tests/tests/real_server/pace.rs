//! What does not wait for quiet, and what does.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::{owned_by, uid};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A word of a Part about itself.
async fn say(tenant: &TestTenant, name: &str, conditions: Value) -> Result<()> {
    tenant.change_status(&format!("Part/{name}"), json!({ "conditions": conditions })).await?;
    Ok(())
}

fn entry(kind: &str, status: &str, reason: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": reason })
}

/// With an hour of quiet to wait for, which no test has, only what does not wait is ever told.
#[tokio::test]
async fn what_has_failed_is_told_at_once_while_what_progresses_waits_for_quiet() -> Result<()> {
    let tenant = TestTenant::start("pace").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    tenant.policy("site", "Site", json!({ "children": [tenant.child("Part")], "settle": "100ms" })).await?;
    let mut running = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Site", "Part"]).await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    for name in ["chatty", "ill"] {
        tenant.create(owned_by(&site, tenant.custom("Part", name))).await?;
    }
    let neither_speaks = because("Ready", "ChildrenUnknown").and(mentions("Ready", "Part ill"));
    tenant.until("Site/one", neither_speaks).await?;
    let (policy, hour) = (policy_address(&tenant, "site")?, json!({ "quiet": "1h", "cap": "1h" }));
    tenant.admin.merge(&policy, "", &json!({ "spec": { "debounce": hour } })).await?;
    // Within one cap there are two writes: what was written before a start does not count.
    ensure!(running.terminate().await?.success(), "{}", running.output());
    running.again().await?;
    for round in 0..20 {
        say(&tenant, "chatty", json!([entry("Ready", "False", &format!("Step{round}"))])).await?;
    }
    // Rollcall has seen it, and keeps it to itself.
    running.until_metric("rollcall_children", &["verdict=\"Progressing\""], |n| n >= 1.0).await?;
    say(&tenant, "ill", json!([entry("Ready", "False", "Broken"), entry("Stalled", "True", "Broken")]))
        .await?;
    let failed = because("Ready", "ChildrenFailed").and(mentions("Ready", "Part ill"));
    tenant.until("Site/one", failed.and(says("Stalled", "True"))).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Site/one")?;
    let said = recording.said(&parent, "Ready");
    let mut reasons: Vec<&str> = said.iter().filter_map(|said| said.entry["reason"].as_str()).collect();
    reasons.dedup();
    let told = recording.transcript(&parent, "Ready");
    assert!(!reasons.contains(&"ChildrenProgressing"), "that waits for quiet:\n{told}");
    assert_eq!(reasons.last(), Some(&"ChildrenFailed"), "{told}");
    let spoke = recording.entries().iter().find(|entry| {
        let state = entry.state.as_ref();
        state.is_some_and(|state| state["metadata"]["name"] == "chatty" && !state["status"].is_null())
    });
    let spoke = spoke.context("chatty never spoke")?;
    let heard = |said: &&acceptance::recorder::ConditionWrite| said.version > spoke.version;
    let first = said.iter().find(heard).context("nothing is said after that")?;
    assert_eq!(first.entry["reason"], "ChildrenFailed", "{told}");
    assert_eq!(first.uid, uid(&site));
    eprintln!("{told}");
    Ok(())
}
