//! How many are enough, what does not count, and how long all must have been well; whose parents are only looked at.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::{condition, deployment, job, owned_by, owner_reference, pod};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A Database over Parts, which say of themselves what a test lets them say.
async fn over_parts(word: &str, group: &Value, more: &Value) -> Result<(TestTenant, RollcallProcess, Value)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let mut child = tenant.child("Part");
    merge(&mut child, group);
    let mut spec = json!({ "children": [child], "settle": "100ms" });
    merge(&mut spec, more);
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    Ok((tenant, running, db))
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

async fn part(tenant: &TestTenant, parent: &Value, name: &str) -> Result<()> {
    tenant.create(owned_by(parent, tenant.custom("Part", name))).await?;
    Ok(())
}

async fn say(tenant: &TestTenant, name: &str, kind: &str, status: &str) -> Result<()> {
    let said = json!({ "conditions": [{ "type": kind, "status": status, "reason": "Test" }] });
    tenant.change_status(&format!("Part/{name}"), said).await?;
    Ok(())
}

#[tokio::test]
async fn a_quorum_of_a_number_holds_whatever_becomes_of_the_rest_and_then_no_more() -> Result<()> {
    let (tenant, _running, db) = over_parts("two", &json!({ "quorum": 2 }), &json!({})).await?;
    for name in ["a", "b", "c"] {
        part(&tenant, &db, name).await?;
        say(&tenant, name, "Ready", "False").await?;
    }
    say(&tenant, "a", "Ready", "True").await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "of 3 not ready"))).await?;
    say(&tenant, "b", "Ready", "True").await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 3 ready"))).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    // What is left may progress, fail and go: the quorum holds, and nothing but True is said.
    for (kind, status) in [("Ready", "False"), ("Failed", "True"), ("Stalled", "True"), ("Ready", "False")] {
        say(&tenant, "c", kind, status).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    tenant.delete("Part/c").await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let parent = tenant.address("Database/db")?;
    let told = recorder.stop().await?.statuses(&parent, "Ready");
    ensure!(!told.is_empty() && told.iter().all(|status| status == "True"), "{told:?}");
    say(&tenant, "b", "Failed", "True").await?;
    let failed = because("Ready", "ChildrenFailed").and(mentions("Ready", "Part b"));
    tenant.until("Database/db", says("Ready", "False").and(failed)).await?;
    Ok(())
}

