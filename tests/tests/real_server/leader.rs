//! Two replicas and one lease: one writes, the other knows everything and takes over.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::caller::{ApiCaller, version_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// Longest time until what fails is told by the standby, from when the leader died or fell asleep: its lease runs for 15 s.
const TAKEOVER_BOUND: Duration = Duration::from_secs(40);

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
    let (tenant, mut leader, mut standby) = two("leader-killed").await?;
    ensure!(writes(&leader).await? >= 2.0 && writes(&standby).await? < 0.5, "both wrote");
    // A sum over all replicas counts each parent once.
    let ready = ["verdict=\"Ready\""];
    leader.until_metric("rollcall_parents", &ready, |n| n > 0.5).await?;
    ensure!(standby.metric("rollcall_parents", &[]).await? < 0.5, "the standby counts as well");

    let mut times = RecoveryTimes::new("leader killed", TAKEOVER_BOUND);
    for round in 1..=rounds(1) {
        let before = tenant.get("Lease/rollcall").await?;
        leader.kill()?;
        let died = Instant::now();
        tenant.play("web", Some("crash")).await?;
        tenant.until("Database/db", says("Ready", "False")).await?;
        times.add(died.elapsed())?;
        leads(&standby).await?;
        let after = tenant.get("Lease/rollcall").await?;
        assert!(held_by_another(&before).holds(Some(&after)), "{after:#}");
        assert_eq!(after["spec"]["leaseTransitions"], json!(round));
        standby.until_metric("rollcall_parents", &[], |n| n > 0.5).await?;
        tenant.play("web", None).await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
        // The one that died is the standby of the next round.
        leader.again().await?;
        leader.until_metric("rollcall_reflector_objects", &[], |rows| rows >= 2.0).await?;
        std::mem::swap(&mut leader, &mut standby);
    }
    println!("{times}");
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
    let (tenant, mut sleeper, mut standby) = two("leader-sleeps").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let mut times = RecoveryTimes::new("leader stopped for longer than its lease", TAKEOVER_BOUND);
    for round in 1..=rounds(1) {
        times.add(sleep_through_the_lease(&tenant, &sleeper, &standby, round).await?)?;
        // The one that leads now sleeps next.
        std::mem::swap(&mut sleeper, &mut standby);
    }
    println!("{times}");
    let recording = recorder.stop().await?;
    let statuses = recording.statuses(&tenant.address("Database/db")?, "Ready");
    let mut turns = vec!["True"];
    turns.extend((0..rounds(1)).flat_map(|_| ["False", "True"]));
    assert_eq!(statuses, turns);
    Ok(())
}

/// The leader sleeps until the standby leads, wakes and writes nothing. Returns the time until the standby told what failed.
async fn sleep_through_the_lease(
    tenant: &TestTenant,
    sleeper: &RollcallProcess,
    standby: &RollcallProcess,
    round: u32,
) -> Result<Duration> {
    // A write is seen before its answer has come to whom it is counted by.
    let last = if round == 1 { "db".to_owned() } else { format!("later-{}", round - 1) };
    until_logged_true(sleeper, &format!("{}/{last}\"", tenant.name)).await?;
    // Both print into one log.
    let (written, printed) =
        (writes(sleeper).await? - refused_writes(sleeper).await?, sleeper.output().len());
    sleeper.pause()?;
    let slept = Instant::now();
    // What it will find when it wakes: that all is not well, followed by that it is.
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let took = slept.elapsed();
    leads(standby).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let before = version_of(&tenant.get("Database/db").await?);
    sleeper.resume()?;
    sleeper.until_metric("rollcall_leader", &[], |leads| leads < 0.5).await?;
    sleeper.until_printed_after(printed, "lost leadership").await?;
    // It has taken in everything by the time it has seen a change that comes after its waking, and so has the leader.
    let later = format!("later-{round}");
    let db = tenant.create(tenant.custom("Database", &later)).await?;
    tenant.create(owned_by(&db, deployment(&later, 1))).await?;
    tenant.until(&format!("Database/{later}"), says("Ready", "True")).await?;
    let rows = f64::from(2 + 2 * round);
    sleeper.until_metric("rollcall_reflector_objects", &[], |held| held >= rows).await?;
    let now = writes(sleeper).await? - refused_writes(sleeper).await?;
    ensure!(now <= written, "it wrote after it woke");
    assert_eq!(version_of(&tenant.get("Database/db").await?), before);
    Ok(took)
}

/// Waits until it was logged that this object was told True.
async fn until_logged_true(one: &RollcallProcess, object: &str) -> Result<()> {
    let is_told = |line: &str| line.contains(object) && line.contains("\"status\":\"True\"");
    let logged = async {
        while !one.output().lines().any(is_told) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, logged).await.with_context(|| format!("{object} was not told True"))
}

/// Writes that it began and did not send, because it did not lead.
async fn refused_writes(one: &RollcallProcess) -> Result<f64> {
    one.metric("rollcall_writes_total", &["outcome=\"standby\""]).await
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
