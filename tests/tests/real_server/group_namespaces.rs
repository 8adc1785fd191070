//! Groups with members in other namespaces.

use acceptance::expectation::{mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::objects::{deployment, playing};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

const PART_OF: &str = "app.kubernetes.io/part-of";

#[tokio::test]
async fn a_group_has_members_in_the_namespaces_that_are_opened_to_it_and_in_no_others() -> Result<()> {
    let platform = TestTenant::start("platform").await?;
    let (shop, bank) = (TestTenant::start("opened").await?, TestTenant::start("closed").await?);
    let of = |tenant: &TestTenant| {
        let kinds = json!([{ "group": "apps", "kind": "Deployment" }]);
        let member = json!({ "kinds": kinds, "labels": { PART_OF: "shop" }, "namespaces": [tenant.name] });
        json!({ "settle": "100ms", "members": [member] })
    };
    for tenant in [&shop, &bank] {
        let mut web = playing("hold", deployment("web", 1));
        web["metadata"]["labels"] = json!({ PART_OF: "shop" });
        tenant.create(web).await?;
    }
    platform.readiness_group("opened", of(&shop)).await?;
    platform.readiness_group("closed", of(&bank)).await?;
    platform.grant_for(&[platform.group_manifest("g", of(&shop))])?;
    let flag = format!("--group-namespaces={}={}", platform.name, shop.name);
    let running = platform.rollcall_at(platform.plane.url(), &[&flag]).await?;
    running.until_ready().await?;
    let web = format!("Deployment {}/web", shop.name);
    let held = says("Ready", "False").and(mentions("Ready", &web));
    platform.until("ReadinessGroup/opened", held).await?;
    shop.play("web", None).await?;
    let ready = says("Ready", "True").and(mentions("Ready", "1 of 1 ready"));
    platform.until("ReadinessGroup/opened", ready).await?;
    let flag = format!("--group-namespaces '{}={}'", platform.name, bank.name);
    platform.until("ReadinessGroup/closed", says("Ready", "Unknown").and(mentions("Ready", &flag))).await?;
    Ok(())
}
