//! Policies that go while nothing runs, or whose entries are not all off their parents when the process dies.

use acceptance::caller::ApiCaller;
use acceptance::crd::CrdBuilder;
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::rollcall::policy_address;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, gone, has, says};
use anyhow::{Context, Result, bail, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Where what policies wrote is kept.
const INVENTORY: &str = "ConfigMap/rollcall-inventory";

/// A policy over Databases that have Deployments, and its uid.
async fn database_policy(scene: &TestTenant) -> Result<String> {
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    let policy = scene.policy("db", "Database", spec).await?;
    Ok(policy["metadata"]["uid"].as_str().context("a policy without a uid")?.to_owned())
}

async fn delete_policy(scene: &TestTenant) -> Result<()> {
    let policy = policy_address(scene, "db")?;
    scene.admin.delete(&policy).await?;
    scene.until_at(&policy, &gone()).await?;
    Ok(())
}

/// The inventory knows of exactly these policies.
fn keeps(uids: &[&str]) -> StateExpectation {
    let uids: Vec<String> = uids.iter().map(|&uid| uid.to_owned()).collect();
    StateExpectation::new(&format!("keeps {uids:?}"), move |map: &Value| {
        let kept = map["data"].as_object().map(|data| data.keys().cloned().collect::<Vec<_>>());
        kept.unwrap_or_default() == uids
    })
}

#[tokio::test]
async fn a_policy_that_is_deleted_while_nothing_runs_takes_its_entries_along_at_the_next_start() -> Result<()>
{
    let scene = TestTenant::set("unseen").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let uid = database_policy(&scene).await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let names: Vec<String> = (0..5).map(|n| format!("Database/db-{n}")).collect();
    for name in &names {
        scene.create(scene.custom("Database", name.trim_start_matches("Database/"))).await?;
        scene.until(name, has("Ready", true)).await?;
    }
    let neighbour = json!([
        { "op": "add", "path": "/status/conditions/0", "value": { "type": "Neighbour", "status": "True" } },
    ]);
    scene.admin.json_patch(&scene.address("Database/db-0")?, "/status", &neighbour).await?;
    scene.until(INVENTORY, keeps(&[&uid])).await?;
    rollcall.kill()?;
    delete_policy(&scene).await?;
    rollcall.again().await?;
    for name in &names {
        scene.until(name, has("Ready", false)).await?;
    }
    let left = scene.get("Database/db-0").await?;
    assert_eq!(left["status"]["conditions"], json!([{ "type": "Neighbour", "status": "True" }]));
    scene.until(INVENTORY, keeps(&[])).await?;
    rollcall
        .until_printed("policy was deleted unobserved; removing those of its entries that no policy writes")
        .await?;
    rollcall.until_printed("the entries of a deleted policy are removed").await?;
    Ok(())
}

#[tokio::test]
async fn a_kill_while_entries_are_removed_leaves_the_rest_to_the_next_start() -> Result<()> {
    let scene = TestTenant::set("halfway").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let uid = database_policy(&scene).await?;
    scene.grant().await?;
    let own = ApiCaller::from_kubeconfig(&scene.kubeconfig(scene.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let mut rollcall = scene.rollcall_at(&gate.url, &[]).await?;
    rollcall.until_ready().await?;
    let (early, late): (Vec<_>, Vec<_>) = (0..12)
        .map(|n| if n < 10 { format!("early-{n}") } else { format!("late-{n}") })
        .partition(|name| name.starts_with("early"));
    for name in early.iter().chain(&late) {
        scene.create(scene.custom("Database", name)).await?;
        scene.until(&format!("Database/{name}"), has("Ready", true)).await?;
    }
    scene.until(INVENTORY, keeps(&[&uid])).await?;
    let refused = StatusCode::SERVICE_UNAVAILABLE;
    gate.set(GateRule::Answer(Method::PATCH, "/databases/late-".to_owned(), refused));
    delete_policy(&scene).await?;
    for name in &early {
        scene.until(&format!("Database/{name}"), has("Ready", false)).await?;
    }
    rollcall.kill()?;
    for name in &late {
        let standing = scene.get(&format!("Database/{name}")).await?;
        ensure!(condition(&standing, "Ready").is_some(), "{name} was released before the kill");
    }
    scene.until(INVENTORY, keeps(&[&uid])).await?;
    gate.set(GateRule::Pass);
    rollcall.again().await?;
    for name in &late {
        scene.until(&format!("Database/{name}"), has("Ready", false)).await?;
    }
    scene.until(INVENTORY, keeps(&[])).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_that_is_created_again_while_nothing_runs_takes_its_entries_over_without_a_write()
-> Result<()> {
    let scene = TestTenant::set("again").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let first = database_policy(&scene).await?;
    let mut rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    let before = scene.until("Database/db", says("Ready", "True")).await?;
    scene.until(INVENTORY, keeps(&[&first])).await?;
    rollcall.kill()?;
    delete_policy(&scene).await?;
    let second = database_policy(&scene).await?;
    rollcall.again().await?;
    scene.until(INVENTORY, keeps(&[&second])).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    let after = scene.get("Database/db").await?;
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test]
async fn without_the_right_to_keep_it_everything_else_works_and_it_is_said() -> Result<()> {
    let scene = TestTenant::set("unkept").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    database_policy(&scene).await?;
    scene.grant().await?;
    let binding = format!("{}-rollcall-lease", scene.name);
    scene.plane.kubectl(&["delete", "rolebinding", &binding, "-n", &scene.name])?;
    let rollcall = scene.rollcall_at(scene.plane.url(), &[]).await?;
    rollcall.until_ready().await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    rollcall.until_printed("cannot keep the list of what policies wrote; everything else goes on").await?;
    let readyz = rollcall.http("/readyz").await?;
    let said = format!("ConfigMap {}/rollcall-inventory: not permitted to get it", scene.name);
    ensure!(readyz.code == 200 && readyz.body.contains(&said), "{}", readyz.body);
    delete_policy(&scene).await?;
    scene.until("Database/db", has("Ready", false)).await?;
    // Once it is granted it is kept.
    let uid = database_policy(&scene).await?;
    scene.grant().await?;
    scene.until(INVENTORY, keeps(&[&uid])).await?;
    // Not by a clock: it is told with the answer to that write, which is on its way.
    for _ in 0..1_000 {
        if !rollcall.http("/readyz").await?.body.contains("rollcall-inventory") {
            return Ok(());
        }
    }
    bail!("it is still said")
}
