//! What is wrong with a policy or a parent is named, and nobody else hears of it.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

async fn over(word: &str, group: Value) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let mut child = tenant.child("Deployment");
    for (key, value) in group.as_object().into_iter().flatten() {
        child[key] = value.clone();
    }
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    Ok(tenant)
}

#[tokio::test]
async fn a_rule_that_does_not_compile_is_refused_by_name_and_its_neighbour_goes_on() -> Result<()> {
    let tenant = over("odd-rule", json!({})).await?;
    tenant.grant().await?;
    let mut child = tenant.child("Deployment");
    child["ready"] = json!({ "cel": { "current": "frobnicate(1)" } });
    let spec = json!({ "children": [child], "condition": { "type": "Two" } });
    tenant.policy("odd", "Database", spec).await?;
    let rollcall = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    rollcall.until_ready().await?;
    let named = mentions("Accepted", "spec.children[0].ready.cel.current");
    let named = named.and(mentions("Accepted", "frobnicate"));
    tenant.until_at(&policy_address(&tenant, "odd")?, &says("Accepted", "False").and(named)).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let told = tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(condition(&told, "Two").is_none(), "{}", told["status"]);
    Ok(())
}

#[tokio::test]
async fn a_label_that_no_object_can_carry_is_said_of_that_parent_alone() -> Result<()> {
    let tenant =
        over("labels-odd", json!({ "find": { "labels": { "nick": "{parent.spec.nick}" } } })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let with = |name: &str, nick: Value| {
        let mut parent = tenant.custom("Database", name);
        parent["spec"]["nick"] = nick;
        parent
    };
    let mut web = deployment("web", 1);
    web["metadata"]["labels"] = json!({ "nick": "blue" });
    tenant.create(web).await?;
    tenant.create(with("good", json!("blue"))).await?;
    for (name, nick) in [
        ("spaces", json!("not a label")),
        ("long", json!("x".repeat(64))),
        ("markup", json!("<b>")),
        ("list", json!(["blue"])),
    ] {
        tenant.create(with(name, nick)).await?;
        let part = if name == "list" { "spec.nick" } else { "find.labels" };
        let named = because("Ready", "TemplateFailed").and(mentions("Ready", part));
        tenant.until(&format!("Database/{name}"), says("Ready", "Unknown").and(named)).await?;
    }
    tenant.until("Database/good", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_path_that_leads_to_a_text_is_said_of_that_parent_alone() -> Result<()> {
    let tenant = over("refs-odd", json!({ "find": { "refs": "spec.resourceRefs[*]" } })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(deployment("web", 1)).await?;
    for (name, refs) in [
        ("good", json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }])),
        ("text", json!("web")),
        ("number", json!(7)),
        ("texts", json!(["web"])),
        ("nameless", json!([{ "apiVersion": "apps/v1", "kind": "Deployment" }])),
    ] {
        let mut parent = tenant.custom("Database", name);
        parent["spec"]["resourceRefs"] = refs;
        tenant.create(parent).await?;
    }
    for name in ["text", "number", "texts"] {
        let named = because("Ready", "TemplateFailed").and(mentions("Ready", "spec.resourceRefs[*]"));
        tenant.until(&format!("Database/{name}"), says("Ready", "Unknown").and(named)).await?;
    }
    // What has no name yet may get one: that is no mistake, and nothing to be ready with.
    tenant.until("Database/nameless", because("Ready", "ChildrenMissing")).await?;
    tenant.until("Database/good", says("Ready", "True")).await?;
    Ok(())
}

/// An hour is far beyond every limit: what is being deleted would be stuck at once, and what the condition says would be dated
/// so. The server's own clock is what counts.
/// Nobody has handled these, and their children are ready: what is left of Kopf on them is all that tells so.
#[tokio::test]
async fn a_note_of_kopf_that_cannot_be_read_is_named_and_is_no_reason_to_be_ready() -> Result<()> {
    let tenant = TestTenant::start("kopf-odd").await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    // Nothing is learned from neighbours here: each says for itself what it says.
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms", "evidence": "own" });
    tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let long = json!({ "started": "2026-01-01T00:00:00", "retries": 1, "message": "x".repeat(200_000) });
    let cases = [
        ("mark", "last-handled-configuration", "not json".to_owned(), "cannot be read"),
        ("note", "create_fn", "[".to_owned(), "kopf.zalando.org/create_fn cannot be read"),
        ("long", "create_fn", long.to_string(), "handler create_fn is retrying: xxx"),
    ];
    for (name, note, text, _) in &cases {
        let mut db = tenant.custom("Database", name);
        db["metadata"]["annotations"] = json!({ (format!("kopf.zalando.org/{note}")): text });
        let db = tenant.create(db).await?;
        tenant.create(owned_by(&db, deployment(&format!("{name}-web"), 1))).await?;
    }
    // One that says nothing at all is ready by its children, so that the others have had their time.
    let plain = tenant.create(tenant.custom("Database", "plain")).await?;
    for (name, .., named) in &cases {
        tenant.until(&format!("Deployment/{name}-web"), says("Available", "True")).await?;
        let pending = says("Ready", "Unknown").and(because("Ready", "ChildrenPending"));
        tenant.until(&format!("Database/{name}"), pending.and(mentions("Ready", named))).await?;
    }
    tenant.create(owned_by(&plain, deployment("plain-web", 1))).await?;
    tenant.until("Database/plain", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    for (name, ..) in &cases {
        let parent = tenant.address(&format!("Database/{name}"))?;
        let said = recording.said(&parent, "Ready");
        ensure!(
            said.iter().all(|s| s.entry["status"] != "True"),
            "{}",
            recording.transcript(&parent, "Ready")
        );
    }
    tenant.change("Database/mark", json!({ "metadata": { "annotations": null } })).await?;
    tenant.until("Database/mark", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn fifty_thousand_children_of_one_parent_are_one_answer() -> Result<()> {
    let full = acceptance::recovery::is_full();
    let count = if full { 50_000 } else { 3_000 };
    let tenant = TestTenant::start("crowd").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    // Without a subresource an object brings its status along.
    tenant.crd(&CrdBuilder::new("Shard").shapeless().without_status_subresource()).await?;
    let mut child = tenant.child("Shard");
    child["expect"] = json!({ "min": count });
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let shard = |number: usize| {
        let mut shard = owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")));
        shard["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        tenant.create(shard)
    };
    stream::iter(0..count).map(shard).buffer_unordered(32).try_collect::<Vec<_>>().await?;
    let all = format!("{count} of {count} ready");
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", &all))).await?;
    let failing = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    for number in [7, count - 1] {
        tenant.change(&format!("Shard/shard-{number}"), failing.clone()).await?;
    }
    let two = mentions("Ready", &format!("2 of {count} not ready")).and(mentions("Ready", "shard-7"));
    let told = tenant.until("Database/db", says("Ready", "False").and(two)).await?;
    let size = serde_json::to_string(&told["status"])?.len();
    ensure!(size < 4_096, "the status takes {size} bytes");
    let resident = rollcall.metric("process_resident_memory_bytes", &[]).await?;
    println!("{count} children: status {size} bytes, Rollcall {:.0} MB", resident / 1e6);
    Ok(())
}
