//! Every shape of status that operators ship.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, job, owned_by, uid};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// A tenant with one shape of `Database`, a policy and Rollcall; and the way from nothing to ready.
async fn becomes_ready(word: &str, crd: CrdBuilder) -> Result<(StateRecording, ObjectAddress)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&crd).await?;
    let children = json!([tenant.child("Deployment"), tenant.child("Job")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "Job"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, job("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok((recorder.stop().await?, tenant.address("Database/db")?))
}

/// The same where each generation is one of the spec, and has its own first word.
async fn becomes_ready_by_generation(word: &str, crd: CrdBuilder) -> Result<()> {
    let (recording, parent) = becomes_ready(word, crd).await?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1), ("Job", 1)])
}

#[tokio::test]
async fn conditions_are_written_into_a_list_map() -> Result<()> {
    becomes_ready_by_generation("listmap", CrdBuilder::new("Database")).await
}

#[tokio::test]
async fn conditions_are_written_into_an_atomic_list() -> Result<()> {
    becomes_ready_by_generation("atomic", CrdBuilder::new("Database").atomic()).await
}

#[tokio::test]
async fn conditions_are_written_where_the_schema_says_nothing() -> Result<()> {
    becomes_ready_by_generation("shapeless", CrdBuilder::new("Database").shapeless()).await
}

#[tokio::test]
async fn conditions_are_written_without_a_status_subresource() -> Result<()> {
    // There every write moves the generation, ours too, so only the object as a whole has a first word.
    let crd = CrdBuilder::new("Database").without_status_subresource();
    let (recording, parent) = becomes_ready("flat", crd).await?;
    let statuses = recording.statuses(&parent, "Ready");
    assert_eq!(statuses.first().map(String::as_str), Some("Unknown"), "{statuses:?}");
    assert_eq!(statuses.last().map(String::as_str), Some("True"), "{statuses:?}");
    for said in recording.said(&parent, "Ready") {
        assert_eq!(
            said.entry["observedGeneration"],
            said.generation,
            "{}",
            recording.transcript(&parent, "Ready")
        );
    }
    Ok(())
}

#[tokio::test]
async fn another_writer_of_a_status_without_subresource_is_no_reason_to_write() -> Result<()> {
    let tenant = TestTenant::start("noloop").await?;
    tenant.crd(&CrdBuilder::new("Database").without_status_subresource()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    // Each of these moves the generation, none of them the spec.
    for round in 0..50 {
        tenant.change("Database/db", json!({ "status": { "phase": format!("round {round}") } })).await?;
    }
    // This one does; once it is answered, so is everything before it.
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending")).await?;
    let recording = recorder.stop().await?;
    let trues = recording.said(&tenant.address("Database/db")?, "Ready");
    let trues = trues.iter().filter(|said| said.entry["status"] == "True").count();
    assert_eq!(trues, 1, "{}", recording.transcript(&tenant.address("Database/db")?, "Ready"));
    Ok(())
}

#[tokio::test]
async fn a_schema_that_prunes_conditions_is_reported_and_not_tried_again() -> Result<()> {
    let tenant = TestTenant::start("pruned").await?;
    tenant.crd(&CrdBuilder::new("Database").pruning()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let pruned = ["outcome=\"pruned\""];
    rollcall.until_metric("rollcall_writes_total", &pruned, |count| count >= 1.0).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    let tried = rollcall.metric("rollcall_writes_total", &pruned).await?;
    assert!(tried <= 4.0, "one try for each thing to say, not {tried}");
    let told = tenant.get("Database/db").await?;
    assert!(told["status"].is_null() || told["status"] == json!({}), "{}", told["status"]);
    let policy = policy_address(&tenant, "db")?;
    let reported = StateExpectation::new("reported in the policy", |policy: &Value| {
        let text = policy["status"]["conditions"].to_string();
        text.contains("prune") || text.contains("Pruned")
    });
    tenant.until_at(&policy, &reported).await?;
    Ok(())
}

#[tokio::test]
async fn odd_statuses_are_left_alone_and_others_go_on() -> Result<()> {
    let tenant = TestTenant::start("odd").await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let odd = [json!(true), json!("up"), json!({ "conditions": "none" }), json!({ "conditions": [1, null] })];
    for (at, status) in odd.iter().enumerate() {
        let mut parent = tenant.custom("Database", &format!("odd-{at}"));
        parent["status"] = status.clone();
        tenant.create(parent).await?;
        tenant.change_status(&format!("Database/odd-{at}"), status.clone()).await?;
    }
    let db = tenant.create(tenant.custom("Database", "plain")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/plain", says("Ready", "True")).await?;
    assert!(rollcall.runs()?, "{}", rollcall.output());
    for at in 0..odd.len() {
        let now = tenant.get(&format!("Database/odd-{at}")).await?;
        assert!(!uid(&now).is_empty());
        let ours = condition(&now, "Ready").is_none_or(|entry| entry["status"] != "True");
        assert!(ours, "{}", now["status"]);
    }
    Ok(())
}

/// Conditions of many operators are older than their `observedGeneration`: what the server drops there is
/// remembered, so that nothing is written twice. (It is forgotten at a restart; `crd-defaults` gives the CRD the field.)
#[tokio::test]
async fn conditions_without_a_generation_of_their_own_are_written_once_for_each_thing_to_say() -> Result<()> {
    let tenant = TestTenant::start("older").await?;
    tenant.crd(&CrdBuilder::new("Database").without_generation_of_conditions()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", says("Ready", "Unknown")).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    assert_eq!(recording.statuses(&parent, "Ready").first().map(String::as_str), Some("Unknown"));
    let (said, writes) =
        (recording.said(&parent, "Ready"), rollcall.metric("rollcall_writes_total", &[]).await?);
    assert!(
        writes <= f64::from(u32::try_from(said.len())?) + 1.0,
        "{writes} writes\n{}",
        recording.transcript(&parent, "Ready")
    );
    Ok(())
}
