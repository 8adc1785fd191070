//! The API server has no room: it answers 429, with a time after which to ask again, to reads and to writes.

use std::time::Duration;

use acceptance::caller::{ApiCaller, version_of};
use acceptance::expectation::{current, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::owned_by;
use acceptance::policies::policy_address;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};

use crate::outage::{define_shards, set_ready};

/// How long nothing is admitted. 70 s: watches are opened again every 60 to 90 s, so some are refused, too.
const THROTTLED_FOR: Duration = Duration::from_secs(70);
/// Most requests a second that a server costs that fails.
const REQUEST_RATE: f64 = 20.0;
/// Parents whose child fails meanwhile, whose child becomes ready, and to which nothing happens.
const FAILING: std::ops::Range<u32> = 0..6;
const RISING: std::ops::Range<u32> = 6..12;
const KEPT: std::ops::Range<u32> = 12..24;

fn parent(number: u32) -> String {
    format!("Database/db-{number}")
}

/// Longest time until all that turned is told, once everything is admitted again.
const RECOVERY_BOUND: Duration = Duration::from_secs(60);

/// What a parent says after so many rounds, in each of which what failed rises and what rose fails.
fn status_after(rounds: u32, number: u32) -> &'static str {
    let turned = if KEPT.contains(&number) { 0 } else { rounds };
    if (turned + u32::from(RISING.contains(&number))).is_multiple_of(2) { "True" } else { "False" }
}

/// All parents, told what they say at first by a Rollcall behind a gate.
async fn told_parents() -> Result<(TestTenant, ApiGate, RollcallProcess)> {
    let tenant = TestTenant::start("throttled").await?;
    define_shards(&tenant).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let running = tenant.rollcall_at(&gate.url, &[]).await?;
    running.until_ready().await?;
    for number in FAILING.start..KEPT.end {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, status_after(0, number)).await?;
    }
    until_told(&tenant, 0).await?;
    Ok((tenant, gate, running))
}

/// All parents say what they are to say after so many rounds.
async fn until_told(tenant: &TestTenant, rounds: u32) -> Result<()> {
    for number in FAILING.start..KEPT.end {
        tenant.until(&parent(number), says("Ready", status_after(rounds, number))).await?;
    }
    Ok(())
}

/// Nothing is admitted for a while, in which what is to turn turns. Returns how long it took to be told afterwards.
async fn turn_unadmitted(tenant: &TestTenant, gate: &ApiGate, round: u32) -> Result<Duration> {
    let (before, caught) = (versions(tenant).await?, gate.count_caught());
    gate.set(GateRule::Throttle(2));
    let since = Instant::now();
    // The watches stand: it knows at once, and may not say it.
    for number in FAILING.start..RISING.end {
        set_ready(tenant, number, status_after(round, number)).await?;
    }
    gate.caught().await?;
    sleep(THROTTLED_FOR).await;
    let (asked, time) = (gate.count_caught() - caught, since.elapsed());
    eprintln!("{asked} requests were refused in {time:.0?}");
    #[expect(clippy::cast_precision_loss, reason = "a number of requests")]
    let rate = asked as f64 / time.as_secs_f64();
    ensure!(rate <= REQUEST_RATE, "{rate:.1} requests a second");
    ensure!(versions(tenant).await? == before, "something was written all the same");
    gate.set(GateRule::Pass);
    let admitted = Instant::now();
    until_told(tenant, round).await?;
    Ok(admitted.elapsed())
}

#[tokio::test]
async fn a_minute_of_429_turns_nothing_and_all_is_told_once_afterwards() -> Result<()> {
    let mut times = RecoveryTimes::new("70 s of 429", RECOVERY_BOUND);
    // Each before a Rollcall of its own: a kind that is never seen between two of them is stale after two minutes, and rightly so.
    for _ in 0..rounds(1) {
        times.add(play_a_minute_of_429().await?)?;
    }
    println!("{times}");
    Ok(())
}

/// Returns how long it took until all was told.
async fn play_a_minute_of_429() -> Result<Duration> {
    let (tenant, gate, running) = told_parents().await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.until_at(&policy, &says("Ready", "True").and(current("Ready"))).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    let before = versions(&tenant).await?;

    let took = turn_unadmitted(&tenant, &gate, 1).await?;
    ensure!(running.http("/livez").await?.code == 200 && running.http("/readyz").await?.code == 200);
    // One that turns afterwards shows that what is recorded is all that was written.
    set_ready(&tenant, KEPT.start, "False").await?;
    tenant.until(&parent(KEPT.start), says("Ready", "False")).await?;
    each_was_told_once(&tenant, &recorder.stop().await?)?;
    let untouched = as_index(KEPT.start + 1)..;
    ensure!(versions(&tenant).await?[untouched.clone()] == before[untouched], "what was kept was written");
    tenant.until_at(&policy, &says("Ready", "True").and(current("Ready"))).await?;
    Ok(took)
}

/// What turned was told in one write, and nothing else was written.
fn each_was_told_once(tenant: &TestTenant, recording: &StateRecording) -> Result<()> {
    for number in FAILING.start..KEPT.end {
        let address = tenant.address(&parent(number))?;
        recording.no_false_ready(&address, "Ready", &[("Shard", 1)])?;
        let mut turns: Vec<_> = (0..=1).map(|round| status_after(round, number)).collect();
        turns.dedup();
        turns.extend((number == KEPT.start).then_some("False"));
        let transcript = recording.transcript(&address, "Ready");
        ensure!(recording.statuses(&address, "Ready") == turns, "{transcript}");
        ensure!(recording.said(&address, "Ready").len() == turns.len(), "{transcript}");
    }
    Ok(())
}

/// The versions of all parents.
async fn versions(tenant: &TestTenant) -> Result<Vec<u64>> {
    let mut versions = Vec::new();
    for number in FAILING.start..KEPT.end {
        versions.push(version_of(&tenant.get(&parent(number)).await?));
    }
    Ok(versions)
}

fn as_index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
