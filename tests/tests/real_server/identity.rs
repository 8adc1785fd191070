//! A name is not an identity: what was meant for the old object must not touch the new one.

use acceptance::caller::ApiCaller;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, gone, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{condition, deployment, owned_by, playing, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use http::Method;
use serde_json::json;

/// A tenant with `Database` over Deployments, and Rollcall behind a gate that holds its writes up.
async fn behind_a_gate(word: &str) -> Result<(TestTenant, ApiGate, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let rollcall = tenant.rollcall_at(&gate.url, &[]).await?;
    rollcall.until_ready().await?;
    Ok((tenant, gate, rollcall))
}

#[tokio::test]
async fn a_write_in_flight_does_not_land_on_a_recreated_parent() -> Result<()> {
    let (tenant, gate, _rollcall) = behind_a_gate("recreate").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;

    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    gate.set(GateRule::Hold(Method::PATCH, "/databases/db".to_owned()));
    tenant.play("web", None).await?;
    gate.caught().await?;
    tenant.delete("Database/db").await?;
    tenant.until("Database/db", gone()).await?;
    tenant.until("Deployment/web", gone()).await?;
    let new = tenant.create(tenant.custom("Database", "db")).await?;
    assert_ne!(uid(&db), uid(&new));
    gate.set(GateRule::Pass);

    tenant.until("Database/db", because("Ready", "ChildrenMissing").and(current("Ready"))).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    let of_new: Vec<_> =
        recording.said(&parent, "Ready").into_iter().filter(|said| said.uid == uid(&new)).collect();
    assert_eq!(of_new.first().context("nothing said")?.entry["reason"], "ChildrenPending", "{of_new:#?}");
    assert!(of_new.iter().all(|said| said.entry["status"] != "True"), "{of_new:#?}");
    recording.first_word_is_unknown(&parent, "Ready")?;
    Ok(())
}

#[tokio::test]
async fn a_write_in_flight_does_not_land_on_a_new_generation() -> Result<()> {
    let (tenant, gate, _rollcall) = behind_a_gate("overtaken").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    gate.set(GateRule::Hold(Method::PATCH, "/databases/db".to_owned()));
    tenant.play("web", None).await?;
    gate.caught().await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    gate.set(GateRule::Pass);

    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 2 })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    let recording = recorder.stop().await?;
    recording.no_false_ready(&tenant.address("Database/db")?, "Ready", &[("Deployment", 1)])?;
    recording.first_word_is_unknown(&tenant.address("Database/db")?, "Ready")?;
    Ok(())
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_written_twice() -> Result<()> {
    let (tenant, gate, _rollcall) = behind_a_gate("lost").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    gate.set(GateRule::LoseAnswer(Method::PATCH, "/databases/db".to_owned()));
    tenant.play("web", None).await?;
    gate.caught().await?;
    gate.set(GateRule::Pass);
    tenant.until("Database/db", says("Ready", "True")).await?;
    // A second life in which the same word would be written once more, if it were.
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let recording = recorder.stop().await?;
    let states = recording.entries().iter().filter_map(|entry| entry.state.as_ref());
    let said: Vec<_> = states.map(|state| condition(state, "Ready").cloned()).collect();
    let twice = said.windows(2).filter(|pair| pair[0].is_some() && pair[0] == pair[1]).count();
    assert_eq!(twice, 0, "{}", recording.transcript(&tenant.address("Database/db")?, "Ready"));
    Ok(())
}
