//! Policies that go while nothing runs, or whose entries are not all off their parents when the process dies.

use acceptance::caller::ApiCaller;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, gone, has, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, bail, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Where what policies wrote is kept.
const INVENTORY: &str = "ConfigMap/rollcall-inventory";

/// A policy over Databases that have Deployments, and its uid.
async fn database_policy(tenant: &TestTenant) -> Result<String> {
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let policy = tenant.policy("db", "Database", spec).await?;
    Ok(policy["metadata"]["uid"].as_str().context("a policy without a uid")?.to_owned())
}

async fn delete_policy(tenant: &TestTenant) -> Result<()> {
    let policy = policy_address(tenant, "db")?;
    tenant.admin.delete(&policy).await?;
    tenant.until_at(&policy, &gone()).await?;
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
    let tenant = TestTenant::start("unseen").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let uid = database_policy(&tenant).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let names: Vec<String> = (0..5).map(|n| format!("Database/db-{n}")).collect();
    for name in &names {
        tenant.create(tenant.custom("Database", name.trim_start_matches("Database/"))).await?;
        tenant.until(name, has("Ready", true)).await?;
    }
    let neighbour = json!([
        { "op": "add", "path": "/status/conditions/0", "value": { "type": "Neighbour", "status": "True" } },
    ]);
    tenant.admin.json_patch(&tenant.address("Database/db-0")?, "/status", &neighbour).await?;
    tenant.until(INVENTORY, keeps(&[&uid])).await?;
    rollcall.kill()?;
    delete_policy(&tenant).await?;
    rollcall.again().await?;
    for name in &names {
        tenant.until(name, has("Ready", false)).await?;
    }
    let left = tenant.get("Database/db-0").await?;
    assert_eq!(left["status"]["conditions"], json!([{ "type": "Neighbour", "status": "True" }]));
    tenant.until(INVENTORY, keeps(&[])).await?;
    rollcall
        .until_printed("policy was deleted unobserved; removing those of its entries that no policy writes")
        .await?;
    rollcall.until_printed("the entries of a deleted policy are removed").await?;
    Ok(())
}

#[tokio::test]
async fn a_kill_while_entries_are_removed_leaves_the_rest_to_the_next_start() -> Result<()> {
    let tenant = TestTenant::start("halfway").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let uid = database_policy(&tenant).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let mut rollcall = tenant.rollcall_at(&gate.url, &[]).await?;
    rollcall.until_ready().await?;
    let (early, late): (Vec<_>, Vec<_>) = (0..12)
        .map(|n| if n < 10 { format!("early-{n}") } else { format!("late-{n}") })
        .partition(|name| name.starts_with("early"));
    for name in early.iter().chain(&late) {
        tenant.create(tenant.custom("Database", name)).await?;
        tenant.until(&format!("Database/{name}"), has("Ready", true)).await?;
    }
    tenant.until(INVENTORY, keeps(&[&uid])).await?;
    let refused = StatusCode::SERVICE_UNAVAILABLE;
    gate.set(GateRule::Answer(Method::PATCH, "/databases/late-".to_owned(), refused));
    delete_policy(&tenant).await?;
    for name in &early {
        tenant.until(&format!("Database/{name}"), has("Ready", false)).await?;
    }
    rollcall.kill()?;
    for name in &late {
        let standing = tenant.get(&format!("Database/{name}")).await?;
        ensure!(condition(&standing, "Ready").is_some(), "{name} was released before the kill");
    }
    tenant.until(INVENTORY, keeps(&[&uid])).await?;
    gate.set(GateRule::Pass);
    rollcall.again().await?;
    for name in &late {
        tenant.until(&format!("Database/{name}"), has("Ready", false)).await?;
    }
    tenant.until(INVENTORY, keeps(&[])).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_that_is_created_again_while_nothing_runs_takes_its_entries_over_without_a_write()
-> Result<()> {
    let tenant = TestTenant::start("again").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let first = database_policy(&tenant).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let before = tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.until(INVENTORY, keeps(&[&first])).await?;
    rollcall.kill()?;
    delete_policy(&tenant).await?;
    let second = database_policy(&tenant).await?;
    rollcall.again().await?;
    tenant.until(INVENTORY, keeps(&[&second])).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    let after = tenant.get("Database/db").await?;
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    Ok(())
}

#[tokio::test]
async fn without_the_right_to_keep_it_everything_else_works_and_it_is_said() -> Result<()> {
    let tenant = TestTenant::start("unkept").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    database_policy(&tenant).await?;
    tenant.grant().await?;
    let binding = format!("{}-rollcall-lease", tenant.name);
    tenant.plane.kubectl(&["delete", "rolebinding", &binding, "-n", &tenant.name])?;
    let rollcall = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    rollcall.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    rollcall.until_printed("cannot keep the list of what policies wrote; everything else goes on").await?;
    let readyz = rollcall.http("/readyz").await?;
    let said = format!("ConfigMap {}/rollcall-inventory: not permitted to get it", tenant.name);
    let remedy = format!("`rollcall rbac --records-namespace {} | kubectl apply -f -`", tenant.name);
    let body = &readyz.body;
    ensure!(readyz.code == 200 && body.contains(&said) && body.contains(&remedy), "{body}");
    delete_policy(&tenant).await?;
    tenant.until("Database/db", has("Ready", false)).await?;
    // Once it is granted it is kept.
    let uid = database_policy(&tenant).await?;
    tenant.grant().await?;
    tenant.until(INVENTORY, keeps(&[&uid])).await?;
    // Not by a clock: it is told with the answer to that write, which is on its way.
    for _ in 0..1_000 {
        if !rollcall.http("/readyz").await?.body.contains("rollcall-inventory") {
            return Ok(());
        }
    }
    bail!("it is still said")
}
