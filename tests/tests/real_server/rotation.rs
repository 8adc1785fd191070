//! What the service shows and trusts is replaced while it runs: its token, and the certificate of the API server.

use std::sync::Arc;
use std::time::Duration;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::outage::set_ready;

/// Longest time until a flip is told after a certificate was replaced and the server is there again. The files are looked at every
/// 10 s, and a server that goes again and again within a minute is asked every 30 s.
const CERTIFICATE_BOUND: Duration = Duration::from_secs(90);
/// The same after a token was replaced: the file is read once a minute, and what was refused before is tried less and less often.
const TOKEN_BOUND: Duration = Duration::from_secs(120);

/// A tenant with a policy by which Shards are a Database's children, and the rights for it.
async fn with_policy(tenant: TestTenant) -> Result<TestTenant> {
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    tenant.grant().await?;
    Ok(tenant)
}

async fn create_ready(tenant: &TestTenant) -> Result<()> {
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(acceptance::objects::owned_by(&db, tenant.custom("Shard", "shard-0"))).await?;
    set_ready(tenant, 0, "True").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

/// The Shard fails and recovers: both are told, the first of them in the time that this returns.
async fn tell_both_turns(tenant: &TestTenant) -> Result<Duration> {
    let since = Instant::now();
    set_ready(tenant, 0, "False").await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let took = since.elapsed();
    set_ready(tenant, 0, "True").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(took)
}

/// Both turns of so many rounds were told since the recorder began, and nothing else.
async fn each_turn_was_told_once(tenant: &TestTenant, recorder: StateRecorder, rounds: u32) -> Result<()> {
    let recording = recorder.stop().await?;
    let mut turns = vec!["True"];
    turns.extend((0..rounds).flat_map(|_| ["False", "True"]));
    assert_eq!(recording.statuses(&tenant.address("Database/db")?, "Ready"), turns);
    Ok(())
}

#[tokio::test]
async fn the_certificate_of_the_server_is_replaced_and_what_is_opened_from_then_on_trusts_the_new_one()
-> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let mut tenant = with_policy(TestTenant::start_on(plane.clone(), "recertified").await?).await?;
    let running = tenant.rollcall_at(plane.url(), &[]).await?;
    running.until_ready().await?;
    create_ready(&tenant).await?;

    let mut times = RecoveryTimes::new("certificate of the server replaced", CERTIFICATE_BOUND);
    for _ in 0..rounds(1) {
        plane.replace_certificate().await?;
        // A session of TLS outlives the certificate. The next process knows none.
        plane.restart_api_server().await?;
        tenant.admin = plane.admin().await?;
        let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
        times.add(tell_both_turns(&tenant).await?)?;
        each_turn_was_told_once(&tenant, recorder, 1).await?;
    }
    println!("{times}");
    Ok(())
}

/// A token of Rollcall that ends with the Secret `token-ROUND`.
async fn token_of_round(tenant: &TestTenant, round: u32) -> Result<String> {
    let name = format!("token-{round}");
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
    let secret = tenant.create(secret).await?;
    tenant.plane.token_bound_to(&tenant.name, "rollcall", &secret).await
}

#[tokio::test]
async fn a_token_is_replaced_in_its_file_and_the_one_before_is_nobodys() -> Result<()> {
    let tenant = with_policy(TestTenant::start("retokened").await?).await?;
    let file = tenant.folder.join("token");
    std::fs::write(&file, token_of_round(&tenant, 0).await?)?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let mut text: Value = serde_json::from_slice(&std::fs::read(&kubeconfig)?)?;
    text["users"][0]["user"] = json!({ "tokenFile": file });
    std::fs::write(&kubeconfig, text.to_string())?;
    let running = tenant.rollcall_with(&kubeconfig, &[]).await?;
    running.until_ready().await?;
    create_ready(&tenant).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;

    let mut times = RecoveryTimes::new("token replaced and the one before refused", TOKEN_BOUND);
    for round in 1..=rounds(1) {
        std::fs::write(&file, token_of_round(&tenant, round).await?)?;
        tenant.delete(&format!("Secret/token-{}", round - 1)).await?;
        times.add(tell_both_turns(&tenant).await?)?;
    }
    println!("{times}");
    each_turn_was_told_once(&tenant, recorder, rounds(1)).await?;
    running.until_metric("rollcall_watch_stale", &[], |kinds| kinds == 0.0).await.context("still blind")?;
    Ok(())
}
