//! Several releases over one kind, each for the parents that the policies with its labels choose.

use std::time::Duration;

use acceptance::caller::version_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
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

    // A policy that moves to the other release: what it says stays, and is taken back where none has it.
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

/// A policy of a release over all Databases.
fn database_policy(tenant: &TestTenant, name: &str, release: &str, child: &Value) -> Value {
    let spec = json!({ "children": [child], "settle": "100ms" });
    let mut policy = tenant.policy_manifest(name, "Database", spec);
    policy["metadata"]["labels"] = json!({ TENANT_LABEL: release });
    policy
}

#[tokio::test]
async fn where_two_releases_choose_the_same_parents_the_older_policy_rules_and_the_other_says_so()
-> Result<()> {
    let tenant = TestTenant::start("sharded-same").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let other = format!("{}-other", tenant.name);
    let mut two_shards = tenant.child("Shard");
    two_shards["expect"] = json!({ "min": 2 });
    // The first one installs the definitions.
    tenant
        .policy("old", "Database", json!({ "children": [tenant.child("Shard")], "settle": "100ms" }))
        .await?;
    tenant.admin.create(&database_policy(&tenant, "young", &other, &two_shards)).await?;
    tenant.grant().await?;
    let url = tenant.plane.url();
    let first = tenant.rollcall_at(url, &[]).await?;
    let selector = format!("--policy-selector={TENANT_LABEL}={other}");
    let second = tenant.rollcall_at(url, &[&selector, "--lease-name=other"]).await?;
    first.until_ready().await?;
    second.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "shard-0"))).await?;
    set_ready(&tenant, 0, "True").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let young = policy_address(&tenant, "young")?;
    let left = says("Conflicted", "True").and(mentions("Conflicted", &format!("{}/db (by ", tenant.name)));
    tenant
        .until_at(&young, &left.and(mentions("Conflicted", &format!("release {}/rollcall", tenant.name))))
        .await?;
    let told = tenant.until("Database/db", says("Ready", "True")).await?;
    tokio::time::sleep(LONG_ENOUGH).await;
    let now = tenant.get("Database/db").await?;
    assert_eq!(version_of(&now), version_of(&told), "it was written: {}", now["status"]);
    // It takes the parent over when the older one goes.
    tenant.admin.delete(&policy_address(&tenant, "old")?).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    Ok(())
}

#[tokio::test]
async fn what_got_labels_of_nobody_while_nothing_ran_is_taken_back_after_the_next_start() -> Result<()> {
    let tenant = TestTenant::start("sharded-left").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    tenant.policy("p", "Database", json!({ "children": [tenant.child("Shard")], "settle": "100ms" })).await?;
    tenant.grant().await?;
    let mut rollcall = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "shard-0"))).await?;
    set_ready(&tenant, 0, "True").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    rollcall.terminate().await?;
    let nobody = json!({ "metadata": { "labels": { TENANT_LABEL: "nobody" } } });
    let policy = policy_address(&tenant, "p")?;
    tenant.admin.merge(&policy, "", &nobody).await?;
    rollcall.again().await?;
    let bare = StateExpectation::new("released", |db: &Value| db["status"]["conditions"].is_null());
    tenant.until("Database/db", bare).await?;
    tenant.until_at(&policy, &because("Accepted", "NotSelected")).await?;
    let unclaimed = StateExpectation::new("unclaimed", |policy: &Value| {
        policy["status"]["acceptedBy"].as_object().is_none_or(serde_json::Map::is_empty)
    });
    tenant.until_at(&policy, &unclaimed).await?;
    Ok(())
}

/// A release that is told of its policies by a file, and another one that does not know these.
#[tokio::test]
async fn what_a_release_without_a_policy_in_the_cluster_says_is_taken_off_by_one_that_is_not_kept_out()
-> Result<()> {
    let tenant = TestTenant::start("sharded-file").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let spec = json!({ "children": [tenant.child("Shard")], "settle": "100ms" });
    let mut gold = spec.clone();
    gold["parent"] = json!({ "selector": { "matchLabels": { "tier": "gold" } } });
    tenant.policy("gold", "Database", gold).await?;
    tenant.grant().await?;
    let file = tenant.policies_file(&[tenant.policy_manifest("own", "Database", spec)])?;
    let file = format!("--policies={}", file.display());
    let url = tenant.plane.url();
    let mut own = tenant.rollcall_at(url, &[&file, "--lease-name=own"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "shard-0"))).await?;
    set_ready(&tenant, 0, "True").await?;
    let told = tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(own.terminate().await?.success());

    let kept_out = tenant.rollcall_at(url, &["--namespaces=elsewhere"]).await?;
    kept_out.until_ready().await?;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!(version_of(&tenant.get("Database/db").await?), version_of(&told));
    drop(kept_out);

    let _everywhere = tenant.rollcall_at(url, &[]).await?;
    let bare = StateExpectation::new("taken off", |db: &Value| db["status"]["conditions"].is_null());
    tenant.until("Database/db", bare).await?;
    Ok(())
}
