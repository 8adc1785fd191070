//! Rollcall's own definitions, deleted while it runs.

use std::sync::Arc;

use acceptance::caller::version_of;
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::expectation::says;
use acceptance::objects::owned_by;
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, apply_crds, policy_address};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

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
    assert!(tenant.get("Database/db-0").await?["status"]["conditions"].is_null());
    Ok(())
}
