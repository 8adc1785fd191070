//! The process as an administrator meets it: listener, signals, generators.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::objects::{deployment, owned_by, playing};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn the_listener_tells_life_readiness_and_numbers() -> Result<()> {
    let tenant = TestTenant::start("listener").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let mut running = tenant.rollcall(&[]).await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    assert_eq!(running.http("/nothing").await?.code, 404);
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    let policy = format!("policy=\"{}\"", tenant.policy_name("db"));
    let name = "name=\"db\"";
    running.until_metric("rollcall_parent_not_ready_info", &[&policy, name], |n| n >= 1.0).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    running.until_metric("rollcall_parents", &[&policy, "verdict=\"Ready\""], |n| n >= 1.0).await?;
    running.metric("rollcall_writes_total", &[&policy, "outcome=\"written\""]).await?;
    running.metric("rollcall_transitions_total", &[&policy, "to=\"True\""]).await?;
    running.metric("rollcall_build_info", &[]).await?;
    let gone = running.metric("rollcall_parent_not_ready_info", &[&policy, name]).await;
    assert!(gone.is_err(), "a ready parent still has a series: {gone:?}");
    assert!(running.terminate().await?.success());
    Ok(())
}

#[tokio::test]
async fn what_it_prints_for_the_cluster_is_what_the_server_takes() -> Result<()> {
    let tenant = TestTenant::start("printed").await?;
    for (name, printed) in [("crd", rollcall(&["crd"])?), ("rbac", rollcall(&["rbac", "-n", &tenant.name])?)]
    {
        let file = tenant.folder.join(name);
        std::fs::write(&file, printed)?;
        let args = ["apply", "--dry-run=server", "--validate=strict", "-f", &file.to_string_lossy()];
        tenant.plane.kubectl(&args)?;
    }
    Ok(())
}

#[tokio::test]
async fn an_uninstall_takes_all_entries_off() -> Result<()> {
    let tenant = TestTenant::start("release").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let policy = tenant.policy("db", "Database", spec).await?;
    let mut running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(running.terminate().await?.success());
    let file = tenant.policies_file(&[policy])?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
    let left = tenant.get("Database/db").await?;
    assert_eq!(left["status"], json!({}), "not even an empty list");
    Ok(())
}
