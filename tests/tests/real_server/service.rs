//! The process as an administrator meets it: listener, signals, generators.

use acceptance::crd::CrdBuilder;
use acceptance::objects::{deployment, owned_by, playing};
use acceptance::rollcall::rollcall;
use acceptance::scene::TestTenant;
use acceptance::wish::says;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn the_listener_tells_life_readiness_and_numbers() -> Result<()> {
    let scene = TestTenant::set("listener").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    scene.policy("db", "Database", spec).await?;
    let mut running = scene.rollcall(&[]).await?;
    assert_eq!(running.http("/livez").await?.code, 200);
    assert_eq!(running.http("/nothing").await?.code, 404);
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    scene.until("Database/db", says("Ready", "False")).await?;
    let policy = format!("policy=\"{}\"", scene.policy_name("db"));
    let name = "name=\"db\"";
    running.until_metric("rollcall_parent_not_ready_info", &[&policy, name], |n| n >= 1.0).await?;
    scene.play("web", None).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
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
    let scene = TestTenant::set("printed").await?;
    for (name, printed) in [("crd", rollcall(&["crd"])?), ("rbac", rollcall(&["rbac", "-n", &scene.name])?)] {
        let file = scene.folder.join(name);
        std::fs::write(&file, printed)?;
        let args = ["apply", "--dry-run=server", "--validate=strict", "-f", &file.to_string_lossy()];
        scene.plane.kubectl(&args)?;
    }
    Ok(())
}

#[tokio::test]
async fn an_uninstall_takes_all_entries_off() -> Result<()> {
    let scene = TestTenant::set("release").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    let policy = scene.policy("db", "Database", spec).await?;
    let mut running = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    assert!(running.terminate().await?.success());
    let file = scene.policies_file(&[policy])?;
    let kubeconfig = scene.kubeconfig(scene.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
    let left = scene.get("Database/db").await?;
    assert_eq!(left["status"], json!({}), "not even an empty list");
    Ok(())
}
