//! Jobs that came and went: what is remembered of them, with the real Job and TTL controllers.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, job, owned_by, playing, uid};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::RollcallProcess;
use acceptance::scene::{TEST_TIMEOUT, TestTenant};
use acceptance::wish::{StateExpectation, because, current, gone, mentions, says, there};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// A scene with a policy that remembers.
pub(crate) async fn remembering(word: &str, after: &str) -> Result<TestTenant> {
    let scene = TestTenant::set(word).await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let mut jobs = scene.child("Job");
    jobs["afterDeletion"] = json!(after);
    scene.policy("db", "Database", json!({ "children": [jobs], "settle": "100ms" })).await?;
    Ok(scene)
}

/// A Job that the TTL controller takes away as soon as it has ended.
pub(crate) fn fleeting(name: &str) -> Value {
    let mut job = job(name);
    job["spec"]["ttlSecondsAfterFinished"] = json!(0);
    job
}

/// The record of a parent, in the scene's namespace.
pub(crate) fn record(scene: &TestTenant, parent: &Value) -> Result<ObjectAddress> {
    scene.address(&format!("ReadinessRecord/{}", uid(parent)))
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
pub(crate) async fn events(scene: &TestTenant, job: &str, reasons: &[&str]) -> Result<Vec<Value>> {
    let query = format!("fieldSelector=involvedObject.name={job}");
    let told = async {
        loop {
            let (events, _) = scene.admin.list(&scene.kind("Event"), &scene.name, &query).await?;
            if events.iter().any(|e| reasons.iter().any(|reason| e["reason"] == **reason)) {
                return Ok(events);
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TEST_TIMEOUT, told).await.with_context(|| format!("no Event of {job}: {reasons:?}"))?
}

/// Nobody can know any more what these told.
pub(crate) async fn forget(scene: &TestTenant, events: impl IntoIterator<Item = &Value>) -> Result<()> {
    for event in events {
        scene.admin.delete(&ObjectAddress::of(event)?).await?;
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
    let scene = remembering("memory", "remember").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&scene, &["Database"]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, fleeting("migrate"))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    scene.until("Job/migrate", gone()).await?;
    scene.until_at(&record(&scene, &db)?, &records("migrate", "Complete")).await?;
    let before = scene.get("Database/db").await?;
    for _ in 0..3 {
        rollcall.kill()?;
        rollcall.again().await?;
        rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    }
    assert_eq!(scene.get("Database/db").await?, before, "a restart at rest writes nothing");
    let parent = scene.address("Database/db")?;
    let recording = recorder.stop().await?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    let ends = recording.statuses(&parent, "Ready");
    assert_eq!(ends.iter().filter(|s| *s == "True").count(), 1, "{}", recording.transcript(&parent, "Ready"));
    assert_eq!(ends.last().map(String::as_str), Some("True"));
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_created_again_starts_afresh() -> Result<()> {
    let scene = remembering("afresh", "remember").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, fleeting("migrate"))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    scene.until("Job/migrate", gone()).await?;
    let again = scene.create(owned_by(&db, playing("hold", fleeting("migrate")))).await?;
    scene.until("Database/db", says("Ready", "False").and(mentions("Ready", "migrate progressing"))).await?;
    let running = StateExpectation::new("the new one alone", {
        let of = uid(&again).to_owned();
        move |record| {
            let outcomes = record["spec"]["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
            outcomes.len() == 1 && outcomes[0]["uid"] == *of && outcomes[0]["outcome"] == "Running"
        }
    });
    scene.until_at(&record(&scene, &db)?, &running).await?;
    rollcall.kill()?;
    rollcall.again().await?;
    scene.play("migrate", Some("fail")).await?;
    scene.until("Database/db", because("Ready", "ChildrenFailed")).await?;
    scene.until("Job/migrate", gone()).await?;
    let failed = says("Stalled", "True").and(mentions("Ready", "BackoffLimitExceeded"));
    scene.until("Database/db", failed).await?;
    Ok(())
}

#[tokio::test]
async fn a_hook_that_is_deleted_right_after_its_end_is_remembered() -> Result<()> {
    let scene = remembering("hook", "remember").await?;
    let rollcall = scene.rollcall(&[]).await?;
    for (name, part, condition, reason) in
        [("well", None, "Complete", "AllChildrenReady"), ("ill", Some("fail"), "Failed", "ChildrenFailed")]
    {
        let db = scene.create(scene.custom("Database", name)).await?;
        let hook = job(&format!("hook-{name}"));
        scene.create(owned_by(&db, part.map_or(hook.clone(), |part| playing(part, hook)))).await?;
        scene.until(&format!("Job/hook-{name}"), says(condition, "True")).await?;
        // As Argo CD and Helm do it: in the background, as soon as it has ended.
        scene.delete(&format!("Job/hook-{name}")).await?;
        scene.until(&format!("Job/hook-{name}"), gone()).await?;
        scene.until(&format!("Database/{name}"), because("Ready", reason)).await?;
    }
    drop(rollcall);
    Ok(())
}

#[tokio::test]
async fn an_old_complete_does_not_satisfy_a_new_generation() -> Result<()> {
    let scene = remembering("generation", "rememberGeneration").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&scene, &["Database"]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, fleeting("migrate"))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    scene.until("Job/migrate", gone()).await?;
    scene.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let missing = || because("Ready", "ChildrenMissing").and(current("Ready"));
    scene.until("Database/db", missing()).await?;
    rollcall.kill()?;
    rollcall.again().await?;
    scene.until("Database/db", missing()).await?;
    scene.create(owned_by(&db, fleeting("migrate"))).await?;
    scene.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    let said = recorder.stop().await?.said(&scene.address("Database/db")?, "Ready");
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
    let scene = remembering("evidence", "remember").await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for name in ["well", "ill", "dark"] {
        let db = scene.create(scene.custom("Database", name)).await?;
        let held = owned_by(&db, playing("hold", fleeting(&format!("job-{name}"))));
        scene.create(held).await?;
        scene.until_at(&record(&scene, &db)?, &records(&format!("job-{name}"), "Running")).await?;
        parents.push(db);
    }
    while_away(&mut rollcall, async {
        for (name, part) in [("well", None), ("ill", Some("fail")), ("dark", None)] {
            scene.play(&format!("job-{name}"), part).await?;
            scene.until(&format!("Job/job-{name}"), gone()).await?;
        }
        events(&scene, "job-well", &ENDS).await?;
        events(&scene, "job-ill", &ENDS).await?;
        // Nothing is left of the third.
        forget(&scene, &events(&scene, "job-dark", &ENDS).await?).await
    })
    .await?;
    scene.until("Database/well", says("Ready", "True")).await?;
    scene.until("Database/ill", because("Ready", "ChildrenFailed")).await?;
    let unseen = says("Ready", "Unknown")
        .and(mentions("Ready", "job-dark unknown (gone, and its outcome was not observed)"));
    scene.until("Database/dark", unseen).await?;
    scene.until_at(&record(&scene, &parents[2])?, &records("job-dark", "Unseen")).await?;
    // Who knows may say so.
    let place = record(&scene, &parents[2])?;
    let mut known = scene.until_at(&place, &there()).await?["spec"]["outcomes"].clone();
    known[0]["outcome"] = json!("Complete");
    scene.admin.merge(&place, "", &json!({ "spec": { "outcomes": known } })).await?;
    scene.until("Database/dark", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_record_that_people_touch_is_set_right_and_goes_with_its_parent() -> Result<()> {
    let scene = remembering("touched", "remember").await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, fleeting("migrate"))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    let place = record(&scene, &db)?;
    let right = scene.until_at(&place, &records("migrate", "Complete")).await?;
    assert_eq!(right["metadata"]["managedFields"][0]["manager"], "rollcall");
    assert!(right["metadata"]["ownerReferences"].is_null());

    scene.admin.delete(&place).await?;
    let other = StateExpectation::new("another one", {
        let of = uid(&right).to_owned();
        move |record| uid(record) != of
    });
    scene.until_at(&place, &other.and(records("migrate", "Complete"))).await?;
    let mut wrong = right["spec"]["outcomes"].clone();
    wrong[0]["outcome"] = json!("Failed");
    scene.admin.merge(&place, "", &json!({ "spec": { "outcomes": wrong } })).await?;
    scene.until_at(&place, &records("migrate", "Complete")).await?;
    wrong[0]["outcome"] = json!("Splendid");
    let refused = scene.admin.merge(&place, "", &json!({ "spec": { "outcomes": wrong } })).await;
    ensure!(refused.is_err(), "the schema knows all outcomes");
    assert_eq!(condition(&scene.get("Database/db").await?, "Ready").context("no Ready")?["status"], "True");

    scene.delete("Database/db").await?;
    scene.until_at(&place, &gone()).await?;
    Ok(())
}

#[tokio::test]
async fn a_complete_job_that_somebody_else_holds_in_deletion_is_stuck() -> Result<()> {
    for after in ["remember", "forget"] {
        let scene = TestTenant::set("hung").await?;
        scene.crd(&CrdBuilder::new("Database")).await?;
        let mut jobs = scene.child("Job");
        jobs["afterDeletion"] = json!(after);
        let spec = json!({ "children": [jobs], "settle": "100ms", "limits": { "terminating": "3s" } });
        scene.policy("db", "Database", spec).await?;
        let _rollcall = scene.rollcall(&[]).await?;
        let recorder = StateRecorder::start(&scene, &["Database"]).await?;
        let db = scene.create(scene.custom("Database", "db")).await?;
        let mut hung = fleeting("migrate");
        hung["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
        scene.create(owned_by(&db, hung)).await?;
        let stuck = says("Stalled", "True").and(because("Ready", "ChildrenStuck")).and(mentions(
            "Ready",
            "migrate stuck (finalizer argocd.argoproj.io/hook-finalizer (likely Argo CD)",
        ));
        scene.until("Database/db", stuck).await?;
        scene.change("Job/migrate", json!({ "metadata": { "finalizers": null } })).await?;
        scene.until("Job/migrate", gone()).await?;
        let end = if after == "remember" { "AllChildrenReady" } else { "ChildrenMissing" };
        scene.until("Database/db", because("Ready", end)).await?;
        let told = recorder.stop().await?.said(&scene.address("Database/db")?, "Ready");
        let reasons: Vec<&str> = told.iter().filter_map(|said| said.entry["reason"].as_str()).collect();
        // How it ended counts while it is on its way out; without memory it is on its way out, and nothing else.
        assert_eq!(reasons.contains(&"ChildrenTerminating"), after == "forget", "{reasons:?}");
    }
    Ok(())
}
