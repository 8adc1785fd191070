//! What the service shows and trusts is replaced while it runs: its token, and the certificate of the API server.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::json;

use crate::outage::set_ready;

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

/// The Shard fails and recovers: both are told, and nothing else since the recorder began.
async fn tells_each_turn_once(tenant: &TestTenant, recorder: StateRecorder) -> Result<()> {
    for status in ["False", "True"] {
        set_ready(tenant, 0, status).await?;
        tenant.until("Database/db", says("Ready", status)).await?;
    }
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    assert_eq!(recording.statuses(&parent, "Ready"), ["True", "False", "True"]);
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

    plane.replace_certificate().await?;
    // A session of TLS outlives the certificate. The next process knows none.
    plane.restart_api_server().await?;
    tenant.admin = plane.admin().await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;
    tells_each_turn_once(&tenant, recorder).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_is_replaced_in_its_file_and_the_one_before_is_nobodys() -> Result<()> {
    let tenant = with_policy(TestTenant::start("retokened").await?).await?;
    let mut tokens = Vec::new();
    for name in ["first", "second"] {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
        let secret = tenant.create(secret).await?;
        tokens.push(tenant.plane.token_bound_to(&tenant.name, "rollcall", &secret).await?);
    }
    let [first, second] = &tokens[..] else { unreachable!("two were asked for") };
    let file = tenant.folder.join("token");
    std::fs::write(&file, first)?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&kubeconfig)?)?;
    text["users"][0]["user"] = json!({ "tokenFile": file });
    std::fs::write(&kubeconfig, text.to_string())?;
    let running = tenant.rollcall_with(&kubeconfig, &[]).await?;
    running.until_ready().await?;
    create_ready(&tenant).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;

    std::fs::write(&file, second)?;
    tenant.delete("Secret/first").await?;
    tells_each_turn_once(&tenant, recorder).await?;
    running.until_metric("rollcall_watch_stale", &[], |kinds| kinds == 0.0).await.context("still blind")?;
    Ok(())
}
