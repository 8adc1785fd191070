//! Clocks of machines: one that is off from the start, and one that somebody sets while Rollcall runs.

use std::fs;

use acceptance::caller::ApiCaller;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, says};
use acceptance::gate::ApiGate;
use acceptance::objects::{condition, deployment, owned_by, playing};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Debian's libfaketime, found by the dynamic linker in its usual place.
const FAKETIME: &str = "/usr/$LIB/faketime/libfaketimeMT.so.1";

/// The service over databases on a machine with such a clock, behind a gate without TLS: certificates have their dates, too.
async fn running(word: &str, clock: (&str, &str)) -> Result<(TestTenant, ApiGate, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let variables =
        [("LD_PRELOAD", FAKETIME), clock, ("FAKETIME_DONT_FAKE_MONOTONIC", "1"), ("FAKETIME_NO_CACHE", "1")];
    let rollcall = tenant.rollcall_in(&gate.url, &[], &variables).await?;
    rollcall.until_ready().await?;
    Ok((tenant, gate, rollcall))
}

/// Seconds from the creation of a parent until it was told what it is told now.
fn told_after(parent: &Value) -> Result<i64> {
    let created = moment(&parent["metadata"]["creationTimestamp"])?;
    let turned = moment(&condition(parent, "Ready").context("no entry")?["lastTransitionTime"])?;
    Ok(turned.duration_since(created).as_secs())
}

async fn with_a_clock_that_is_off(word: &str, off: &str, ahead: fn(f64) -> bool) -> Result<()> {
    let (tenant, _gate, rollcall) = running(word, ("FAKETIME", off)).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut web = deployment("web", 1);
    web["metadata"]["finalizers"] = json!(["example.com/hold"]);
    tenant.create(owned_by(&db, web)).await?;
    let told = tenant.until("Database/db", says("Ready", "True")).await?;
    let after = told_after(&told)?;
    ensure!((-2..120).contains(&after), "dated {after} s after the parent was made");
    tenant.delete("Deployment/web").await?;
    let going = says("Ready", "False").and(because("Ready", "ChildrenTerminating"));
    tenant.until("Database/db", going).await?;
    rollcall.until_metric("rollcall_clock_offset_seconds", &[], ahead).await?;
    rollcall.until_printed("using the server's").await?;
    tenant.change("Deployment/web", json!({ "metadata": { "finalizers": null } })).await?;
    Ok(())
}

pub(crate) fn moment(text: &Value) -> Result<k8s_openapi::jiff::Timestamp> {
    Ok(text.as_str().context("no moment")?.parse()?)
}

#[tokio::test]
async fn a_clock_that_is_an_hour_ahead_makes_nothing_stuck() -> Result<()> {
    with_a_clock_that_is_off("ahead", "+3600s", |offset| (-3_605.0..-3_595.0).contains(&offset)).await
}

#[tokio::test]
async fn a_clock_that_is_an_hour_behind_dates_nothing_before_it_was() -> Result<()> {
    with_a_clock_that_is_off("behind", "-3600s", |offset| (3_595.0..3_605.0).contains(&offset)).await
}

#[tokio::test]
async fn a_clock_that_is_set_while_rollcall_runs_changes_nothing() -> Result<()> {
    let clock = std::env::temp_dir().join(format!("rollcall-clock-{}", std::process::id()));
    fs::write(&clock, "+0s\n")?;
    let file = clock.to_string_lossy().into_owned();
    let (tenant, _gate, rollcall) = running("set-clock", ("FAKETIME_TIMESTAMP_FILE", &file)).await?;
    let owned = async |name: &str, play: Option<&str>| -> Result<()> {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        let web = deployment(&format!("{name}-web"), 1);
        let web = play.map_or(web.clone(), |play| playing(play, web));
        tenant.create(owned_by(&db, web)).await?;
        Ok(())
    };
    owned("ready", None).await?;
    owned("late", Some("hold")).await?;
    tenant.until("Database/ready", says("Ready", "True")).await?;
    tenant.until("Database/late", because("Ready", "ChildrenProgressing")).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    for (number, off) in ["+7200s", "-7200s", "+0s"].into_iter().enumerate() {
        fs::write(&clock, format!("{off}\n"))?;
        let name = format!("new-{number}");
        owned(&name, None).await?;
        let told = tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
        let after = told_after(&told)?;
        ensure!((-2..120).contains(&after), "{off}: dated {after} s after the parent was made");
        let offset = rollcall.metric("rollcall_clock_offset_seconds", &[]).await?;
        ensure!(offset.abs() < 5.0, "{off}: it reckons by the time that has passed, and finds {offset} s");
    }
    fs::remove_file(&clock)?;
    let dated = rollcall.output();
    let lines = dated.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let times: Vec<_> = lines.map(|line| moment(&line["timestamp"])).collect::<Result<_>>()?;
    let was_set =
        times.windows(2).filter(|pair| pair[1].duration_since(pair[0]).as_secs().abs() > 3_600).count();
    ensure!(was_set == 3, "the clock of its log was set {was_set} times");
    let recording = recorder.stop().await?;
    let of = |name: &str| tenant.address(&format!("Database/{name}"));
    let (ready, late) = (of("ready")?, of("late")?);
    ensure!(
        !recording.statuses(&ready, "Ready").contains(&"False".to_owned()),
        "{}",
        recording.transcript(&ready, "Ready")
    );
    ensure!(
        !recording.statuses(&late, "Stalled").contains(&"True".to_owned()),
        "{}",
        recording.transcript(&late, "Stalled")
    );
    Ok(())
}
