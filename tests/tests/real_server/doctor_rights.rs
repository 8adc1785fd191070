//! `doctor`, for somebody who may not see everything.

use std::process::Command;

use acceptance::crd::CrdBuilder;
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

#[tokio::test]
async fn what_a_doctor_may_not_read_is_named_and_the_rest_is_told() -> Result<()> {
    let tenant = TestTenant::start("doctor-partly").await?;
    tenant.crd(&CrdBuilder::new("Listed")).await?;
    tenant.crd(&CrdBuilder::new("Other")).await?;
    let mut large = tenant.custom("Listed", "large");
    large["metadata"]["annotations"] =
        json!({ "kopf.zalando.org/last-handled-configuration": "x".repeat(240_000) });
    tenant.create(large).await?;
    // The rights of a service that was never told of Others, nor of StatefulSets.
    let narrow = json!({ "children": [tenant.child("Deployment")] });
    tenant.grant_for(&[tenant.policy_manifest("narrow", "Listed", narrow)])?;
    let own = tenant.kubeconfig(tenant.plane.url()).await?;
    let wide = json!({ "children": [tenant.child("Deployment"), tenant.child("StatefulSet")] });
    let policies =
        [tenant.policy_manifest("wide", "Listed", wide), tenant.policy_manifest("other", "Other", json!({}))];
    let file = tenant.policies_file(&policies)?;
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["doctor", "-o", "json", "-f", &file.to_string_lossy(), "-n", &tenant.name]);
    command.args(["--kubeconfig", &own.to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let err = String::from_utf8_lossy(&output.stderr);
    for what in ["StatefulSet.apps".to_owned(), format!("Other.{}", tenant.group)] {
        assert!(err.contains(&format!("not read: {what}: you may not list it")), "{what}: {err}");
    }
    assert!(!err.contains("not read: Listed") && !err.contains("not read: Deployment"), "{err}");
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).with_context(|| err.into_owned())?;
    let large = found.iter().find(|finding| {
        finding["check"] == "size"
            && finding["object"].as_str().is_some_and(|object| object.contains("large"))
    });
    assert_eq!(large.map(|finding| &finding["severity"]), Some(&json!("error")), "{found:#?}");
    assert_eq!(output.status.code(), Some(1), "there is an error, whatever else was not seen");
    Ok(())
}
