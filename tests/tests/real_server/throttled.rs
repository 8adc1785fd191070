//! The API server has no room: it answers 429, with a time after which to ask again, to reads and to writes.

use std::time::Duration;

use acceptance::caller::{ApiCaller, version_of};
use acceptance::expectation::{current, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::owned_by;
use acceptance::policies::policy_address;
use acceptance::recorder::{StateRecorder, StateRecording};
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

/// What a parent says before.
fn status_at_first(number: u32) -> &'static str {
    if RISING.contains(&number) { "False" } else { "True" }
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
        set_ready(&tenant, number, status_at_first(number)).await?;
    }
    for number in FAILING.start..KEPT.end {
        tenant.until(&parent(number), says("Ready", status_at_first(number))).await?;
    }
    Ok((tenant, gate, running))
}

/// Lets what fails fail and what rises rise.
async fn turn_all(tenant: &TestTenant) -> Result<()> {
    for number in FAILING {
        set_ready(tenant, number, "False").await?;
    }
    for number in RISING {
        set_ready(tenant, number, "True").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_minute_of_429_turns_nothing_and_all_is_told_once_afterwards() -> Result<()> {
    let (tenant, gate, running) = told_parents().await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.until_at(&policy, &says("Ready", "True").and(current("Ready"))).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    let before = versions(&tenant).await?;

    gate.set(GateRule::Throttle(2));
    let since = Instant::now();
    // The watches stand: it knows at once, and may not say it.
    turn_all(&tenant).await?;
    gate.caught().await?;
    sleep(THROTTLED_FOR).await;
    let (asked, time) = (gate.count_caught(), since.elapsed());
    println!("{asked} requests were refused in {time:.0?}");
    #[expect(clippy::cast_precision_loss, reason = "a number of requests")]
    let rate = asked as f64 / time.as_secs_f64();
    ensure!(rate <= REQUEST_RATE, "{rate:.1} requests a second");
    ensure!(versions(&tenant).await? == before, "something was written all the same");
    ensure!(running.http("/livez").await?.code == 200 && running.http("/readyz").await?.code == 200);
    gate.set(GateRule::Pass);

    for number in FAILING {
        tenant.until(&parent(number), says("Ready", "False")).await?;
    }
    for number in RISING {
        tenant.until(&parent(number), says("Ready", "True")).await?;
    }
    // One that turns afterwards shows that what is recorded is all that was written.
    set_ready(&tenant, KEPT.start, "False").await?;
    tenant.until(&parent(KEPT.start), says("Ready", "False")).await?;
    each_was_told_once(&tenant, &recorder.stop().await?)?;
    let untouched = as_index(KEPT.start + 1)..;
    ensure!(versions(&tenant).await?[untouched.clone()] == before[untouched], "what was kept was written");
    tenant.until_at(&policy, &says("Ready", "True").and(current("Ready"))).await?;
    Ok(())
}

/// What turned was told in one write, and nothing else was written.
fn each_was_told_once(tenant: &TestTenant, recording: &StateRecording) -> Result<()> {
    for number in FAILING.start..KEPT.end {
        let address = tenant.address(&parent(number))?;
        recording.no_false_ready(&address, "Ready", &[("Shard", 1)])?;
        let turns = match number {
            number if RISING.contains(&number) => vec!["False", "True"],
            number if KEPT.start < number => vec!["True"],
            _ => vec!["True", "False"],
        };
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