#[tokio::test]
async fn all_must_have_been_well_for_as_long_as_the_policy_holds() -> Result<()> {
    let (tenant, _running, db) = over_parts("held", &json!({}), &json!({ "hold": "3s" })).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    part(&tenant, &db, "a").await?;
    say(&tenant, "a", "Ready", "True").await?;
    tenant.until("Database/db", because("Ready", "ChildrenSettling")).await?;
    // A flap starts it over.
    say(&tenant, "a", "Ready", "False").await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    let again = Instant::now();
    say(&tenant, "a", "Ready", "True").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    ensure!(again.elapsed() >= Duration::from_millis(2_900), "{:?}", again.elapsed());
    let parent = tenant.address("Database/db")?;
    let told = recorder.stop().await?.statuses(&parent, "Ready");
    ensure!(told.iter().filter(|status| *status == "True").count() == 1, "{told:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_suspended_counts_for_neither_and_alone_it_is_not_enough() -> Result<()> {
    let tenant = TestTenant::start("suspended").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let few = |kind: &str| {
        let mut child = tenant.child(kind);
        child["expect"] = json!({ "min": 0 });
        child
    };
    let children = json!([few("Deployment"), few("Job")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut later = job("later");
    later["spec"]["suspend"] = json!(true);
    tenant.create(owned_by(&db, later)).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Job/later", says("Suspended", "True")).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 2 ready"))).await?;
    tenant.delete("Deployment/web").await?;
    let alone = says("Ready", "False").and(because("Ready", "ChildrenSuspended"));
    let said = tenant.until("Database/db", alone.and(mentions("Ready", "Job later"))).await?;
    ensure!(condition(&said, "Reconciling").is_none(), "nothing is under way: {}", said["status"]);
    tenant.change("Job/later", json!({ "spec": { "suspend": false } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    Ok(())
}

/// A policy over a kind whose status is not for others to write.
fn over(tenant: &TestTenant, name: &str, group: &str, kind: &str) -> Value {
    let mut policy = tenant.policy_manifest(name, "Database", json!({ "children": [tenant.child("Pod")] }));
    policy["spec"]["parent"] = json!({ "group": group, "kind": kind });
    policy
}

#[tokio::test]
async fn parents_whose_status_belongs_to_others_are_computed_and_their_policies_say_so() -> Result<()> {
    let tenant = TestTenant::start("others").await?;
    // What installs the kinds of Rollcall, and is not looked at.
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("none", "Database", json!({ "children": [tenant.child("Pod")] })).await?;
    let kinds = [
        ("built-in", "apps", "Deployment"),
        ("argocd", "argoproj.io", "Application"),
        ("flux", "kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("kro", "kro.run", "ResourceGraphDefinition"),
    ];
    for (name, group, kind) in kinds {
        tenant.admin.create(&over(&tenant, name, group, kind)).await?;
    }
    let running = tenant.rollcall(&[]).await?;
    let web = tenant.create(deployment("web", 1)).await?;
    let mut below = pod("below");
    below["metadata"]["ownerReferences"] = json!([owner_reference(&web)]);
    tenant.create(below).await?;
    for (name, _, kind) in kinds {
        let said =
            says("Accepted", "True").and(because("Accepted", "Shadow")).and(mentions("Accepted", kind));
        tenant
            .until_at(&policy_address(&tenant, name)?, &said.and(mentions("Accepted", "nothing is written")))
            .await?;
    }
    let policy = format!("policy=\"{}\"", tenant.policy_name("built-in"));
    running.until_metric("rollcall_parents", &[&policy, "verdict=\"Ready\""], |n| n > 0.5).await?;
    let web = tenant.get("Deployment/web").await?;
    ensure!(condition(&web, "Ready").is_none(), "{}", web["status"]);
    ensure!(running.metric("rollcall_writes_total", &[&policy]).await? < 0.5, "written");
    Ok(())
}

#[tokio::test]
async fn a_parent_in_the_middle_that_is_told_nothing_counts_with_what_is_known_of_it() -> Result<()> {
    let tenant = TestTenant::start("middle").await?;
    for kind in ["Platform", "Database", "Part"] {
        tenant.crd(&CrdBuilder::new(kind)).await?;
    }
    let below =
        |kind: &str, mode: &str| json!({ "children": [tenant.child(kind)], "settle": "100ms", "mode": mode });
    tenant.policy("top", "Platform", below("Database", "write")).await?;
    tenant.policy("middle", "Database", below("Part", "shadow")).await?;
    let _running = tenant.rollcall(&[]).await?;
    let platform = tenant.create(tenant.custom("Platform", "all")).await?;
    let db = tenant.create(owned_by(&platform, tenant.custom("Database", "db"))).await?;
    part(&tenant, &db, "a").await?;
    say(&tenant, "a", "Ready", "False").await?;
    let named = mentions("Ready", "Database db").and(mentions("Ready", "Part a"));
    tenant.until("Platform/all", says("Ready", "False").and(named)).await?;
    say(&tenant, "a", "Ready", "True").await?;
    tenant.until("Platform/all", says("Ready", "True")).await?;
    say(&tenant, "a", "Failed", "True").await?;
    tenant.until("Platform/all", because("Ready", "ChildrenFailed")).await?;
    let db = tenant.get("Database/db").await?;
    ensure!(db["status"].is_null(), "it is in shadow: {}", db["status"]);
    Ok(())
}
