//! Objects that nobody should make, and that somebody will.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

async fn tenant_over(word: &str, child: &str) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let spec = json!({ "children": [tenant.child(child)], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    Ok(tenant)
}

#[tokio::test]
async fn a_child_as_large_as_the_server_takes_is_judged() -> Result<()> {
    let tenant = tenant_over("large", "Shard").await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    let mut running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut shard = tenant.custom("Shard", "large");
    shard["spec"]["blob"] = json!("x".repeat(1_400_000));
    tenant.create(owned_by(&db, shard)).await?;
    let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    tenant.change_status("Shard/large", ready).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(running.runs()?);
    Ok(())
}

#[tokio::test]
async fn ten_thousand_conditions_are_no_reason_to_stop() -> Result<()> {
    let tenant = tenant_over("many", "Shard").await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    let mut running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "many"))).await?;
    let mut entries: Vec<Value> =
        (0..9_999).map(|number| json!({ "type": format!("C{number}"), "status": "True" })).collect();
    entries.push(json!({ "type": "Ready", "status": "True" }));
    tenant.change_status("Shard/many", json!({ "conditions": entries })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    // The same on a parent: our entry goes beside the others.
    entries.pop();
    let crowded = tenant.create(tenant.custom("Database", "crowded")).await?;
    tenant.change_status("Database/crowded", json!({ "conditions": entries })).await?;
    let mut shard = tenant.custom("Shard", "small");
    shard["status"] = json!({});
    tenant.create(owned_by(&crowded, shard)).await?;
    tenant
        .change_status("Shard/small", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }))
        .await?;
    let now = tenant.until("Database/crowded", says("Ready", "True")).await?;
    let left = now["status"]["conditions"].as_array().context("no conditions")?;
    assert!(left.len() >= 10_000, "{} left", left.len());
    assert!(condition(&now, "C0").is_some() && condition(&now, "C9998").is_some());
    assert!(running.runs()?);
    Ok(())
}

#[tokio::test]
async fn an_object_of_two_hundred_levels_does_not_stop_its_kind() -> Result<()> {
    let tenant = tenant_over("deep", "Shard").await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    let mut running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "flat"))).await?;
    // Sent as text: what reads it here would itself give up at 128 levels.
    let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    let parent = acceptance::objects::owner_reference(&db);
    let text = format!(
        r#"{{"apiVersion":"{}/v1","kind":"Shard","metadata":{{"name":"deep","namespace":"{}","ownerReferences":[{parent}]}},"spec":{deep}}}"#,
        tenant.group, tenant.name
    );
    let path = tenant.kind("Shard").path(&tenant.name);
    let request =
        http::Request::post(path).header("content-type", "application/json").body(text.into_bytes())?;
    tenant.admin.client().request_text(request).await?;
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    for name in ["flat", "deep"] {
        let patch = json!({ "status": { "conditions": ready } });
        let path = format!("{}/{name}/status", tenant.kind("Shard").path(&tenant.name));
        let request = http::Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(serde_json::to_vec(&patch)?)?;
        tenant.admin.client().request_text(request).await?;
    }
    tenant.until("Database/db", says("Ready", "True")).await?;
    // Gone and listed anew: the list has the deep one in it, too.
    running.terminate().await?;
    running.again().await?;
    let other = tenant.create(tenant.custom("Database", "other")).await?;
    tenant.create(owned_by(&other, tenant.custom("Shard", "third"))).await?;
    tenant.change_status("Shard/third", json!({ "conditions": ready })).await?;
    tenant.until("Database/other", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_child_without_any_signal_is_unknown_and_named() -> Result<()> {
    let tenant = tenant_over("mute", "Shard").await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    let _running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "mute"))).await?;
    let unknown = says("Ready", "Unknown").and(because("Ready", "ChildrenUnknown"));
    tenant.until("Database/db", unknown.and(mentions("Ready", "Shard mute"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_child_that_hangs_in_deletion_names_who_holds_it() -> Result<()> {
    let tenant = TestTenant::start("hangs").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let limits = json!({ "terminating": "1s" });
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms", "limits": limits });
    tenant.policy("db", "Database", spec).await?;
    let _running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut web = deployment("web", 1);
    web["metadata"]["finalizers"] = json!(["example.com/backup"]);
    tenant.create(owned_by(&db, web)).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.delete("Deployment/web").await?;
    let stuck = says("Ready", "False").and(because("Ready", "ChildrenStuck"));
    let named = mentions("Ready", "example.com/backup");
    tenant.until("Database/db", stuck.and(named).and(says("Stalled", "True"))).await?;
    tenant.change("Deployment/web", json!({ "metadata": { "finalizers": null } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}
