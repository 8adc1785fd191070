//! Jobs that came and went: what is remembered of them, with the real Job and TTL controllers.

use std::sync::Arc;

use acceptance::control_plane::{ControlPlane, shared};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, gone, mentions, says, there};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, job, owned_by, playing, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A tenant with a policy that remembers.
pub(crate) async fn remembering(word: &str, after: &str) -> Result<TestTenant> {
    remembering_on(shared().await?, word, after).await
}

/// Like [`remembering`], on this control plane.
pub(crate) async fn remembering_on(plane: Arc<ControlPlane>, word: &str, after: &str) -> Result<TestTenant> {
    let tenant = TestTenant::start_on(plane, word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut jobs = tenant.child("Job");
    jobs["afterDeletion"] = json!(after);
    tenant.policy("db", "Database", json!({ "children": [jobs], "settle": "100ms" })).await?;
    Ok(tenant)
}

/// A Job that the TTL controller takes away as soon as it has ended.
pub(crate) fn fleeting(name: &str) -> Value {
    let mut job = job(name);
    job["spec"]["ttlSecondsAfterFinished"] = json!(0);
    job
}

/// The record of a parent, in the tenant's namespace.
pub(crate) fn record(tenant: &TestTenant, parent: &Value) -> Result<ObjectAddress> {
    tenant.address(&format!("ReadinessRecord/{}", uid(parent)))
}

/// One of its outcomes says so.
pub(crate) fn records(job: &str, outcome: &str) -> StateExpectation {
    let (job, outcome) = (job.to_owned(), outcome.to_owned());
    StateExpectation::new(&format!("recorded: {job} {outcome}"), move |record| {
        let outcomes = record["spec"]["outcomes"].as_array();
        outcomes.into_iter().flatten().any(|o| o["name"] == *job && o["outcome"] == *outcome)
    })
}

/// Under which the Job controller says that a Job has ended.
pub(crate) const ENDS: [&str; 2] = ["Completed", "BackoffLimitExceeded"];

/// All Events about a Job, once one has one of these reasons.
pub(crate) async fn events(tenant: &TestTenant, job: &str, reasons: &[&str]) -> Result<Vec<Value>> {
    let query = format!("fieldSelector=involvedObject.name={job}");
    let told = |events: Vec<Value>| {
        let has = |event: &Value| reasons.iter().any(|reason| event["reason"] == **reason);
        events.iter().any(has).then_some(events)
    };
    let found = tenant.until_found(&tenant.kind("Event"), &tenant.name, &query, told).await;
    found.with_context(|| format!("no Event of {job}: {reasons:?}"))
}

/// Nobody can know any more what these told.
pub(crate) async fn forget(tenant: &TestTenant, events: impl IntoIterator<Item = &Value>) -> Result<()> {
    for event in events {
        tenant.admin.delete(&ObjectAddress::of(event)?).await?;
    }
    Ok(())
}

/// Ends it in the middle, does something while it is away, and starts it again.
async fn while_away(rollcall: &mut RollcallProcess, done: impl Future<Output = Result<()>>) -> Result<()> {
    rollcall.kill()?;
    done.await?;
    rollcall.again().await
}

#[tokio::test]
async fn a_finished_job_stays_finished() -> Result<()> {
    let tenant = remembering("memory", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, fleeting("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.until("Job/migrate", gone()).await?;
    tenant.until_at(&record(&tenant, &db)?, &records("migrate", "Complete")).await?;
    let before = tenant.get("Database/db").await?;
    for _ in 0..3 {
        rollcall.kill()?;
        rollcall.again().await?;
        rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    }
    assert_eq!(tenant.get("Database/db").await?, before, "a restart at rest writes nothing");
    let parent = tenant.address("Database/db")?;
    let recording = recorder.stop().await?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    let ends = recording.statuses(&parent, "Ready");
    assert_eq!(ends.iter().filter(|s| *s == "True").count(), 1, "{}", recording.transcript(&parent, "Ready"));
    assert_eq!(ends.last().map(String::as_str), Some("True"));
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_created_again_starts_afresh() -> Result<()> {
    let tenant = remembering("afresh", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, fleeting("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.until("Job/migrate", gone()).await?;
    let again = tenant.create(owned_by(&db, playing("hold", fleeting("migrate")))).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "migrate progressing"))).await?;
    let running = StateExpectation::new("the new one alone", {
        let of = uid(&again).to_owned();
        move |record| {
            let outcomes = record["spec"]["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
            outcomes.len() == 1 && outcomes[0]["uid"] == *of && outcomes[0]["outcome"] == "Running"
        }
    });
    tenant.until_at(&record(&tenant, &db)?, &running).await?;
    rollcall.kill()?;
    rollcall.again().await?;
    tenant.play("migrate", Some("fail")).await?;
    tenant.until("Database/db", because("Ready", "ChildrenFailed")).await?;
    tenant.until("Job/migrate", gone()).await?;
    let failed = says("Stalled", "True").and(mentions("Ready", "BackoffLimitExceeded"));
    tenant.until("Database/db", failed).await?;
    Ok(())
}

#[tokio::test]
async fn a_hook_that_is_deleted_right_after_its_end_is_remembered() -> Result<()> {
    let tenant = remembering("hook", "remember").await?;
    let rollcall = tenant.rollcall(&[]).await?;
    for (name, part, condition, reason) in
        [("well", None, "Complete", "AllChildrenReady"), ("ill", Some("fail"), "Failed", "ChildrenFailed")]
    {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        let hook = job(&format!("hook-{name}"));
        tenant.create(owned_by(&db, part.map_or(hook.clone(), |part| playing(part, hook)))).await?;
        tenant.until(&format!("Job/hook-{name}"), says(condition, "True")).await?;
        // As Argo CD and Helm do it: in the background, as soon as it has ended.
        tenant.delete(&format!("Job/hook-{name}")).await?;
        tenant.until(&format!("Job/hook-{name}"), gone()).await?;
        tenant.until(&format!("Database/{name}"), because("Ready", reason)).await?;
    }
    drop(rollcall);
    Ok(())
}

#[tokio::test]
async fn an_old_complete_does_not_satisfy_a_new_generation() -> Result<()> {
    let tenant = remembering("generation", "rememberGeneration").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, fleeting("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.until("Job/migrate", gone()).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let missing = || because("Ready", "ChildrenMissing").and(current("Ready"));
    tenant.until("Database/db", missing()).await?;
    rollcall.kill()?;
    rollcall.again().await?;
    tenant.until("Database/db", missing()).await?;
    tenant.create(owned_by(&db, fleeting("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    let said = recorder.stop().await?.said(&tenant.address("Database/db")?, "Ready");
    let trues: Vec<i64> =
        said.iter().filter(|s| s.entry["status"] == "True").map(|said| said.generation).collect();
    assert_eq!(trues.first(), Some(&1), "{trues:?}");
    assert!(
        said.iter().all(|s| s.entry["status"] != "True" || s.entry["observedGeneration"] == s.generation)
    );
    Ok(())
}

#[tokio::test]
async fn what_ended_while_it_was_away_is_told_by_its_events_or_not_known() -> Result<()> {
    let tenant = remembering("evidence", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for name in ["well", "ill", "dark"] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        let held = owned_by(&db, playing("hold", fleeting(&format!("job-{name}"))));
        tenant.create(held).await?;
        tenant.until_at(&record(&tenant, &db)?, &records(&format!("job-{name}"), "Running")).await?;
        parents.push(db);
    }
    while_away(&mut rollcall, async {
        for (name, part) in [("well", None), ("ill", Some("fail")), ("dark", None)] {
            tenant.play(&format!("job-{name}"), part).await?;
            tenant.until(&format!("Job/job-{name}"), gone()).await?;
        }
        events(&tenant, "job-well", &ENDS).await?;
        events(&tenant, "job-ill", &ENDS).await?;
        // Nothing is left of the third.
        forget(&tenant, &events(&tenant, "job-dark", &ENDS).await?).await
    })
    .await?;
    tenant.until("Database/well", says("Ready", "True")).await?;
    tenant.until("Database/ill", because("Ready", "ChildrenFailed")).await?;
    let unseen = says("Ready", "Unknown")
        .and(mentions("Ready", "job-dark unknown (gone, and its outcome was not observed)"));
    tenant.until("Database/dark", unseen).await?;
    tenant.until_at(&record(&tenant, &parents[2])?, &records("job-dark", "Unseen")).await?;
    // Who knows may say so.
    let place = record(&tenant, &parents[2])?;
    let mut known = tenant.until_at(&place, &there()).await?["spec"]["outcomes"].clone();
    known[0]["outcome"] = json!("Complete");
    tenant.admin.merge(&place, "", &json!({ "spec": { "outcomes": known } })).await?;
    tenant.until("Database/dark", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_record_that_people_touch_is_set_right_and_goes_with_its_parent() -> Result<()> {
    let tenant = remembering("touched", "remember").await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, fleeting("migrate"))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let place = record(&tenant, &db)?;
    let right = tenant.until_at(&place, &records("migrate", "Complete")).await?;
    assert_eq!(right["metadata"]["managedFields"][0]["manager"], "rollcall");
    assert!(right["metadata"]["ownerReferences"].is_null());

    tenant.admin.delete(&place).await?;
    let other = StateExpectation::new("another one", {
        let of = uid(&right).to_owned();
        move |record| uid(record) != of
    });
    tenant.until_at(&place, &other.and(records("migrate", "Complete"))).await?;
    let mut wrong = right["spec"]["outcomes"].clone();
    wrong[0]["outcome"] = json!("Failed");
    tenant.admin.merge(&place, "", &json!({ "spec": { "outcomes": wrong } })).await?;
    tenant.until_at(&place, &records("migrate", "Complete")).await?;
    wrong[0]["outcome"] = json!("Splendid");
    let refused = tenant.admin.merge(&place, "", &json!({ "spec": { "outcomes": wrong } })).await;
    ensure!(refused.is_err(), "the schema knows all outcomes");
    assert_eq!(condition(&tenant.get("Database/db").await?, "Ready").context("no Ready")?["status"], "True");

    tenant.delete("Database/db").await?;
    tenant.until_at(&place, &gone()).await?;
    Ok(())
}

#[tokio::test]
async fn a_complete_job_that_somebody_else_holds_in_deletion_is_stuck() -> Result<()> {
    for after in ["remember", "forget"] {
        let tenant = TestTenant::start("hung").await?;
        tenant.crd(&CrdBuilder::new("Database")).await?;
        let mut jobs = tenant.child("Job");
        jobs["afterDeletion"] = json!(after);
        let spec = json!({ "children": [jobs], "settle": "100ms", "limits": { "terminating": "3s" } });
        tenant.policy("db", "Database", spec).await?;
        let _rollcall = tenant.rollcall(&[]).await?;
        let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
        let db = tenant.create(tenant.custom("Database", "db")).await?;
        let mut hung = fleeting("migrate");
        hung["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
        tenant.create(owned_by(&db, hung)).await?;
        let stuck = says("Stalled", "True").and(because("Ready", "ChildrenStuck")).and(mentions(
            "Ready",
            "migrate stuck (finalizer argocd.argoproj.io/hook-finalizer (likely Argo CD)",
        ));
        tenant.until("Database/db", stuck).await?;
        tenant.change("Job/migrate", json!({ "metadata": { "finalizers": null } })).await?;
        tenant.until("Job/migrate", gone()).await?;
        let end = if after == "remember" { "AllChildrenReady" } else { "ChildrenMissing" };
        tenant.until("Database/db", because("Ready", end)).await?;
        let told = recorder.stop().await?.said(&tenant.address("Database/db")?, "Ready");
        let reasons: Vec<&str> = told.iter().filter_map(|said| said.entry["reason"].as_str()).collect();
        // How it ended counts while it is on its way out; without memory it is on its way out, and nothing else.
        assert_eq!(reasons.contains(&"ChildrenTerminating"), after == "forget", "{reasons:?}");
    }
    Ok(())
}
