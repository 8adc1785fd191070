//! The API server goes away and comes back.

use std::sync::Arc;

use acceptance::caller::{ApiCaller, version_of};
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::gate::{ApiGate, GateRule};
use acceptance::half_open::HalfOpenProxy;
use acceptance::objects::{condition, deployment, owned_by, playing};
use acceptance::recorder::StateRecorder;
use acceptance::scene::TestTenant;
use acceptance::wish::says;
use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// A scene whose Rollcall talks through a gate.
async fn gated(word: &str) -> Result<(TestTenant, ApiGate)> {
    let scene = TestTenant::set(word).await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([scene.child("Deployment")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    scene.grant().await?;
    let own = ApiCaller::from_kubeconfig(&scene.kubeconfig(scene.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    Ok((scene, gate))
}

#[tokio::test]
async fn it_waits_for_an_api_server_that_is_down_and_says_so() -> Result<()> {
    let (scene, gate) = gated("down").await?;
    gate.set(GateRule::Down);
    let mut running = scene.rollcall_at(&gate.url, &[]).await?;
    gate.caught().await?;
    gate.caught().await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    assert_eq!(running.http("/readyz").await?.code, 503);
    assert_eq!(running.http("/api/v1/parents").await?.code, 200, "nothing is known, and that is an answer");
    assert!(running.output().to_lowercase().contains("failed to"), "{}", running.output());
    gate.set(GateRule::Pass);
    running.until_ready().await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    assert!(running.terminate().await?.success());
    Ok(())
}

#[tokio::test]
async fn it_ends_on_sigterm_while_it_waits_for_the_api_server() -> Result<()> {
    let scene = TestTenant::set("nobody").await?;
    scene.apply_rights(&[])?;
    let free = acceptance::control_plane::free_ports(1)?[0];
    let mut running = scene.rollcall_at(&format!("http://127.0.0.1:{free}"), &[]).await?;
    running.until_printed("failed to").await?;
    assert!(running.terminate().await?.success(), "{}", running.output());
    Ok(())
}

#[tokio::test]
async fn an_outage_is_no_news_about_children_and_what_happened_meanwhile_is_found() -> Result<()> {
    let (scene, gate) = gated("outage").await?;
    let running = scene.rollcall_at(&gate.url, &[]).await?;
    running.until_ready().await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    let kept = scene.create(scene.custom("Database", "kept")).await?;
    scene.create(owned_by(&kept, deployment("other", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    let before = scene.until("Database/kept", says("Ready", "True")).await?;

    gate.set(GateRule::Down);
    gate.caught().await?;
    scene.play("web", Some("crash")).await?;
    scene.until("Deployment/web", says("Available", "False")).await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    gate.set(GateRule::Pass);
    scene.until("Database/db", says("Ready", "False")).await?;
    let after = scene.get("Database/kept").await?;
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test]
async fn a_watch_that_lost_an_event_is_found_out_by_the_pass() -> Result<()> {
    let (scene, gate) = gated("deaf").await?;
    let running = scene.rollcall_at(&gate.url, &["--resync=2s"]).await?;
    running.until_ready().await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    scene.until("Database/db", says("Ready", "False")).await?;
    gate.set(GateRule::Mute);
    scene.play("web", None).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    running.until_metric("rollcall_drift_total", &["found_by=\"resync\""], |count| count >= 1.0).await?;
    Ok(())
}

#[tokio::test]
async fn an_api_server_that_is_killed_and_comes_back_moves_nothing_but_what_moved() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let scene = TestTenant::set_on(plane.clone(), "killed").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    scene.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([scene.child("Shard")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _running = scene.rollcall(&[]).await?;
    for number in 0..20 {
        let db = scene.create(scene.custom("Database", &format!("db-{number}"))).await?;
        scene.create(owned_by(&db, scene.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&scene, number, "True").await?;
    }
    let mut before = Vec::new();
    for number in 0..20 {
        let db = scene.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
        before.push(version_of(&db));
    }
    plane.restart_api_server().await?;
    set_ready(&scene, 7, "False").await?;
    scene.until("Database/db-7", says("Ready", "False")).await?;
    for (number, version) in before.into_iter().enumerate().filter(|(number, _)| *number != 7) {
        let now = scene.get(&format!("Database/db-{number}")).await?;
        assert_eq!(version_of(&now), version, "db-{number} was written: {}", now["status"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_restore_of_etcd_from_a_backup_is_followed_though_its_versions_were_seen_before() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let scene = TestTenant::set_on(plane.clone(), "restored").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    scene.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([scene.child("Shard")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let running = scene.rollcall(&[]).await?;
    for number in 0..3 {
        let db = scene.create(scene.custom("Database", &format!("db-{number}"))).await?;
        scene.create(owned_by(&db, scene.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&scene, number, "True").await?;
    }
    for number in 0..3 {
        scene.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    plane.back_up().await?;

    // A history that will be gone.
    scene.delete("Shard/shard-2").await?;
    scene.delete("Database/db-2").await?;
    for status in ["False", "True", "False", "True"] {
        for number in 0..2 {
            set_ready(&scene, number, status).await?;
            scene.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
        }
    }
    plane.stop()?;
    running.until_metric("rollcall_watch_stale", &[], |kinds| kinds >= 2.0).await?;
    plane.restore().await?;

    for number in 1..3 {
        set_ready(&scene, number, "False").await?;
    }
    for (number, status) in ["True", "False", "False"].into_iter().enumerate() {
        scene.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
    }
    set_ready(&scene, 2, "True").await?;
    scene.until("Database/db-2", says("Ready", "True")).await?;
    Ok(())
}

async fn set_ready(scene: &TestTenant, number: u32, status: &str) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
    scene.change_status(&format!("Shard/shard-{number}"), json!({ "conditions": [entry] })).await?;
    Ok(())
}

/// Longest time, in seconds, until a flip is told that happens while every connection is half open.
const HALF_OPEN_BOUND: i64 = 45;
/// Flips in each of three such outages.
const FLIPS: u32 = 7;

#[tokio::test]
async fn a_flip_behind_half_open_connections_is_told_in_seconds() -> Result<()> {
    let scene = TestTenant::set("half-open").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    scene.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([scene.child("Shard")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    scene.grant().await?;
    let proxy = HalfOpenProxy::open(scene.plane.url()).await?;
    let running = scene.rollcall_at(&proxy.url, &[]).await?;
    running.until_ready().await?;
    for number in 0..FLIPS {
        let db = scene.create(scene.custom("Database", &format!("db-{number}"))).await?;
        scene.create(owned_by(&db, scene.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&scene, number, "True").await?;
    }
    for number in 0..FLIPS {
        scene.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    let recorder = StateRecorder::start(&scene, &["Database", "Shard"]).await?;
    let mut flipped = Vec::new();
    for (round, status) in ["False", "True", "False"].into_iter().enumerate() {
        proxy.swallow_existing();
        for number in 0..FLIPS {
            set_ready(&scene, number, status).await?;
        }
        flipped.push((Timestamp::now(), status));
        let mut told = 0;
        for number in 0..FLIPS {
            let parent = scene.until(&format!("Database/db-{number}"), says("Ready", status)).await?;
            told = told.max(transition_of(&parent)?);
        }
        let took = told - flipped[round].0.as_second();
        println!("round {round}: told after {took} s, {} connections so far", proxy.count_connections());
    }
    let recording = recorder.stop().await?;
    for number in 0..FLIPS {
        let parent = scene.address(&format!("Database/db-{number}"))?;
        assert_eq!(recording.statuses(&parent, "Ready"), ["True", "False", "True", "False"]);
        let mut told = recording.said(&parent, "Ready").into_iter().map(|said| said.entry);
        for (at, status) in &flipped {
            let entry = told.find(|entry| entry["status"] == *status).context("never told")?;
            let took = parse_time(&entry["lastTransitionTime"])?.as_second() - at.as_second();
            assert!(took <= HALF_OPEN_BOUND, "db-{number} was told {status} after {took} s");
        }
    }
    running.until_metric("rollcall_connection_pool_replacements_total", &[], |count| count >= 3.0).await?;
    Ok(())
}

fn parse_time(text: &Value) -> Result<Timestamp> {
    Ok(text.as_str().context("no time")?.parse()?)
}

/// When a parent's condition last turned, in seconds.
fn transition_of(parent: &Value) -> Result<i64> {
    let entry = condition(parent, "Ready").context("no condition")?;
    Ok(parse_time(&entry["lastTransitionTime"])?.as_second())
}

#[tokio::test]
async fn a_definition_that_is_deleted_and_applied_again_is_seen_again_in_seconds() -> Result<()> {
    let scene = TestTenant::set("reborn").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let shards = CrdBuilder::new("Shard").manifest(&scene.group);
    scene.define(&shards).await?;
    let children = json!([scene.child("Shard")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let running = scene.rollcall(&[]).await?;
    let name =
        format!("CustomResourceDefinition/{}", shards["metadata"]["name"].as_str().unwrap_or_default());
    let mut parents = Vec::new();
    for number in 0..10 {
        parents.push(scene.create(scene.custom("Database", &format!("db-{number}"))).await?);
    }
    for round in 0..3 {
        if round > 0 {
            scene.delete(&name).await?;
            scene.until(&name, acceptance::wish::gone()).await?;
            scene.define(&shards).await?;
            for number in 0..10 {
                scene.until(&format!("Database/db-{number}"), says("Ready", "False")).await?;
            }
        }
        for (number, parent) in (0..).zip(&parents) {
            let shard = format!("shard-{number}");
            scene.create(owned_by(parent, scene.custom("Shard", &shard))).await?;
            set_ready(&scene, number, "True").await?;
        }
        let created = Timestamp::now().as_second();
        let mut slowest = 0;
        for number in 0..10 {
            let parent = scene.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
            slowest = slowest.max(transition_of(&parent)? - created);
        }
        println!("round {round}: seen again after {slowest} s");
        assert!(slowest <= 15, "round {round}: seen again after {slowest} s");
    }
    let drift = running.output().lines().filter(|line| line.contains("drift")).count();
    assert!(drift <= 1, "{drift} lines about drift");
    Ok(())
}

/// Switches the version of a definition on or off, and waits until lists say so.
async fn serve_shards(scene: &TestTenant, definition: &str, served: bool) -> Result<()> {
    let admin = scene.plane.admin().await?;
    let switched = json!([{ "op": "replace", "path": "/spec/versions/0/served", "value": served }]);
    admin.json_patch(&scene.address(definition)?, "", &switched).await?;
    while admin.list(&scene.kind("Shard"), &scene.name, "limit=1").await.is_ok() != served {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_version_that_is_switched_off_and_on_makes_no_parent_ready_and_leaves_none_behind() -> Result<()> {
    let scene = TestTenant::set("unserved").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let shards = CrdBuilder::new("Shard").manifest(&scene.group);
    scene.define(&shards).await?;
    let children = json!([scene.child("Shard")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _running = scene.rollcall(&[]).await?;
    let definition =
        format!("CustomResourceDefinition/{}", shards["metadata"]["name"].as_str().unwrap_or_default());
    let recorder = StateRecorder::start(&scene, &["Database"]).await?;
    for number in 0..10 {
        let parent = scene.create(scene.custom("Database", &format!("db-{number}"))).await?;
        for (shard, status) in [(2 * number, "True"), (2 * number + 1, "False")] {
            scene.create(owned_by(&parent, scene.custom("Shard", &format!("shard-{shard}")))).await?;
            set_ready(&scene, shard, status).await?;
        }
    }
    for number in 0..10 {
        scene.until(&format!("Database/db-{number}"), says("Ready", "False")).await?;
    }
    for _ in 0..6 {
        serve_shards(&scene, &definition, false).await?;
        // So long it was off where parents were told to be ready: long enough for a watch to end, and for a list to fail.
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        serve_shards(&scene, &definition, true).await?;
    }
    let before = recorder.stop().await?;
    for number in 0..10 {
        let parent = scene.address(&format!("Database/db-{number}"))?;
        let said = before.statuses(&parent, "Ready");
        assert!(!said.contains(&"True".to_owned()), "{}", before.transcript(&parent, "Ready"));
        set_ready(&scene, 2 * number + 1, "True").await?;
    }
    for number in 0..10 {
        scene.until(&format!("Database/db-{number}"), says("Ready", "True")).await?;
    }
    Ok(())
}
