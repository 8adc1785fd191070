//! Operators that write conditions too, and do not care for those of others.

use std::time::Duration;

use acceptance::caller::code_of;
use acceptance::crd::Crd;
use acceptance::kopf::Kopf;
use acceptance::objects::{condition, deployment, owned_by, playing};
use acceptance::recorder::{Recorder, Recording};
use acceptance::rollcall::{Rollcall, policy_address};
use acceptance::scene::Scene;
use acceptance::wish::{because, has, mentions, says};
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

/// A timer that replaces the list of conditions, as a merge patch does.
const TIMER: &str = r#"
import kopf

@kopf.timer("GROUP", "v1", "databases", interval=1.0)
def tick(patch, memo, **_):
    memo["ticks"] = memo.get("ticks", 0) + 1
    patch.status["conditions"] = [
        {"type": "Synced", "status": "True", "reason": "Tick", "message": f"tick {memo['ticks']}."}
    ]
"#;

/// An operator that says once that all is well.
const OWNER: &str = r#"
import kopf

@kopf.on.create("GROUP", "v1", "databases")
def create(patch, **_):
    patch.status["conditions"] = [
        {"type": "Ready", "status": "True", "reason": "Created", "message": "says the operator"}
    ]
"#;

async fn set(word: &str, crd: Crd, condition_of: Value) -> Result<(Scene, Rollcall)> {
    let scene = Scene::set(word).await?;
    scene.crd(&crd).await?;
    let children = json!([scene.child("Deployment")]);
    let spec = json!({ "children": children, "settle": "100ms", "condition": condition_of });
    scene.policy("db", "Database", spec).await?;
    let running = scene.rollcall(&[]).await?;
    Ok((scene, running))
}

/// Once an entry of `kind` was written it is there at every step; how often ours was.
fn never_lost(recording: &Recording, kind: &str) -> Result<usize> {
    let (mut seen, mut ours, mut had_ours) = (false, 0, false);
    for state in recording.entries().iter().filter_map(|entry| entry.state.as_ref()) {
        if state["kind"] != "Database" {
            continue;
        }
        let there = condition(state, kind).is_some();
        ensure!(there || !seen, "{kind} is lost: {:#}", state["status"]);
        seen |= there;
        let has_ours = condition(state, "Ready").is_some();
        ours += usize::from(has_ours && !had_ours);
        had_ours = has_ours;
    }
    ensure!(seen, "{kind} was never there");
    Ok(ours)
}

async fn yields(scene: &Scene, running: &Rollcall, manager: &str) -> Result<()> {
    running.until_metric("rollcall_parents_yielding", &[], |parents| parents > 0.0).await?;
    let policy = policy_address(scene, "db")?;
    let named = because("Ready", "Yielding").and(mentions("Ready", manager));
    let said = scene.until_at(&policy, &named).await?;
    eprintln!("{:#}", condition(&said, "Ready").cloned().unwrap_or_default()["message"]);
    let told = async {
        loop {
            let (events, _) = scene.admin.list(&scene.kind("Event"), &scene.name, "").await?;
            let ours = |e: &&Value| e["reason"] == "ConditionOverwritten";
            if let Some(event) = events.iter().find(ours) {
                return anyhow::Ok(event["message"].to_string());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let note = tokio::time::timeout(acceptance::scene::PATIENCE, told).await.context("no Event")??;
    ensure!(note.contains(manager), "{note}");
    Ok(())
}

async fn a_timer_is_yielded_to(word: &str, crd: Crd) -> Result<()> {
    let (scene, running) = set(word, crd, json!({ "type": "Ready" })).await?;
    let recorder = Recorder::start(&scene, &["Database"]).await?;
    scene.create(scene.custom("Database", "db")).await?;
    scene.until("Database/db", has("Ready", true)).await?;
    let operator = scene.script("timer", Kopf::Current, TIMER, &[])?;
    yields(&scene, &running, "kopf").await?;
    scene.until("Database/db", mentions("Synced", "tick 12.")).await?;
    let recording = recorder.stop().await?;
    let ours = never_lost(&recording, "Synced")?;
    eprintln!("ours came {ours} times within 12 ticks");
    // The first word, three before it is a fight, and the one of the first minute.
    ensure!((2..=5).contains(&ours), "{ours} times within 12 ticks");
    operator.never_stumbled()
}

#[tokio::test]
async fn a_timer_of_kopf_that_replaces_the_list_is_yielded_to_and_named() -> Result<()> {
    a_timer_is_yielded_to("timer", Crd::new("Database")).await
}

#[tokio::test]
async fn a_timer_of_kopf_that_replaces_an_atomic_list_is_yielded_to_and_named() -> Result<()> {
    a_timer_is_yielded_to("atomictimer", Crd::new("Database").atomic()).await
}

#[tokio::test]
async fn a_controller_that_puts_a_status_of_its_own_is_yielded_to_and_named() -> Result<()> {
    let (scene, running) = set("putstatus", Crd::new("Database"), json!({ "type": "Ready" })).await?;
    let recorder = Recorder::start(&scene, &["Database"]).await?;
    scene.create(scene.custom("Database", "db")).await?;
    let address = scene.address("Database/db")?;
    let path = format!("{}/status?fieldManager=shop-controller", address.path());
    // The first word, three in a row, and then a minute may pass before ours comes again.
    while running.metric("rollcall_parents_yielding", &[]).await? == 0.0 {
        let mut db = scene.get("Database/db").await?;
        if condition(&db, "Ready").is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        db["status"] = json!({ "conditions": [{ "type": "Synced", "status": "True", "reason": "Put" }] });
        match scene.admin.send(Method::PUT, &path, "application/json", serde_json::to_vec(&db)?).await {
            Err(error) if code_of(&error) != Some(409) => return Err(error),
            _ => {}
        }
    }
    yields(&scene, &running, "shop-controller").await?;
    never_lost(&recorder.stop().await?, "Synced")?;
    Ok(())
}

#[tokio::test]
async fn a_ready_of_a_kopf_operator_stays_its_own_and_the_fallback_says_what_is() -> Result<()> {
    let fallback = json!({ "type": "Ready", "fallback": "ChildrenReady" });
    let (scene, _running) = set("owner", Crd::new("Database"), fallback).await?;
    let operator = scene.script("owner", Kopf::Current, OWNER, &[])?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    scene.until("Database/db", because("Ready", "Created")).await?;
    let said = says("ChildrenReady", "False").and(mentions("ChildrenReady", "Deployment web"));
    scene.until("Database/db", said.and(because("Ready", "Created"))).await?;
    scene.play("web", None).await?;
    scene.until("Database/db", says("ChildrenReady", "True").and(because("Ready", "Created"))).await?;
    operator.never_stumbled()
}
