//! Rollcall's own definitions, deleted while it runs.

use std::sync::Arc;

use acceptance::caller::version_of;
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, has, mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::objects::{condition, owned_by};
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, apply_crds, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::outage::{define_shards, set_ready};

#[tokio::test]
async fn what_was_said_stands_and_is_kept_true_while_the_definition_of_policies_is_away() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane.clone(), "undefined").await?;
    define_shards(&tenant).await?;
    let running = tenant.rollcall(&[]).await?;
    for number in 0..3 {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, "True").await?;
    }
    let mut told = Vec::new();
    for number in 0..3 {
        told.push(tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?);
    }
    plane.kubectl(&["delete", "crd", "readinesspolicies.rollcall.dev"])?;
    running.until_printed("cannot confirm that the policy is deleted; it stays in force").await?;
    set_ready(&tenant, 1, "False").await?;
    tenant.until("Database/db-1", says("Ready", "False")).await?;

    // It comes back, and with it the policy; nothing turns but what turned.
    apply_crds(&tenant, &places::rollcall()?).await?;
    let spec = json!({ "children": [tenant.child("Shard")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    tenant.until_at(&policy_address(&tenant, "db")?, &says("Ready", "True")).await?;
    set_ready(&tenant, 2, "False").await?;
    tenant.until("Database/db-2", says("Ready", "False")).await?;
    let still = tenant.get("Database/db-0").await?;
    assert_eq!(version_of(&still), version_of(&told[0]), "{}", still["status"]);

    // A policy that somebody deletes is gone.
    tenant.admin.delete(&policy_address(&tenant, "db")?).await?;
    running.until_printed("the entries of a deleted policy are removed").await?;
    tenant.until("Database/db-0", has("Ready", false)).await?;
    Ok(())
}

/// A group of the objects of this kind that are part of a shop.
fn shop_of(tenant: &TestTenant, kind: &str) -> Value {
    let kinds = json!([tenant.child(kind)["kind"]]);
    json!({ "members": [{ "kinds": kinds, "labels": { "part-of": "shop" } }], "settle": "100ms" })
}

/// Lets an object say this of itself.
async fn say(tenant: &TestTenant, place: &str, status: &str) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
    tenant.change_status(place, json!({ "conditions": [entry] })).await?;
    Ok(())
}

/// Three Databases with a ready Shard each, two of which are of the shop, and so is a ready Book.
async fn create_shop(tenant: &TestTenant) -> Result<()> {
    let part_of = json!({ "part-of": "shop" });
    for number in 0..3 {
        let db = tenant.create(tenant.custom("Database", &format!("db-{number}"))).await?;
        let mut shard = tenant.custom("Shard", &format!("shard-{number}"));
        // From the start: what is changed once its parent was told looks to the recorder as if it came after that.
        if number < 2 {
            shard["metadata"]["labels"] = part_of.clone();
        }
        tenant.create(owned_by(&db, shard)).await?;
        set_ready(tenant, number, "True").await?;
    }
    let mut book = tenant.custom("Book", "atlas");
    book["metadata"]["labels"] = part_of;
    tenant.create(book).await?;
    say(tenant, "Book/atlas", "True").await?;
    Ok(())
}

#[tokio::test]
async fn without_the_definition_of_groups_all_else_is_kept_true_and_groups_that_come_back_are_told_again()
-> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane.clone(), "ungrouped").await?;
    define_shards(&tenant).await?;
    // Of Books nobody speaks but a group.
    tenant.crd(&CrdBuilder::new("Book")).await?;
    let groups = [("shards", shop_of(&tenant, "Shard")), ("books", shop_of(&tenant, "Book"))];
    let manifests = groups.iter().map(|(name, spec)| tenant.group_manifest(name, spec.clone()));
    let all: Vec<_> = tenant.policies().await?.into_iter().chain(manifests).collect();
    tenant.grant_for(&all)?;
    let running = tenant.rollcall_at(plane.url(), &[]).await?;
    running.until_ready().await?;
    create_shop(&tenant).await?;
    for (name, spec) in &groups {
        tenant.readiness_group(name, spec.clone()).await?;
        tenant.until(&format!("ReadinessGroup/{name}"), says("Ready", "True")).await?;
    }
    let mut told = Vec::new();
    for number in 0..3 {
        told.push(tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?);
    }
    let recorder = StateRecorder::start(&tenant, &["Database", "Shard"]).await?;

    plane.kubectl(&["delete", "crd", "readinessgroups.rollcall.dev"])?;
    for status in ["False", "True", "False"] {
        set_ready(&tenant, 1, status).await?;
        tenant.until("Database/db-1", says("Ready", status)).await?;
    }
    say(&tenant, "Book/atlas", "False").await?;

    apply_crds(&tenant, &places::rollcall()?).await?;
    for (name, spec) in &groups {
        let created = tenant.create(tenant.group_manifest(name, spec.clone())).await?;
        let first = condition(&created, "Ready").context("no first word")?;
        assert_eq!((&first["status"], &first["reason"]), (&json!("Unknown"), &json!("ChildrenPending")));
    }
    let not_ready = |name: &str| says("Ready", "False").and(mentions("Ready", name)).and(current("Ready"));
    tenant.until("ReadinessGroup/shards", not_ready("shard-1")).await?;
    tenant.until("ReadinessGroup/books", not_ready("atlas")).await?;
    say(&tenant, "Book/atlas", "True").await?;
    set_ready(&tenant, 1, "True").await?;
    for place in ["ReadinessGroup/shards", "ReadinessGroup/books", "Database/db-1"] {
        tenant.until(place, because("Ready", "AllChildrenReady")).await?;
    }
    let recording = recorder.stop().await?;
    for number in 0..3_u32 {
        let parent = tenant.address(&format!("Database/db-{number}"))?;
        recording.no_false_ready(&parent, "Ready", &[("Shard", 1)])?;
        if number != 1 {
            let still = tenant.get(&format!("Database/db-{number}")).await?;
            assert_eq!(version_of(&still), version_of(&told[number as usize]), "{}", still["status"]);
        }
    }
    Ok(())
}
