//! Operators that call a generation handled before their children carry it, and the policy that asks for a proof.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, mentions, says};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn an_operator_that_calls_a_generation_handled_at_once_is_not_believed_before_its_children_carry_it()
-> Result<()> {
    let tenant = TestTenant::start("proof").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let proof = "children.filter(c, c.kind == 'Deployment').all(c, c.spec.replicas == parent.spec.size)";
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "200ms", "proof": proof });
    tenant.policy("db", "Database", spec).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let mut db = tenant.custom("Database", "db");
    db["spec"] = json!({ "size": 1 });
    let db = tenant.create(db).await?;
    tenant.create(owned_by(&db, deployment("api", 1))).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    // The mark is there at once; the children are as they were, and ready.
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 2 })).await?;
    let waits = says("Ready", "Unknown").and(because("Ready", "ChildrenPending")).and(current("Ready"));
    tenant.until("Database/db", waits.and(mentions("Ready", "the policy's proof does not hold yet"))).await?;
    tenant.change("Deployment/api", json!({ "spec": { "replicas": 2 } })).await?;
    tenant.until_pods("api", 2).await?;
    // Nothing of what was seen before outlives the process; the proof is asked for anew.
    rollcall.kill()?;
    rollcall.again().await?;
    let generation = tenant.get("Database/db").await?["metadata"]["generation"].clone();
    assert_eq!(generation, 2);
    tenant.until("Database/db", says("Ready", "Unknown")).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 2 } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 2)])?;
    let order = recording.statuses(&parent, "Ready");
    let trues = order.iter().filter(|status| **status == "True").count();
    assert_eq!(trues, 2, "once for each generation: {order:?}");
    Ok(())
}
