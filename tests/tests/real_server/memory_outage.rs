//! Jobs that were run, and were gone again, while nobody looked: the Events of the real Job controller tell of it, but not whose
//! they were. And records that nobody needs any more.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, gone, has, mentions, says, there};
use acceptance::objects::{owned_by, playing, uid};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::memory::{ENDS, events, fleeting, forget, record, records, remembering};

/// A Database whose Job ran and is gone, and was written down.
async fn ran(tenant: &TestTenant, name: &str, job: Value) -> Result<Value> {
    let db = tenant.create(tenant.custom("Database", name)).await?;
    let end =
        if job["spec"]["template"]["metadata"]["labels"]["play"] == "fail" { "Failed" } else { "Complete" };
    let job = tenant.create(owned_by(&db, job)).await?;
    let job_name = job["metadata"]["name"].as_str().context("a Job has a name")?;
    tenant.until(&format!("Job/{job_name}"), gone()).await?;
    tenant.until_at(&record(tenant, &db)?, &records(job_name, end)).await?;
    Ok(db)
}

/// Runs it again; the Job, which is gone by then, and of which the end was told.
async fn runs_again(tenant: &TestTenant, job: Value) -> Result<Value> {
    let job = tenant.create(job).await?;
    let name = job["metadata"]["name"].as_str().context("a Job has a name")?;
    tenant.until(&format!("Job/{name}"), gone()).await?;
    events(tenant, name, &ENDS).await?;
    Ok(job)
}

