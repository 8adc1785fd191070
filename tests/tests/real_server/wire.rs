//! What happens to watches on their way: they come late, are reset, and break off in the middle of a line. No bookmark helps.

use std::ops::RangeInclusive;
use std::time::Duration;

use acceptance::caller::ApiCaller;
use acceptance::expectation::says;
use acceptance::gate::{ApiGate, GateRule};
use acceptance::half_open::HalfOpenProxy;
use acceptance::objects::owned_by;
use acceptance::recorder::StateRecorder;
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use tokio::time::Instant;

use crate::outage::{define_shards, set_ready};

/// How late a watch tells what it has.
const DELAY: Duration = Duration::from_secs(30);
/// Parents, each with a child. What is even is ready at first, and flips to the other each round.
const PARENTS: u32 = 6;
/// Longest time until all flips of a round are told, once nothing is in their way any more.
const RECOVERY_BOUND: Duration = Duration::from_secs(30);

/// Rounds of flips.
fn flip_rounds() -> RangeInclusive<u32> {
    1..=rounds(4)
}

/// What a parent and its child say in this round.
fn status_in(round: u32, number: u32) -> &'static str {
    if (round + number).is_multiple_of(2) { "True" } else { "False" }
}

/// Parents whose Rollcall reaches the server by this URL, with what they say in round 0.
async fn told_parents(tenant: &TestTenant, url: &str) -> Result<RollcallProcess> {
    let running = tenant.rollcall_at(url, &[]).await?;
    running.until_ready().await?;
    for number in 0..PARENTS {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(tenant, number, status_in(0, number)).await?;
    }
    until_told(tenant, 0).await?;
    Ok(running)
}

async fn flip_all(tenant: &TestTenant, round: u32) -> Result<()> {
    for number in 0..PARENTS {
        set_ready(tenant, number, status_in(round, number)).await?;
    }
    Ok(())
}

/// Returns how long it took until all flips of a round are told.
async fn until_told(tenant: &TestTenant, round: u32) -> Result<Duration> {
    let since = Instant::now();
    for number in 0..PARENTS {
        tenant.until(&format!("Database/db-{number}"), says("Ready", status_in(round, number))).await?;
    }
    Ok(since.elapsed())
}

/// Each flip was told once, and none that was not true.
async fn each_was_told_once(tenant: &TestTenant, recorder: StateRecorder) -> Result<()> {
    let recording = recorder.stop().await?;
    for number in 0..PARENTS {
        let parent = tenant.address(&format!("Database/db-{number}"))?;
        recording.no_false_ready(&parent, "Ready", &[("Shard", 1)])?;
        let told: Vec<_> = (0..=*flip_rounds().end()).map(|round| status_in(round, number)).collect();
        ensure!(recording.statuses(&parent, "Ready") == told, "{}", recording.transcript(&parent, "Ready"));
    }
    Ok(())
}

/// A tenant whose Rollcall reaches the server through a gate that keeps all bookmarks to itself.
async fn gated(word: &str) -> Result<(TestTenant, ApiGate)> {
    let tenant = TestTenant::start(word).await?;
    define_shards(&tenant).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open_without_bookmarks(&own).await?;
    Ok((tenant, gate))
}

#[tokio::test]
async fn what_a_watch_tells_half_a_minute_late_makes_nothing_ready_that_is_not() -> Result<()> {
    let (tenant, gate) = gated("late").await?;
    let _running = told_parents(&tenant, &gate.url).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    let mut times = RecoveryTimes::new("watches told 30 s late", DELAY + RECOVERY_BOUND);
    for round in flip_rounds() {
        gate.set(GateRule::Late(DELAY));
        flip_all(&tenant, round).await?;
        gate.caught().await?;
        // What comes from now on is told at once, but not before what was late.
        gate.set(GateRule::Pass);
        times.add(until_told(&tenant, round).await?)?;
    }
    println!("{times}");
    each_was_told_once(&tenant, recorder).await
}

#[tokio::test]
async fn a_watch_that_breaks_off_in_the_middle_of_a_line_loses_nothing() -> Result<()> {
    let (tenant, gate) = gated("torn").await?;
    let _running = told_parents(&tenant, &gate.url).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    let mut times = RecoveryTimes::new("watches broken off in mid-line", RECOVERY_BOUND);
    for round in flip_rounds() {
        gate.set(GateRule::CutLines);
        flip_all(&tenant, round).await?;
        // More than once: a watch that goes on from where the one before broke off may break off there again.
        gate.caught().await?;
        gate.caught().await?;
        gate.set(GateRule::Pass);
        times.add(until_told(&tenant, round).await?)?;
    }
    println!("{times}");
    each_was_told_once(&tenant, recorder).await
}

#[tokio::test]
async fn what_flips_while_every_connection_is_reset_is_told() -> Result<()> {
    let tenant = TestTenant::start("reset").await?;
    define_shards(&tenant).await?;
    tenant.grant().await?;
    let proxy = HalfOpenProxy::open(tenant.plane.url()).await?;
    let _running = told_parents(&tenant, &proxy.url).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    let mut times = RecoveryTimes::new("every connection reset", RECOVERY_BOUND);
    for round in flip_rounds() {
        let connections = proxy.count_connections();
        // Before what flips, in the midst of it, and while it is told.
        for number in 0..PARENTS {
            proxy.reset_existing();
            set_ready(&tenant, number, status_in(round, number)).await?;
        }
        proxy.reset_existing();
        times.add(until_told(&tenant, round).await?)?;
        ensure!(proxy.count_connections() > connections, "nothing was reset");
    }
    println!("{times}");
    each_was_told_once(&tenant, recorder).await
}
