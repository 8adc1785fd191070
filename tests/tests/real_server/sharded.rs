//! Several releases over one kind, each for the parents that the policies with its labels choose.

use std::time::Duration;

use acceptance::caller::version_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::objects::owned_by;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::{TENANT_LABEL, TestTenant};
use anyhow::Result;
use serde_json::{Value, json};

use crate::outage::set_ready;

/// Time in which a release would take away what another one says. 8 s.
const LONG_ENOUGH: Duration = Duration::from_secs(8);

#[tokio::test]
async fn what_another_release_says_of_its_parents_of_the_same_kind_is_left_alone() -> Result<()> {
    let tenant = TestTenant::start("sharded").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let other = format!("{}-other", tenant.name);
    for (name, tier, release) in [("gold", "gold", &tenant.name), ("silver", "silver", &other)] {
        let spec = json!({ "children": [tenant.child("Shard")], "settle": "100ms" });
        let mut policy = tenant.policy_manifest(name, "Database", spec);
        policy["spec"]["parent"]["selector"] = json!({ "matchLabels": { "tier": tier } });
        policy["metadata"]["labels"] = json!({ TENANT_LABEL: release });
        if name == "gold" {
            // The first one installs the definitions.
            tenant.policy("first", "Database", json!({ "children": [tenant.child("Shard")] })).await?;
            tenant.admin.delete(&policy_address(&tenant, "first")?).await?;
        }
        tenant.admin.create(&policy).await?;
    }
    tenant.grant().await?;
    let url = tenant.plane.url();
    let first = tenant.rollcall_at(url, &[]).await?;
    let selector = format!("--policy-selector={TENANT_LABEL}={other}");
    let second = tenant.rollcall_at(url, &[&selector, "--lease-name=other"]).await?;
    first.until_ready().await?;
    second.until_ready().await?;
    for (number, tier) in [(0, "gold"), (1, "silver")] {
        let mut db = tenant.custom("Database", &format!("db-{number}"));
        db["metadata"]["labels"] = json!({ "tier": tier });
        let db = tenant.create(db).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", &format!("shard-{number}")))).await?;
        set_ready(&tenant, number, "True").await?;
    }
    let mut told = Vec::new();
    for number in 0..2 {
        told.push(tenant.until(&format!("Database/db-{number}"), says("Ready", "True")).await?);
    }
    tokio::time::sleep(LONG_ENOUGH).await;
    for (number, told) in told.iter().enumerate() {
        let now = tenant.get(&format!("Database/db-{number}")).await?;
        assert_eq!(version_of(&now), version_of(told), "db-{number} was written: {}", now["status"]);
    }

    // A policy that moves to the other release: what it says is taken back first, for none may have it, and then stays.
    let labels = json!({ "metadata": { "labels": { TENANT_LABEL: other } } });
    tenant.admin.merge(&policy_address(&tenant, "gold")?, "", &labels).await?;
    set_ready(&tenant, 0, "False").await?;
    tenant.until("Database/db-0", says("Ready", "False")).await?;
    let bare = StateExpectation::new("released", |db: &Value| db["status"]["conditions"].is_null());
    drop(second);
    let nobody = json!({ "metadata": { "labels": { TENANT_LABEL: "nobody" } } });
    let own = json!({ "metadata": { "labels": { TENANT_LABEL: tenant.name } } });
    tenant.admin.merge(&policy_address(&tenant, "gold")?, "", &own).await?;
    tenant.until("Database/db-0", says("Ready", "False")).await?;
    tenant.admin.merge(&policy_address(&tenant, "gold")?, "", &nobody).await?;
    tenant.until("Database/db-0", bare).await?;
    Ok(())
}
