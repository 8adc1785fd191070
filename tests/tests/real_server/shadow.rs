//! In shadow everything is computed and shown, and nothing is written; where a parent says otherwise of itself is counted.

use acceptance::crd::CrdBuilder;
use acceptance::objects::owned_by;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, says};
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn a_parent_that_says_ready_of_itself_while_a_child_is_not_is_a_disagreement() -> Result<()> {
    let scene = TestTenant::set("disagree").await?;
    scene.crd(&CrdBuilder::new("Site")).await?;
    scene.crd(&CrdBuilder::new("Part")).await?;
    let spec = json!({ "children": [scene.child("Part")], "settle": "100ms", "mode": "shadow" });
    scene.policy("site", "Site", spec).await?;
    let said = |status: &str, reason: &str| json!({ "conditions": [{ "type": "Ready", "status": status, "reason": reason }] });
    for name in ["loud", "silent"] {
        let parent = scene.create(scene.custom("Site", name)).await?;
        scene.create(owned_by(&parent, scene.custom("Part", name))).await?;
        scene.change_status(&format!("Part/{name}"), said("False", "Starting")).await?;
    }
    // Its operator is done as soon as it has created its children; the other's says nothing at all.
    let loud = scene.change_status("Site/loud", said("True", "Created")).await?;
    let running = scene.rollcall(&[]).await?;
    let policy = format!("policy=\"{}\"", scene.policy_name("site"));
    let disagreeing = async |enough: fn(f64) -> bool| {
        running.until_metric("rollcall_shadow_disagreements", &[&policy], enough).await
    };
    disagreeing(|n| (n - 1.0).abs() < 0.1).await?;
    // The operator learns to wait: only its own condition moves.
    scene.change_status("Site/loud", said("False", "Waiting")).await?;
    disagreeing(|n| n < 0.1).await?;
    scene.change_status("Site/loud", said("True", "Created")).await?;
    disagreeing(|n| (n - 1.0).abs() < 0.1).await?;
    scene.change_status("Part/loud", said("True", "Up")).await?;
    disagreeing(|n| n < 0.1).await?;
    let after = scene.until("Site/loud", says("Ready", "True")).await?;
    assert_eq!(after["status"]["conditions"], loud["status"]["conditions"]);
    let untouched = StateExpectation::new("without a word of ours", |site| site["status"].is_null());
    scene.until("Site/silent", untouched).await?;
    Ok(())
}