/// The outcome that counts, of the run that came last, is of this Job: those of earlier runs stand in the record too.
fn is_of(job: &Value, outcome: &str) -> StateExpectation {
    let (of, outcome) = (uid(job).to_owned(), outcome.to_owned());
    StateExpectation::new(&format!("the outcome of {of}: {outcome}"), move |record| {
        let outcomes = record["spec"]["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
        outcomes
            .iter()
            .max_by_key(|outcome| outcome["created"].as_str())
            .is_some_and(|last| last["uid"] == *of && last["outcome"] == *outcome)
    })
}

/// Each with a Job that ran and is remembered: this parent, its Job, whether that failed; and how it is run again meanwhile:
/// whether that fails, and whether it is somebody else's.
const AGAIN: [(&str, &str, bool, bool, bool); 5] = [
    ("ill", "job-ill", false, true, false),
    ("well", "job-well", true, false, false),
    ("alone", "job-alone", true, false, true),
    ("happy", "job-happy", false, true, true),
    ("generated", "", false, true, false),
];

fn a_run(name: &str, fails: bool) -> Value {
    let mut job = fleeting(name);
    if name.is_empty() {
        job["metadata"] = json!({ "generateName": "backup-" });
    }
    if fails { playing("fail", job) } else { job }
}

fn done(fails: bool) -> StateExpectation {
    if fails { because("Ready", "ChildrenFailed") } else { says("Ready", "True") }
}

#[tokio::test]
async fn what_ran_in_an_outage_under_the_name_of_a_job_is_taken_for_nobodys_outcome() -> Result<()> {
    let tenant = remembering("again", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for (parent, job, failed, ..) in AGAIN {
        parents.push(ran(&tenant, parent, a_run(job, failed)).await?);
        tenant.until(&format!("Database/{parent}"), done(failed)).await?;
    }
    rollcall.kill()?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let mut jobs = Vec::new();
    for ((_, job, _, fails, strangers), db) in AGAIN.iter().zip(&parents) {
        let mut run = a_run(job, *fails);
        // With the labels and the name of the other, and nobody that owns it.
        run = if *strangers { run } else { owned_by(db, run) };
        jobs.push(runs_again(&tenant, run).await?);
    }
    // And its operator had something new to do meanwhile: the old end must not stand for that.
    tenant.change("Database/ill", json!({ "spec": { "size": 2 } })).await?;
    rollcall.again().await?;
    let unseen = || because("Ready", "ChildrenUnknown").and(mentions("Ready", "do not name its owner"));
    for (((name, ..), db), job) in AGAIN.iter().zip(&parents).zip(&jobs) {
        tenant.until_at(&record(&tenant, db)?, &is_of(job, "Unseen")).await?;
        tenant.until(&format!("Database/{name}"), unseen().and(current("Ready"))).await?;
    }
    // Until it is run again, or somebody says so who knows.
    tenant.create(owned_by(&parents[0], a_run("job-ill", false))).await?;
    tenant.until("Database/ill", done(false)).await?;
    let place = record(&tenant, &parents[1])?;
    let mut known = tenant.until_at(&place, &there()).await?["spec"]["outcomes"].clone();
    let heard = known.as_array_mut().into_iter().flatten().find(|outcome| outcome["heard"] == true);
    heard.context("no outcome that only Events tell of")?["outcome"] = json!("Complete");
    tenant.admin.merge(&place, "", &json!({ "spec": { "outcomes": known } })).await?;
    tenant.until("Database/well", done(false)).await?;

    let recording = recorder.stop().await?;
    let said = recording.said(&tenant.address("Database/ill")?, "Ready");
    let first = said.iter().find(|s| s.entry["observedGeneration"] == 2).context("generation 2 was told")?;
    ensure!(first.entry["status"] != "True", "ready by a run that is not the last");
    for (name, _, failed, ..) in &AGAIN[2..] {
        let (field, word) = if *failed { ("status", "True") } else { ("reason", "ChildrenFailed") };
        let parent = tenant.address(&format!("Database/{name}"))?;
        let said = recording.said(&parent, "Ready");
        ensure!(said.iter().all(|s| s.entry[field] != word), "{}", recording.transcript(&parent, "Ready"));
    }
    Ok(())
}

#[tokio::test]
async fn an_outage_that_outlives_all_events_and_in_which_nothing_happened_changes_nothing() -> Result<()> {
    let tenant = remembering("weekend", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let well = ran(&tenant, "well", fleeting("job-well")).await?;
    let ill = ran(&tenant, "ill", playing("fail", fleeting("job-ill"))).await?;
    tenant.until("Database/well", says("Ready", "True")).await?;
    tenant.until("Database/ill", because("Ready", "ChildrenFailed")).await?;
    let before = [tenant.get("Database/well").await?, tenant.get("Database/ill").await?];
    let records = [record(&tenant, &well)?, record(&tenant, &ill)?];
    let recorded = [tenant.admin.get(&records[0]).await?, tenant.admin.get(&records[1]).await?];
    rollcall.kill()?;
    for job in ["job-well", "job-ill"] {
        forget(&tenant, &events(&tenant, job, &ENDS).await?).await?;
    }
    rollcall.again().await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Failed\""], |count| count >= 1.0).await?;
    assert_eq!([tenant.get("Database/well").await?, tenant.get("Database/ill").await?], before);
    assert_eq!([tenant.admin.get(&records[0]).await?, tenant.admin.get(&records[1]).await?], recorded);
    Ok(())
}

#[tokio::test]
async fn a_job_that_its_policy_names_and_that_was_never_seen_is_told_of_by_its_events() -> Result<()> {
    let tenant = TestTenant::start("named").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut jobs = tenant.child("Job");
    jobs["afterDeletion"] = json!("remember");
    jobs["expect"] = json!({ "names": ["{parent.metadata.name}-migrate"] });
    tenant.policy("db", "Database", json!({ "children": [jobs], "settle": "100ms" })).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for name in ["ill", "well", "none"] {
        parents.push(tenant.create(tenant.custom("Database", name)).await?);
        tenant.until(&format!("Database/{name}"), because("Ready", "ChildrenMissing")).await?;
    }
    rollcall.kill()?;
    // Not in the second in which their parents were created.
    sleep(Duration::from_millis(1_100)).await;
    let ill = runs_again(&tenant, owned_by(&parents[0], playing("fail", fleeting("ill-migrate")))).await?;
    let well = runs_again(&tenant, owned_by(&parents[1], fleeting("well-migrate"))).await?;
    rollcall.again().await?;
    for (name, db, job) in [("ill", &parents[0], &ill), ("well", &parents[1], &well)] {
        let unseen = because("Ready", "ChildrenUnknown").and(mentions("Ready", "do not name its owner"));
        tenant.until(&format!("Database/{name}"), unseen).await?;
        tenant.until_at(&record(&tenant, db)?, &is_of(job, "Unseen")).await?;
    }
    tenant.until("Database/none", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

#[tokio::test]
async fn a_record_goes_once_no_policy_chooses_its_parent_any_more() -> Result<()> {
    let tenant = remembering("left", "remember").await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = ran(&tenant, "db", fleeting("migrate")).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.admin.delete(&policy_address(&tenant, "db")?).await?;
    tenant.until("Database/db", has("Ready", false)).await?;
    let place = record(&tenant, &db)?;
    ensure!(tenant.admin.get(&place).await?.is_some(), "the policy may be about to come back");
    let swept = async {
        while tenant.admin.get(&place).await?.is_some() {
            sleep(Duration::from_millis(500)).await;
        }
        anyhow::Ok(())
    };
    timeout(Duration::from_mins(3), swept).await.with_context(|| rollcall.output())?
}

#[tokio::test]
async fn what_there_is_no_room_to_remember_is_counted_and_named() -> Result<()> {
    let tenant = remembering("many", "remember").await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    for n in 0..18 {
        tenant.create(owned_by(&db, fleeting(&format!("job-{n}")))).await?;
    }
    rollcall.until_metric("rollcall_outcomes_dropped_total", &[], |count| count >= 2.0).await?;
    rollcall.until_printed("too many Job outcomes for one parent").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let sixteen = StateExpectation::new("sixteen that ended", |record| {
        let outcomes = record["spec"]["outcomes"].as_array();
        outcomes.is_some_and(|o| o.len() == 16 && o.iter().all(|o| o["outcome"] == "Complete"))
    });
    tenant.until_at(&record(&tenant, &db)?, &sixteen).await?;
    Ok(())
}
