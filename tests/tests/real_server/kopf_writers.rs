//! Operators that write conditions too, and do not care for those of others.

use std::time::Duration;

use acceptance::caller::code_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, has, mentions, says};
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::objects::{condition, deployment, owned_by, playing};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
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

async fn set(word: &str, crd: CrdBuilder, condition_of: Value) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&crd).await?;
    let children = json!([tenant.child("Deployment")]);
    let spec = json!({ "children": children, "settle": "100ms", "condition": condition_of });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    Ok((tenant, running))
}

/// Once an entry of `kind` was written it is there at every step; when ours came to be there where it was not, by its own
/// word, in seconds of the day.
fn never_lost(recording: &StateRecording, kind: &str) -> Result<Vec<i64>> {
    let (mut seen, mut ours, mut had_ours) = (false, vec![], false);
    for state in recording.entries().iter().filter_map(|entry| entry.state.as_ref()) {
        if state["kind"] != "Database" {
            continue;
        }
        let there = condition(state, kind).is_some();
        ensure!(there || !seen, "{kind} is lost: {:#}", state["status"]);
        seen |= there;
        let entry = condition(state, "Ready");
        if let Some(entry) = entry.filter(|_| !had_ours) {
            ours.push(second_of_day(&entry["lastTransitionTime"])?);
        }
        had_ours = entry.is_some();
    }
    ensure!(seen, "{kind} was never there");
    Ok(ours)
}

fn second_of_day(time: &Value) -> Result<i64> {
    let clock = time.as_str().and_then(|time| time.get(11..19)).context("no time")?;
    clock.split(':').try_fold(0, |sum, part| Ok(sum * 60 + part.parse::<i64>()?))
}

async fn yields(tenant: &TestTenant, running: &RollcallProcess, manager: &str) -> Result<()> {
    running.until_metric("rollcall_parents_yielding", &[], |parents| parents > 0.0).await?;
    running.until_metric("rollcall_parent_yielding_info", &["name=\"db\""], |one| one > 0.0).await?;
    let policy = policy_address(tenant, "db")?;
    let named = because("Ready", "Yielding").and(mentions("Ready", manager));
    let said = tenant.until_at(&policy, &named).await?;
    eprintln!("{:#}", condition(&said, "Ready").cloned().unwrap_or_default()["message"]);
    let told =
        tenant.until_listed("Event", &tenant.name, "fieldSelector=reason=ConditionOverwritten").await?;
    let note = told["message"].to_string();
    ensure!(note.contains(manager), "{note}");
    Ok(())
}

async fn a_timer_is_yielded_to(word: &str, crd: CrdBuilder) -> Result<()> {
    let (tenant, running) = set(word, crd, json!({ "type": "Ready" })).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.create(tenant.custom("Database", "db")).await?;
    tenant.until("Database/db", has("Ready", true)).await?;
    let operator = tenant.script("timer", KopfVersion::Current, TIMER, &[])?;
    yields(&tenant, &running, "kopf").await?;
    // Never given up: our word is there again, and once more after the next tick. Up to where it is written once a minute
    // takes too long for every day.
    let full = acceptance::recovery::is_full();
    for _ in 0..2 {
        tenant.until("Database/db", has("Ready", false)).await?;
        tenant.until("Database/db", has("Ready", true)).await?;
    }
    for tick in if full { &[40, 80, 120, 160, 200][..] } else { &[] } {
        tenant.until("Database/db", mentions("Synced", &format!("tick {tick}."))).await?;
    }
    let ours = never_lost(&recorder.stop().await?, "Synced")?;
    let gaps: Vec<i64> = ours.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(86_400)).collect();
    eprintln!("seconds between writes of ours: {gaps:?}");
    ensure!(gaps.len() >= 3, "{gaps:?}");
    // What is overwritten for the first time is written again at once. Then each wait is twice the one before, less a
    // quarter at most, until it is a minute, and two times are rounded. How much longer one takes is the machine's matter.
    for (gap, doubled) in gaps[1..].iter().zip([1, 2, 4, 8, 16, 32, 60, 60]) {
        let least = if doubled == 60 { 59 } else { doubled * 3 / 4 - 1 };
        ensure!(*gap >= least, "{gaps:?}");
    }
    ensure!(!full || gaps.last().is_some_and(|gap| *gap >= 59), "{gaps:?}");
    operator.never_stumbled()
}

