//! In shadow everything is computed and shown, and nothing is written; where a parent says otherwise of itself is counted.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::objects::owned_by;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn a_parent_that_says_ready_of_itself_while_a_child_is_not_is_a_disagreement() -> Result<()> {
    let tenant = TestTenant::start("disagree").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let spec = json!({ "children": [tenant.child("Part")], "settle": "100ms", "mode": "shadow" });
    tenant.policy("site", "Site", spec).await?;
    let said = |status: &str, reason: &str| json!({ "conditions": [{ "type": "Ready", "status": status, "reason": reason }] });
    for name in ["loud", "silent"] {
        let parent = tenant.create(tenant.custom("Site", name)).await?;
        tenant.create(owned_by(&parent, tenant.custom("Part", name))).await?;
        tenant.change_status(&format!("Part/{name}"), said("False", "Starting")).await?;
    }
    // Its operator is done as soon as it has created its children; the other's says nothing at all.
    let loud = tenant.change_status("Site/loud", said("True", "Created")).await?;
    let running = tenant.rollcall(&[]).await?;
    let policy = format!("policy=\"{}\"", tenant.policy_name("site"));
    let disagreeing = async |enough: fn(f64) -> bool| {
        running.until_metric("rollcall_shadow_disagreements", &[&policy], enough).await
    };
    disagreeing(|n| (n - 1.0).abs() < 0.1).await?;
    // The operator learns to wait: only its own condition moves.
    tenant.change_status("Site/loud", said("False", "Waiting")).await?;
    disagreeing(|n| n < 0.1).await?;
    tenant.change_status("Site/loud", said("True", "Created")).await?;
    disagreeing(|n| (n - 1.0).abs() < 0.1).await?;
    tenant.change_status("Part/loud", said("True", "Up")).await?;
    disagreeing(|n| n < 0.1).await?;
    let after = tenant.until("Site/loud", says("Ready", "True")).await?;
    assert_eq!(after["status"]["conditions"], loud["status"]["conditions"]);
    let untouched = StateExpectation::new("without a word of ours", |site| site["status"].is_null());
    tenant.until("Site/silent", untouched).await?;
    Ok(())
}
