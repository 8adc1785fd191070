//! Jobs that were run again, and were gone again, while nobody looked: the Events of the real Job controller tell of it.

use acceptance::objects::{owned_by, playing, uid};
use acceptance::recorder::Recorder;
use acceptance::scene::Scene;
use acceptance::wish::{Wish, because, current, gone, mentions, says};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::memory::{ENDS, events, fleeting, forget, record, records, remembering};

/// A Database whose Job ran and is gone, and was written down.
async fn ran(scene: &Scene, name: &str, job: Value) -> Result<Value> {
    let db = scene.create(scene.custom("Database", name)).await?;
    let end =
        if job["spec"]["template"]["metadata"]["labels"]["play"] == "fail" { "Failed" } else { "Complete" };
    let job = scene.create(owned_by(&db, job)).await?;
    let job_name = job["metadata"]["name"].as_str().context("a Job has a name")?;
    scene.until(&format!("Job/{job_name}"), gone()).await?;
    scene.until_at(&record(scene, &db)?, &records(job_name, end)).await?;
    Ok(db)
}

/// Runs it again; the Job, which is gone by then.
async fn runs_again(scene: &Scene, db: &Value, job: Value) -> Result<Value> {
    let job = scene.create(owned_by(db, job)).await?;
    let name = job["metadata"]["name"].as_str().context("a Job has a name")?;
    scene.until(&format!("Job/{name}"), gone()).await?;
    events(scene, name, &ENDS).await?;
    Ok(job)
}

/// Its one outcome is of this Job.
fn is_of(job: &Value, outcome: &str) -> Wish {
    let (of, outcome) = (uid(job).to_owned(), outcome.to_owned());
    Wish::new(&format!("the outcome of {of}: {outcome}"), move |record| {
        let outcomes = record["spec"]["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
        outcomes.len() == 1 && outcomes[0]["uid"] == *of && outcomes[0]["outcome"] == *outcome
    })
}

#[tokio::test]
async fn a_job_that_ran_again_in_an_outage_counts_as_it_ended_last() -> Result<()> {
    let scene = remembering("again", "remember").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let ill = ran(&scene, "ill", fleeting("job-ill")).await?;
    let well = ran(&scene, "well", playing("fail", fleeting("job-well"))).await?;
    let dark = ran(&scene, "dark", fleeting("job-dark")).await?;
    let mut backup = fleeting("");
    backup["metadata"] = json!({ "generateName": "backup-" });
    let generated = ran(&scene, "generated", backup.clone()).await?;
    for (name, reason) in
        [("ill", "AllChildrenReady"), ("well", "ChildrenFailed"), ("dark", "AllChildrenReady")]
    {
        scene.until(&format!("Database/{name}"), because("Ready", reason)).await?;
    }
    scene.until("Database/generated", says("Ready", "True")).await?;
    rollcall.kill()?;
    let recorder = Recorder::start(&scene, &["Database"]).await?;
    let again_ill = runs_again(&scene, &ill, playing("fail", fleeting("job-ill"))).await?;
    let again_well = runs_again(&scene, &well, fleeting("job-well")).await?;
    let again_dark = runs_again(&scene, &dark, fleeting("job-dark")).await?;
    let again_generated = runs_again(&scene, &generated, playing("fail", backup)).await?;
    // Of this run it is known that it was, and not how it ended.
    let told = events(&scene, "job-dark", &["Completed"]).await?;
    let end =
        |event: &&Value| event["involvedObject"]["uid"] == uid(&again_dark) && event["reason"] == "Completed";
    forget(&scene, told.iter().filter(end)).await?;
    // And its operator had something new to do meanwhile: the old end must not stand for that.
    scene.change("Database/ill", json!({ "spec": { "size": 2 } })).await?;
    rollcall.again().await?;
    for (name, db, job, end) in [
        ("ill", &ill, &again_ill, "Failed"),
        ("well", &well, &again_well, "Complete"),
        ("generated", &generated, &again_generated, "Failed"),
        ("dark", &dark, &again_dark, "Unseen"),
    ] {
        scene.until_at(&record(&scene, db)?, &is_of(job, end)).await?;
        let says = match end {
            "Failed" => because("Ready", "ChildrenFailed"),
            "Complete" => says("Ready", "True"),
            _ => because("Ready", "ChildrenUnknown").and(mentions("Ready", "nobody saw how it ended")),
        };
        scene.until(&format!("Database/{name}"), says.and(current("Ready"))).await?;
    }
    let said = recorder.stop().await?.said(&scene.address("Database/ill")?, "Ready");
    let wrong = said.iter().filter(|s| s.generation == 2 && s.entry["observedGeneration"] == 2);
    ensure!(wrong.clone().all(|s| s.entry["status"] != "True"), "ready by a run that is not the last");
    Ok(())
}

#[tokio::test]
async fn an_outage_that_outlives_all_events_and_in_which_nothing_happened_changes_nothing() -> Result<()> {
    let scene = remembering("weekend", "remember").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let well = ran(&scene, "well", fleeting("job-well")).await?;
    let ill = ran(&scene, "ill", playing("fail", fleeting("job-ill"))).await?;
    scene.until("Database/well", says("Ready", "True")).await?;
    scene.until("Database/ill", because("Ready", "ChildrenFailed")).await?;
    let before = [scene.get("Database/well").await?, scene.get("Database/ill").await?];
    let records = [record(&scene, &well)?, record(&scene, &ill)?];
    let recorded = [scene.admin.get(&records[0]).await?, scene.admin.get(&records[1]).await?];
    rollcall.kill()?;
    for job in ["job-well", "job-ill"] {
        forget(&scene, &events(&scene, job, &ENDS).await?).await?;
    }
    rollcall.again().await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Failed\""], |count| count >= 1.0).await?;
    assert_eq!([scene.get("Database/well").await?, scene.get("Database/ill").await?], before);
    assert_eq!([scene.admin.get(&records[0]).await?, scene.admin.get(&records[1]).await?], recorded);
    Ok(())
}
