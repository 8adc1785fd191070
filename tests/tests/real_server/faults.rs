//! Faults of a real etcd and a real API server beneath a fleet of parents, round after round. `ROLLCALL_FULL=1` plays twenty
//! rounds with 20,000 objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{gone, says};
use acceptance::objects::{condition, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recovery::{RecoveryTimes, is_full, rounds};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::outage::{define_shards, set_ready};

/// Longest time until a flip is told after a server is there again, or after the flip where that is later. Measured: 0 to 3 s.
const RECOVERY_BOUND: Duration = Duration::from_secs(30);
/// The same after many writes were refused: the pauses between attempts have grown to a minute.
const REFUSED_BOUND: Duration = Duration::from_secs(120);
/// How many times the memory at rest may be taken after all rounds.
const MEMORY_GROWTH: f64 = 1.5;

/// Parents with a child each, all of them ready, on a control plane of their own.
struct Fleet {
    tenant: TestTenant,
    rollcall: RollcallProcess,
    size: usize,
}

impl Fleet {
    async fn start(word: &str, size: usize, settle: &str, room: Option<u64>) -> Result<Fleet> {
        let plane = Arc::new(ControlPlane::start_with_room(ClusterParts::Storage, room).await?);
        let tenant = TestTenant::start_on(plane, word).await?;
        tenant.crd(&CrdBuilder::new("Database")).await?;
        tenant.crd(&CrdBuilder::new("Shard")).await?;
        let children = json!([tenant.child("Shard")]);
        tenant.policy("db", "Database", json!({ "children": children, "settle": settle })).await?;
        let rollcall = tenant.rollcall(&[]).await?;
        let fleet = Fleet { tenant, rollcall, size };
        futures::stream::iter((0..).take(size).map(|number| fleet.add_parent(number)))
            .buffer_unordered(16)
            .try_collect::<()>()
            .await?;
        while fleet.count_ready().await? < size {
            sleep(Duration::from_millis(200)).await;
        }
        Ok(fleet)
    }

    async fn add_parent(&self, number: u32) -> Result<()> {
        let db = self.tenant.create(self.tenant.custom("Database", &format!("db-{number}"))).await?;
        self.tenant.create(owned_by(&db, self.tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&self.tenant, number, "True").await
    }

    async fn parents(&self) -> Result<Vec<Value>> {
        Ok(self.tenant.admin.list(&self.tenant.kind("Database"), &self.tenant.name, "").await?.0)
    }

    async fn count_ready(&self) -> Result<usize> {
        let parents = self.parents().await?;
        Ok(parents
            .iter()
            .filter(|db| condition(db, "Ready").is_some_and(|said| said["status"] == "True"))
            .count())
    }

    /// Versions of all parents, by name.
    async fn versions(&self) -> Result<BTreeMap<String, String>> {
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let version = |db: &Value| {
            let meta = &db["metadata"];
            Ok((text(&meta["name"])?, text(&meta["resourceVersion"])?))
        };
        self.parents().await?.iter().map(version).collect()
    }

    /// Lets one child fail, as soon as the server takes it.
    async fn fail_child(&self, number: u32) -> Instant {
        while set_ready(&self.tenant, number, "False").await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
        Instant::now()
    }

    async fn until_told(&self, number: u32) -> Result<Instant> {
        let address = self.tenant.address(&format!("Database/db-{number}"))?;
        loop {
            let parent = self.tenant.admin.get(&address).await.ok().flatten().unwrap_or_default();
            if condition(&parent, "Ready").is_some_and(|said| said["status"] == "False") {
                return Ok(Instant::now());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// One round: a child fails before the fault, or after it, and its parent alone is written. Returns the time until it was
    /// told.
    async fn play_round(
        &self,
        round: u32,
        fault: &impl AsyncFn(&ControlPlane) -> Result<()>,
    ) -> Result<Duration> {
        let before = self.versions().await?;
        let flips_first = round.is_multiple_of(2);
        if flips_first {
            self.fail_child(round).await;
        }
        fault(&self.tenant.plane).await?;
        let mut begun = Instant::now();
        if !flips_first {
            begun = self.fail_child(round).await;
        }
        let took = self.until_told(round).await?.saturating_duration_since(begun);
        // What is needless would come with the lists that follow.
        sleep(Duration::from_secs(3)).await;
        let after = self.versions().await?;
        let moved: Vec<_> =
            after.iter().filter(|(name, version)| before.get(*name) != Some(*version)).collect();
        let flipped = format!("db-{round}");
        ensure!(
            moved.iter().all(|(name, _)| **name == flipped),
            "round {round}: written for nothing: {moved:?}"
        );
        ensure!(self.rollcall.http("/livez").await?.code == 200);
        Ok(took)
    }

    async fn memory(&self) -> Result<f64> {
        self.rollcall.metric("process_resident_memory_bytes", &[]).await
    }

    /// Plays so many rounds of a fault. Returns what was measured.
    async fn play_rounds(
        &self,
        what: &'static str,
        rounds: u32,
        fault: impl AsyncFn(&ControlPlane) -> Result<()>,
    ) -> Result<String> {
        let resting = self.memory().await?;
        let mut times = RecoveryTimes::new(what, RECOVERY_BOUND);
        for round in 0..rounds {
            times.add(self.play_round(round, &fault).await?)?;
        }
        let growth = self.memory().await? / resting;
        ensure!(growth <= MEMORY_GROWTH, "memory grew to {growth:.2} times that at rest");
        let objects = 2 * self.size;
        Ok(format!("{times}; {objects} objects, memory {growth:.2} × that before"))
    }
}

#[tokio::test]
async fn an_api_server_that_is_killed_beneath_a_fleet_moves_nothing_but_what_moved() -> Result<()> {
    let size = if is_full() { 10_000 } else { 500 };
    let fleet = Fleet::start("killed-fleet", size, "100ms", None).await?;
    let restart = async |plane: &ControlPlane| plane.restart_api_server().await;
    println!("{}", fleet.play_rounds("API server killed", rounds(2), restart).await?);
    Ok(())
}

#[tokio::test]
async fn an_etcd_that_stops_for_a_while_moves_nothing_but_what_moved() -> Result<()> {
    let size = if is_full() { 10_000 } else { 200 };
    let fleet = Fleet::start("etcd-stops", size, "100ms", None).await?;
    let stop = async |plane: &ControlPlane| {
        plane.etcd.pause()?;
        sleep(Duration::from_secs(15)).await;
        plane.etcd.resume()
    };
    println!("{}", fleet.play_rounds("etcd stopped for 15 s", rounds(2), stop).await?);
    Ok(())
}

#[tokio::test]
async fn an_etcd_that_is_killed_and_started_again_moves_nothing_but_what_moved() -> Result<()> {
    let size = if is_full() { 10_000 } else { 200 };
    let fleet = Fleet::start("etcd-killed", size, "100ms", None).await?;
    let kill = async |plane: &ControlPlane| {
        plane.etcd.kill()?;
        sleep(Duration::from_secs(5)).await;
        plane.etcd.again()?;
        plane.until_ready().await
    };
    println!("{}", fleet.play_rounds("etcd killed for 5 s", rounds(2), kill).await?);
    Ok(())
}

/// Room of an etcd that is full soon.
const LITTLE_ROOM: u64 = 24 << 20;

/// Fills the server's etcd with ConfigMaps from a number on, until it has stored so many bytes or takes no more. Returns the number
/// of the next one.
async fn fill_up(tenant: &TestTenant, from: usize, until: u64) -> Result<usize> {
    let text = "x".repeat(900_000);
    for number in from..1_000 {
        if tenant.plane.etcd.stored_bytes().await? >= until {
            return Ok(number);
        }
        let filler = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("filler-{number}"), "namespace": tenant.name }, "data": { "x": text } });
        if let Err(error) = tenant.admin.create(&filler).await {
            ensure!(format!("{error:#}").contains("space"), "refused for another reason: {error:#}");
            return Ok(number);
        }
    }
    anyhow::bail!("it is never full");
}

#[tokio::test]
async fn what_a_full_disk_refuses_is_told_once_there_is_room_again() -> Result<()> {
    let fleet = Fleet::start("disk-full", 50, "15s", Some(LITTLE_ROOM)).await?;
    let mut times = RecoveryTimes::new("disk full", REFUSED_BOUND);
    for round in 0..rounds(1) {
        times.add(fill_and_free(&fleet, 50 + round).await?)?;
    }
    println!("{times}");
    ensure!(fleet.count_ready().await? == 50 + usize::try_from(rounds(1))?, "nothing else has moved");
    Ok(())
}

/// A disk is full while one more parent of this number is to be told that it is ready, and has room again. Returns how long that took
/// to be told then.
async fn fill_and_free(fleet: &Fleet, number: u32) -> Result<Duration> {
    let (tenant, parent) = (&fleet.tenant, format!("Database/db-{number}"));
    let refused = async || fleet.rollcall.metric("rollcall_writes_total", &["outcome=\"error\""]).await;
    let at_first = refused().await.unwrap_or(0.0);
    let almost = fill_up(tenant, 0, LITTLE_ROOM - (4 << 20)).await?;
    // It is about to be told that it is ready.
    fleet.add_parent(number).await?;
    let fillers = fill_up(tenant, almost, u64::MAX).await?;
    let failed = |count: f64| count >= at_first + 3.0;
    fleet.rollcall.until_metric("rollcall_writes_total", &["outcome=\"error\""], failed).await?;
    let before = refused().await?;
    sleep(Duration::from_secs(10)).await;
    let during = refused().await? - before;
    ensure!(during <= 100.0, "{during} writes in ten seconds");
    ensure!(fleet.rollcall.http("/livez").await?.code == 200);
    let late = tenant.get(&parent).await?;
    ensure!(condition(&late, "Ready").is_none_or(|said| said["status"] != "True"), "{late}");
    ensure!(
        fleet.rollcall.output().contains("no space") || fleet.rollcall.output().contains("space exceeded")
    );

    for number in 0..fillers {
        tenant.delete(&format!("ConfigMap/filler-{number}")).await?;
    }
    tenant.plane.etcd.free_space().await?;
    let freed = Instant::now();
    tenant.until(&parent, says("Ready", "True")).await?;
    eprintln!("{during} refused writes in ten seconds");
    Ok(freed.elapsed())
}

#[tokio::test]
async fn a_definition_that_comes_and_goes_leaves_neither_memory_nor_descriptors_behind() -> Result<()> {
    let tenant = TestTenant::start("crd-churn").await?;
    let (shards, name) = define_shards(&tenant).await?;
    let running = tenant.rollcall(&[]).await?;
    let parent = tenant.create(tenant.custom("Database", "db")).await?;
    let mut first = None;
    let rounds = if is_full() { 100 } else { 3 };
    for round in 0..rounds {
        tenant.create(owned_by(&parent, tenant.custom("Shard", "shard-0"))).await?;
        set_ready(&tenant, 0, "True").await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
        tenant.delete(&name).await?;
        tenant.until(&name, gone()).await?;
        tenant.define(&shards).await?;
        tenant.until("Database/db", says("Ready", "False")).await?;
        if round == 1 {
            first = Some(usage(&running).await?);
        }
    }
    let (memory, descriptors) = first.context("there are more rounds")?;
    let (memory_now, descriptors_now) = usage(&running).await?;
    println!(
        "{rounds} rounds: memory {memory} to {memory_now} bytes, descriptors {descriptors} to {descriptors_now}"
    );
    ensure!(memory_now <= MEMORY_GROWTH * memory, "memory grew from {memory} to {memory_now}");
    ensure!(descriptors_now <= descriptors + 8.0, "{descriptors} descriptors became {descriptors_now}");
    Ok(())
}

/// Resident memory and open descriptors.
async fn usage(running: &RollcallProcess) -> Result<(f64, f64)> {
    let memory = running.metric("process_resident_memory_bytes", &[]).await?;
    Ok((memory, running.metric("process_open_fds", &[]).await?))
}
