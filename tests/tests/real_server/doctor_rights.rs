//! `doctor`, for somebody who may not see everything.

use std::process::Command;

use acceptance::crd::CrdBuilder;
use acceptance::scene::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

#[tokio::test]
async fn what_a_doctor_may_not_read_is_named_and_the_rest_is_told() -> Result<()> {
    let scene = TestTenant::set("doctor-partly").await?;
    scene.crd(&CrdBuilder::new("Listed")).await?;
    scene.crd(&CrdBuilder::new("Other")).await?;
    let mut large = scene.custom("Listed", "large");
    large["metadata"]["annotations"] =
        json!({ "kopf.zalando.org/last-handled-configuration": "x".repeat(240_000) });
    scene.create(large).await?;
    // The rights of a service that was never told of Others, nor of StatefulSets.
    let narrow = json!({ "children": [scene.child("Deployment")] });
    scene.grant_for(&[scene.policy_manifest("narrow", "Listed", narrow)])?;
    let own = scene.kubeconfig(scene.plane.url()).await?;
    let wide = json!({ "children": [scene.child("Deployment"), scene.child("StatefulSet")] });
    let policies =
        [scene.policy_manifest("wide", "Listed", wide), scene.policy_manifest("other", "Other", json!({}))];
    let file = scene.policies_file(&policies)?;
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["doctor", "-o", "json", "-f", &file.to_string_lossy(), "-n", &scene.name]);
    command.args(["--kubeconfig", &own.to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let err = String::from_utf8_lossy(&output.stderr);
    for what in ["StatefulSet.apps".to_owned(), format!("Other.{}", scene.group)] {
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
