//! The API server goes away and comes back.

use std::sync::Arc;
use std::time::Duration;

use acceptance::caller::{ApiCaller, version_of};
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::gate::{ApiGate, GateRule};
use acceptance::half_open::HalfOpenProxy;
use acceptance::objects::{deployment, owned_by, playing};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A tenant whose Rollcall talks through a gate.
async fn gated(word: &str) -> Result<(TestTenant, ApiGate)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    Ok((tenant, gate))
}

#[tokio::test]
async fn it_waits_for_an_api_server_that_is_down_and_says_so() -> Result<()> {
    let (tenant, gate) = gated("down").await?;
    gate.set(GateRule::Down);
    let mut running = tenant.rollcall_at(&gate.url, &[]).await?;
    gate.caught().await?;
    gate.caught().await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    assert_eq!(running.http("/readyz").await?.code, 503);
    assert_eq!(running.http("/api/v1/parents").await?.code, 200, "nothing is known, and that is an answer");
    assert!(running.output().to_lowercase().contains("failed to"), "{}", running.output());
    gate.set(GateRule::Pass);
    running.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(running.terminate().await?.success());
    Ok(())
}

#[tokio::test]
async fn it_ends_on_sigterm_while_it_waits_for_the_api_server() -> Result<()> {
    let tenant = TestTenant::start("nobody").await?;
    tenant.apply_rights(&[])?;
    let free = acceptance::control_plane::free_ports(1)?[0];
    let mut running = tenant.rollcall_at(&format!("http://127.0.0.1:{free}"), &[]).await?;
    running.until_printed("failed to").await?;
    assert!(running.terminate().await?.success(), "{}", running.output());
    Ok(())
}

