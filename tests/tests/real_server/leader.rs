//! Two replicas and one lease: one writes, the other knows everything and takes over.

use acceptance::caller::{ApiCaller, version_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

const ELECTED: [&str; 2] = ["--leader-elect", "--audit=0s"];

/// A leader, a standby, and a parent that is ready.
async fn two(word: &str) -> Result<(TestTenant, RollcallProcess, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let leader = tenant.rollcall(&ELECTED).await?;
    leader.until_metric("rollcall_leader", &[], |leads| leads > 0.5).await?;
    let standby = tenant.rollcall_at(tenant.plane.url(), &ELECTED).await?;
    standby.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    standby.until_metric("rollcall_reflector_objects", &[], |rows| rows >= 2.0).await?;
    assert!(standby.metric("rollcall_leader", &[]).await? < 0.5);
    Ok((tenant, leader, standby))
}

async fn leads(one: &RollcallProcess) -> Result<()> {
    one.until_metric("rollcall_leader", &[], |leads| leads > 0.5).await?;
    Ok(())
}

/// Writes that it tried, whatever became of them.
async fn writes(one: &RollcallProcess) -> Result<f64> {
    one.metric("rollcall_writes_total", &[]).await
}

fn held_by_another(than: &Value) -> StateExpectation {
    let than = than["spec"]["holderIdentity"].clone();
    StateExpectation::new("held by another", move |lease| {
        let holder = &lease["spec"]["holderIdentity"];
        holder.as_str().is_some_and(|name| !name.is_empty()) && *holder != than
    })
}

#[tokio::test]
async fn a_standby_writes_nothing_and_takes_over_from_a_leader_that_was_killed() -> Result<()> {
    let (tenant, mut leader, standby) = two("leader-killed").await?;
    ensure!(writes(&leader).await? >= 2.0 && writes(&standby).await? < 0.5, "both wrote");
    // A sum over all replicas counts each parent once.
    let ready = ["verdict=\"Ready\""];
    leader.until_metric("rollcall_parents", &ready, |n| n > 0.5).await?;
    ensure!(standby.metric("rollcall_parents", &[]).await? < 0.5, "the standby counts as well");

    let before = tenant.get("Lease/rollcall").await?;
    leader.kill()?;
    let died = Instant::now();
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let took = died.elapsed();
    ensure!(took.as_secs() < 40, "{took:?}");
    eprintln!("killed leader: the standby's first write after {took:?}");
    leads(&standby).await?;
    let after = tenant.get("Lease/rollcall").await?;
    assert!(held_by_another(&before).holds(Some(&after)), "{after:#}");
    assert_eq!(after["spec"]["leaseTransitions"], json!(1));
    standby.until_metric("rollcall_parents", &[], |n| n > 0.5).await?;
    Ok(())
}

#[tokio::test]
async fn a_leader_that_is_told_to_stop_hands_over_at_once_and_nothing_is_written_at_rest() -> Result<()> {
    let (tenant, mut leader, standby) = two("leader-stops").await?;
    let policy = tenant.policy_name("db");
    let whole = StateExpectation::new("counted", |policy| policy["status"]["ready"] == json!(1));
    tenant.until(&format!("ReadinessPolicy/{policy}"), whole).await?;
    let versions = async || -> Result<[u64; 2]> {
        let policy = tenant.get(&format!("ReadinessPolicy/{policy}")).await?;
        Ok([version_of(&tenant.get("Database/db").await?), version_of(&policy)])
    };
    let before = versions().await?;
    let lease = tenant.get("Lease/rollcall").await?;
    let told = Instant::now();
    assert!(leader.terminate().await?.success());
    tenant.until("Lease/rollcall", held_by_another(&lease)).await?;
    let took = told.elapsed();
    eprintln!("handed over in {took:?}");
    ensure!(took.as_secs() < 10, "it waited for the lease to run out: {took:?}");
    leads(&standby).await?;
    // It says what it counts once it leads, and by then has weighed everything.
    standby.until_metric("rollcall_parents", &["verdict=\"Ready\""], |n| n > 0.5).await?;
    assert_eq!(versions().await?, before);
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    // The one that stopped comes back as a standby.
    leader.again().await?;
    ensure!(leader.metric("rollcall_leader", &[]).await? < 0.5, "two leaders");
    Ok(())
}

#[tokio::test]
async fn a_leader_that_slept_through_the_loss_of_its_lease_writes_nothing_when_it_wakes() -> Result<()> {
    let (tenant, sleeper, standby) = two("leader-sleeps").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let written = writes(&sleeper).await?;
    sleeper.pause()?;
    // What it will find when it wakes: that all is not well, followed by that it is.
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    leads(&standby).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let before = version_of(&tenant.get("Database/db").await?);
    sleeper.resume()?;
    sleeper.until_metric("rollcall_leader", &[], |leads| leads < 0.5).await?;
    sleeper.until_printed("lost leadership").await?;
    // It has taken in everything by the time it has seen a change that comes after its waking, and so has the leader.
    let db = tenant.create(tenant.custom("Database", "later")).await?;
    tenant.create(owned_by(&db, deployment("later", 1))).await?;
    tenant.until("Database/later", says("Ready", "True")).await?;
    sleeper.until_metric("rollcall_reflector_objects", &[], |rows| rows >= 4.0).await?;
    let refused = sleeper.metric("rollcall_writes_total", &["outcome=\"standby\""]).await?;
    ensure!(writes(&sleeper).await? - refused <= written, "it wrote after it woke");
    assert_eq!(version_of(&tenant.get("Database/db").await?), before);
    let recording = recorder.stop().await?;
    let statuses = recording.statuses(&tenant.address("Database/db")?, "Ready");
    assert_eq!(statuses, ["True", "False", "True"]);
    Ok(())
}

#[tokio::test]
async fn a_leader_that_cannot_renew_stops_before_another_begins() -> Result<()> {
    let (tenant, mut first, mut second) = two("leader-cut-off").await?;
    assert!(first.terminate().await?.success() && second.terminate().await?.success());
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let cut_off = tenant.rollcall_at(&gate.url, &ELECTED).await?;
    leads(&cut_off).await?;
    let standby = tenant.rollcall_at(tenant.plane.url(), &ELECTED).await?;
    standby.until_ready().await?;
    let printed = standby.output().len();

    // Everything passes but its renewals: it sees what it would have to write, and could.
    gate.set(GateRule::Hold(Method::PUT, "/leases/".to_owned()));
    cut_off.until_metric("rollcall_leader", &[], |leads| leads < 0.5).await?;
    let written = writes(&cut_off).await?;
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    leads(&standby).await?;
    ensure!(writes(&cut_off).await? <= written, "it wrote without a lease");
    // Both print into one log.
    let log = standby.output().split_off(printed);
    let place = |words: &str| log.find(words).with_context(|| format!("no {words:?} in\n{log}"));
    ensure!(place("lost leadership")? < place("\"became leader\"")?, "two led at once\n{log}");
    gate.set(GateRule::Pass);
    cut_off.until_printed("\"standing by\"").await?;
    assert!(cut_off.metric("rollcall_leader", &[]).await? < 0.5);
    Ok(())
}
