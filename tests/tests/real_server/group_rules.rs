//! Groups whose members have readiness rules of their own.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// A group of one Site, judged by this expression.
fn judged(tenant: &TestTenant, current: &str) -> Value {
    let objects = json!([{ "apiVersion": format!("{}/v1", tenant.group), "kind": "Site", "name": "shop" }]);
    json!({ "settle": "100ms", "members": [{ "objects": objects, "ready": { "cel": { "current": current } } }] })
}

#[tokio::test]
async fn a_member_is_judged_by_the_rule_of_its_group_and_a_rule_that_cannot_be_is_refused() -> Result<()> {
    let tenant = TestTenant::start("ruled").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    let serving = judged(&tenant, "status.phase == 'Serving'");
    let _running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", serving.clone())]).await?;
    tenant.create(tenant.custom("Site", "shop")).await?;
    tenant.change_status("Site/shop", json!({ "phase": "Moving" })).await?;
    tenant.readiness_group("site", serving).await?;
    tenant.until("ReadinessGroup/site", says("Ready", "False").and(mentions("Ready", "Site shop"))).await?;
    tenant.change_status("Site/shop", json!({ "phase": "Serving" })).await?;
    tenant.until("ReadinessGroup/site", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    tenant.change("ReadinessGroup/site", json!({ "spec": judged(&tenant, "status.phase ==") })).await?;
    let place = "spec.members[0].ready.cel.current: line 1, column ";
    tenant.until("ReadinessGroup/site", says("Ready", "Unknown").and(mentions("Ready", place))).await?;
    // The server itself refuses what its schema can say.
    for (ready, said) in [
        (json!({}), "exactly one of cel, lua, profile, rules"),
        (json!({ "rules": "argocd-cm" }), "only a ReadinessPolicy"),
        (json!({ "cel": { "current": "x".repeat(4_097) } }), "spec.members[0].ready.cel.current"),
    ] {
        let mut spec = judged(&tenant, "true");
        spec["members"][0]["ready"] = ready;
        let refused = tenant.readiness_group("refused", spec).await;
        assert!(refused.is_err_and(|error| format!("{error:#}").contains(said)), "{said}");
    }
    Ok(())
}
