//! Nothing can be read for more than two minutes, and then everything again.

use acceptance::caller::{ApiCaller, version_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::owned_by;
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

/// Parents whose child fails while nobody sees it, and as many to which nothing happens.
const PARENTS: u32 = 10;
/// Most parents that a healed outage may tell of it for nothing: the writes that showed that it was over.
const TOLD_FOR_NOTHING: usize = 2;

async fn set_ready(tenant: &TestTenant, name: &str, status: &str) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
    tenant.change_status(&format!("Shard/{name}"), json!({ "conditions": [entry] })).await?;
    Ok(())
}

#[tokio::test]
async fn what_failed_unseen_is_never_told_ready_afterwards_and_what_did_not_is_left_as_it_stands()
-> Result<()> {
    let tenant = TestTenant::start("blind").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let running = tenant.rollcall_at(&gate.url, &[]).await?;
    running.until_ready().await?;
    let names = |word: &'static str| (0..PARENTS).map(move |number| format!("{word}-{number}"));
    for name in names("failing").chain(names("kept")) {
        let db = tenant.create(tenant.custom("Database", &name)).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &name))).await?;
        set_ready(&tenant, &name, "True").await?;
    }
    let mut before = Vec::new();
    for name in names("failing").chain(names("kept")) {
        before.push(version_of(&tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?));
    }
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;

    gate.set(GateRule::Down);
    for name in names("failing") {
        set_ready(&tenant, &name, "False").await?;
    }
    running.until_metric("rollcall_watch_stale", &[], |kinds| kinds >= 2.0).await?;
    // The blindness is to be told, and cannot be: by the service's own count, for the gate sees writes of policies, too. It takes
    // three in a row for an outage.
    running.until_metric("rollcall_writes_total", &[r#"outcome="error""#], |writes| writes >= 4.0).await?;
    gate.set(GateRule::Pass);
    for name in names("failing") {
        tenant.until(&format!("Database/{name}"), says("Ready", "False")).await?;
    }
    running.until_metric("rollcall_watch_stale", &[], |kinds| kinds == 0.0).await?;
    let mut told = 0;
    for (name, version) in names("kept").zip(&before[PARENTS as usize..]) {
        let now = tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
        told += usize::from(version_of(&now) != *version);
    }
    assert!(told <= TOLD_FOR_NOTHING, "{told} of {PARENTS} parents were told of an outage that was over");

    let recording = recorder.stop().await?;
    for name in names("failing") {
        let parent = tenant.address(&format!("Database/{name}"))?;
        recording.no_false_ready(&parent, "Ready", &[("Shard", 1)])?;
        let said = recording.statuses(&parent, "Ready");
        assert!(
            !said[1..].contains(&"True".to_owned()),
            "{name}: {}",
            recording.transcript(&parent, "Ready")
        );
    }
    Ok(())
}