#[tokio::test]
async fn an_outage_is_no_news_about_children_and_what_happened_meanwhile_is_found() -> Result<()> {
    let (tenant, gate) = gated("outage").await?;
    let running = tenant.rollcall_at(&gate.url, &[]).await?;
    running.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let kept = tenant.create(tenant.custom("Database", "kept")).await?;
    tenant.create(owned_by(&kept, deployment("other", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let before = tenant.until("Database/kept", says("Ready", "True")).await?;

    gate.set(GateRule::Down);
    gate.caught().await?;
    tenant.play("web", Some("crash")).await?;
    tenant.until("Deployment/web", says("Available", "False")).await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    gate.set(GateRule::Pass);
    tenant.until("Database/db", says("Ready", "False")).await?;
    let after = tenant.get("Database/kept").await?;
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test]
async fn a_watch_that_lost_an_event_is_found_out_by_the_pass() -> Result<()> {
    let (tenant, gate) = gated("deaf").await?;
    let running = tenant.rollcall_at(&gate.url, &["--resync=2s"]).await?;
    running.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    gate.set(GateRule::Mute);
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    running.until_metric("rollcall_drift_total", &["found_by=\"resync\""], |count| count >= 1.0).await?;
    Ok(())
}

#[tokio::test]
async fn a_watch_that_has_lost_an_event_is_not_trusted_with_the_others() -> Result<()> {
    let (tenant, gate) = gated("half-deaf").await?;
    let running = tenant.rollcall_at(&gate.url, &["--resync=2s"]).await?;
    running.until_ready().await?;
    for (name, part) in [("slow", Some("hold")), ("quick", None)] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        let web = deployment(&format!("{name}-web"), 1);
        let web = part.into_iter().fold(web, |web, part| playing(part, web));
        tenant.create(owned_by(&db, web)).await?;
    }
    tenant.until("Database/slow", says("Ready", "False")).await?;
    tenant.until("Database/quick", says("Ready", "True")).await?;
    gate.set(GateRule::Mute);
    // Nobody reads the child of a parent that is ready; and that of the other one shows that the watch is deaf.
    tenant.play("quick-web", Some("crash")).await?;
    tenant.play("slow-web", None).await?;
    tenant.until("Database/slow", says("Ready", "True")).await?;
    tenant.until("Database/quick", says("Ready", "False")).await?;
    assert!(running.output().contains("the watch has lost events"), "{}", running.output());
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_is_killed_and_comes_back_moves_nothing_but_what_moved() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane.clone(), "killed").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _running = tenant.rollcall(&[]).await?;
    for number in 0..20 {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, "True").await?;
    }
    let mut before = Vec::new();
    for number in 0..20 {
        let db = tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
        before.push(version_of(&db));
    }
    plane.restart_api_server().await?;
    set_ready(&tenant, 7, "False").await?;
    tenant.until("Database/db-7", says("Ready", "False")).await?;
    for (number, version) in before.into_iter().enumerate().filter(|(number, _)| *number != 7) {
        let now = tenant.get(&format!("Database/db-{number}")).await?;
        assert_eq!(version_of(&now), version, "db-{number} was written: {}", now["status"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_restore_of_etcd_from_a_backup_is_followed_though_its_versions_were_seen_before() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane.clone(), "restored").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let running = tenant.rollcall(&[]).await?;
    for number in 0..3 {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, "True").await?;
    }
    for number in 0..3 {
        tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    plane.back_up().await?;

    // A history that will be gone.
    tenant.delete("Shard/shard-2").await?;
    tenant.delete("Database/db-2").await?;
    for status in ["False", "True", "False", "True"] {
        for number in 0..2 {
            set_ready(&tenant, number, status).await?;
            tenant.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
        }
    }
    plane.stop()?;
    running.until_metric("rollcall_watch_stale", &[], |kinds| kinds >= 2.0).await?;
    plane.restore().await?;

    for number in 1..3 {
        set_ready(&tenant, number, "False").await?;
    }
    for (number, status) in ["True", "False", "False"].into_iter().enumerate() {
        tenant.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
    }
    set_ready(&tenant, 2, "True").await?;
    tenant.until("Database/db-2", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_restore_within_seconds_is_found_where_nothing_is_read_but_the_servers_version() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane.clone(), "set-back").await?;
    define_shards(&tenant).await?;
    // Everything is ready, so that the pass reads nothing.
    let running = tenant.rollcall(&["--audit=0s"]).await?;
    for number in 0..2 {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, "True").await?;
        tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    plane.back_up().await?;
    // A history that will be gone, and longer than what follows.
    for status in ["False", "True", "False", "True", "False", "True"] {
        for number in 0..2 {
            set_ready(&tenant, number, status).await?;
            tenant.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
        }
    }
    plane.stop()?;
    plane.restore().await?;
    set_ready(&tenant, 1, "False").await?;
    let since = Instant::now();
    tenant.until("Database/db-1", says("Ready", "False")).await?;
    tenant.until("Database/db-0", says("Ready", "True")).await?;
    println!("told {:?} after the restore", since.elapsed());
    // Policies are listed again, too.
    let spec = json!({ "spec": { "condition": { "type": "Healthy" } } });
    tenant.admin.merge(&policy_address(&tenant, "db")?, "", &spec).await?;
    tenant.until("Database/db-0", says("Healthy", "True")).await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    Ok(())
}

/// Defines Databases over Shards, and a policy for them. Returns the definition of Shards, and where it is.
pub(crate) async fn define_shards(tenant: &TestTenant) -> Result<(Value, String)> {
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let shards = CrdBuilder::new("Shard").manifest(&tenant.group);
    tenant.define(&shards).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let name = shards["metadata"]["name"].as_str().context("a definition has a name")?;
    let place = format!("CustomResourceDefinition/{name}");
    Ok((shards, place))
}

/// Lets a Shard say this of itself.
pub(crate) async fn set_ready(tenant: &TestTenant, number: u32, status: &str) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
    tenant.change_status(&format!("Shard/shard-{number}"), json!({ "conditions": [entry] })).await?;
    Ok(())
}

/// Longest time until a flip is told that happens while every connection is half open.
const HALF_OPEN_BOUND: Duration = Duration::from_secs(45);
/// Flips in each of such outages.
const FLIPS: u32 = 7;

/// Flips of this many parents while every connection is half open, told one by one.
async fn flip_half_open(tenant: &TestTenant, status: &str, times: &mut RecoveryTimes) -> Result<()> {
    let mut flipped = Vec::new();
    for number in 0..FLIPS {
        set_ready(tenant, number, status).await?;
        flipped.push((number, Instant::now()));
    }
    let told = flipped.into_iter().map(async |(number, since)| {
        tenant.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
        Ok::<_, anyhow::Error>(since.elapsed())
    });
    futures::future::try_join_all(told).await?.into_iter().try_for_each(|took| times.add(took))
}

#[tokio::test]
async fn a_flip_behind_half_open_connections_is_told_in_seconds() -> Result<()> {
    let tenant = TestTenant::start("half-open").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    tenant.grant().await?;
    let proxy = HalfOpenProxy::open(tenant.plane.url()).await?;
    let running = tenant.rollcall_at(&proxy.url, &[]).await?;
    running.until_ready().await?;
    for number in 0..FLIPS {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, "True").await?;
    }
    for number in 0..FLIPS {
        tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    let mut times = RecoveryTimes::new("flips behind half-open connections", HALF_OPEN_BOUND);
    let mut said = vec!["True"];
    for round in 0..rounds(3) {
        let status = if round.is_multiple_of(2) { "False" } else { "True" };
        proxy.swallow_existing();
        flip_half_open(&tenant, status, &mut times).await?;
        said.push(status);
        let enough = f64::from(round + 1);
        running
            .until_metric("rollcall_connection_pool_replacements_total", &[], |count| count >= enough)
            .await?;
    }
    println!("{times}; {} connections", proxy.count_connections());
    let recording = recorder.stop().await?;
    for number in 0..FLIPS {
        let parent = tenant.address(&format!("Database/db-{number}"))?;
        assert_eq!(recording.statuses(&parent, "Ready"), said);
    }
    Ok(())
}

/// Longest time until all parents are told, once a definition and what it defines are there again.
const REBORN_BOUND: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_definition_that_is_deleted_and_applied_again_is_seen_again_in_seconds() -> Result<()> {
    let tenant = TestTenant::start("reborn").await?;
    let (shards, name) = define_shards(&tenant).await?;
    let running = tenant.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for number in 0..10 {
        parents.push(tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?);
    }
    let mut times = RecoveryTimes::new("definition deleted and applied again", REBORN_BOUND);
    for round in 0..=rounds(2) {
        if round > 0 {
            // Once, or a few times within seconds, and nobody waits until that is told.
            for _ in 0..=round % 3 {
                tenant.delete(&name).await?;
                tenant.until(&name, acceptance::expectation::gone()).await?;
                tenant.define(&shards).await?;
            }
            for number in 0..10 {
                tenant.until(&format!("Database/db-{number}"), says("Ready", "False")).await?;
            }
        }
        for (number, parent) in (0..).zip(&parents) {
            let shard = format!("shard-{number}");
            tenant.create(owned_by(parent, tenant.custom("Shard", &shard))).await?;
            set_ready(&tenant, number, "True").await?;
        }
        let created = Instant::now();
        for number in 0..10 {
            tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
        }
        // The first round is none: nothing was deleted yet.
        if round > 0 {
            times.add(created.elapsed())?;
        }
    }
    println!("{times}");
    let drift = running.output().lines().filter(|line| line.contains("drift")).count();
    assert!(drift <= 1, "{drift} lines about drift");
    Ok(())
}

/// Switches the version of a definition on or off, and waits until lists say so.
async fn serve_shards(tenant: &TestTenant, definition: &str, served: bool) -> Result<()> {
    let admin = tenant.plane.admin().await?;
    let switched = json!([{ "op": "replace", "path": "/spec/versions/0/served", "value": served }]);
    admin.json_patch(&tenant.address(definition)?, "", &switched).await?;
    while admin.list(&tenant.kind("Shard"), &tenant.name, "limit=1").await.is_ok() != served {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Parents whose children are of a version that is switched off and on.
const SWITCHED: u32 = 40;

#[tokio::test]
async fn a_version_that_is_switched_off_and_on_makes_no_parent_ready_and_leaves_none_behind() -> Result<()> {
    let tenant = TestTenant::start("unserved").await?;
    let (_, definition) = define_shards(&tenant).await?;
    let _running = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    for number in 0..SWITCHED {
        let parent = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        // The one that is not ready is there first: with the other alone, a parent would be ready.
        for (shard, status) in [(2 * number + 1, "False"), (2 * number, "True")] {
            tenant.create(owned_by(&parent, tenant.custom("Shard", &format!("shard-{shard}")))).await?;
            set_ready(&tenant, shard, status).await?;
        }
    }
    for number in 0..SWITCHED {
        tenant.until(&format!("Database/db-{number}"), says("Ready", "False")).await?;
    }
    for _ in 0..6 {
        serve_shards(&tenant, &definition, false).await?;
        // So long it was off where parents were told to be ready: long enough for a watch to end, and for a list to fail.
        tokio::time::sleep(Duration::from_secs(4)).await;
        serve_shards(&tenant, &definition, true).await?;
    }
    // The last list is through where this one is told.
    let marker = tenant.create(tenant.custom("Database", "marker")).await?;
    tenant.create(owned_by(&marker, tenant.custom("Shard", &format!("shard-{}", 2 * SWITCHED)))).await?;
    set_ready(&tenant, 2 * SWITCHED, "True").await?;
    tenant.until("Database/marker", says("Ready", "True")).await?;
    let before = recorder.stop().await?;
    for number in 0..SWITCHED {
        let parent = tenant.address(&format!("Database/db-{number}"))?;
        let said = before.statuses(&parent, "Ready");
        assert!(!said.contains(&"True".to_owned()), "{}", before.transcript(&parent, "Ready"));
        set_ready(&tenant, 2 * number + 1, "True").await?;
    }
    for number in 0..SWITCHED {
        tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    Ok(())
}