#[tokio::test]
async fn a_timer_of_kopf_that_replaces_the_list_is_yielded_to_and_named() -> Result<()> {
    a_timer_is_yielded_to("timer", CrdBuilder::new("Database")).await
}

#[tokio::test]
async fn a_timer_of_kopf_that_replaces_an_atomic_list_is_yielded_to_and_named() -> Result<()> {
    a_timer_is_yielded_to("atomictimer", CrdBuilder::new("Database").atomic()).await
}

#[tokio::test]
async fn a_controller_that_puts_a_status_of_its_own_is_yielded_to_and_named() -> Result<()> {
    let (tenant, running) = set("putstatus", CrdBuilder::new("Database"), json!({ "type": "Ready" })).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.create(tenant.custom("Database", "db")).await?;
    let address = tenant.address("Database/db")?;
    let path = format!("{}/status?fieldManager=shop-controller", address.path());
    // The first word, three in a row, and then a minute may pass before ours comes again.
    while running.metric("rollcall_parents_yielding", &[]).await? == 0.0 {
        let mut db = tenant.get("Database/db").await?;
        if condition(&db, "Ready").is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        db["status"] = json!({ "conditions": [{ "type": "Synced", "status": "True", "reason": "Put" }] });
        match tenant.admin.send(Method::PUT, &path, "application/json", serde_json::to_vec(&db)?).await {
            Err(error) if code_of(&error) != Some(409) => return Err(error),
            _ => {}
        }
    }
    yields(&tenant, &running, "shop-controller").await?;
    never_lost(&recorder.stop().await?, "Synced")?;
    Ok(())
}

#[tokio::test]
async fn a_ready_of_a_kopf_operator_stays_its_own_and_the_fallback_says_what_is() -> Result<()> {
    let fallback = json!({ "type": "Ready", "fallback": "ChildrenReady" });
    let (tenant, _running) = set("owner", CrdBuilder::new("Database"), fallback).await?;
    let operator = tenant.script("owner", KopfVersion::Current, OWNER, &[])?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", because("Ready", "Created")).await?;
    let said = says("ChildrenReady", "False").and(mentions("ChildrenReady", "Deployment web"));
    tenant.until("Database/db", said.and(because("Ready", "Created"))).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("ChildrenReady", "True").and(because("Ready", "Created"))).await?;
    operator.never_stumbled()
}

/// A timer that keeps what is not its own, but will have no Ready that it did not write.
const PURIST: &str = r#"
import kopf

@kopf.timer("GROUP", "v1", "databases", interval=1.0)
def tick(patch, status, memo, **_):
    memo["ticks"] = memo.get("ticks", 0) + 1
    others = [c for c in status.get("conditions", []) if c["type"] not in ("Ready", "Synced")]
    synced = {"type": "Synced", "status": "True", "reason": "Tick", "message": f"tick {memo['ticks']}."}
    patch.status["conditions"] = others + [synced]
"#;

#[tokio::test]
async fn where_ready_is_overwritten_again_and_again_the_fallback_takes_over_for_good() -> Result<()> {
    let fallback = json!({ "type": "Ready", "fallback": "ChildrenReady" });
    let (tenant, running) = set("purist", CrdBuilder::new("Database"), fallback).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", says("Ready", "False").and(has("ChildrenReady", false))).await?;
    let operator = tenant.script("purist", KopfVersion::Current, PURIST, &[])?;
    let said = says("ChildrenReady", "False").and(mentions("ChildrenReady", "Deployment web"));
    tenant.until("Database/db", said.and(has("Ready", false))).await?;
    yields(&tenant, &running, "kopf").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("ChildrenReady", "True").and(has("Ready", false))).await?;
    tenant.until("Database/db", mentions("Synced", "tick 15.")).await?;
    let came_back = never_lost(&recorder.stop().await?, "ChildrenReady")?;
    ensure!(came_back.is_empty(), "Ready was given up: {came_back:?}");
    operator.never_stumbled()
}
