//! What Flux makes of a parent by the expressions that are printed for it.

use std::fs;
use std::process::Command;

use acceptance::objects::condition;
use acceptance::policies::TenantPolicies as _;
use acceptance::tenant::TestTenant;
use acceptance::{peers, places};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::readers::{DEGRADED, flux_check, states};

/// Flux's own code and Rollcall's, over the same objects and the same expressions.
fn ask_flux(tenant: &TestTenant, check: &Value, of: &str) -> Result<()> {
    let states = states(&tenant.group, of);
    let objects: Vec<Value> = states.iter().map(|state| state.object.clone()).collect();
    let file = tenant.folder.join("objects.json");
    fs::write(&file, json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string())?;
    let (current, failed) =
        (check["current"].as_str().context("no current")?, check["failed"].as_str().context("no failed")?);
    let judged = Command::new(places::rollcall()?)
        .args([
            "eval",
            "-o",
            "json",
            "--profile",
            "flux",
            "--cel-current",
            current,
            "--cel-failed",
            failed,
            "-f",
        ])
        .arg(&file)
        .output()?;
    let judged: Vec<Value> = serde_json::from_slice(&judged.stdout)
        .with_context(|| String::from_utf8_lossy(&judged.stderr).into_owned())?;
    ensure!(judged.len() == states.len(), "{} judged of {}", judged.len(), states.len());
    let mut seen = [0; 3];
    for ((object, flux), judged) in objects.iter().zip(peers::flux(check, &objects)?).zip(judged) {
        let said = condition(object, of).cloned().unwrap_or_default();
        let stalled = condition(object, "Stalled").cloned().unwrap_or_default();
        let is_about_it = |said: &Value| said["observedGeneration"] == 2;
        let reason = said["reason"].as_str().unwrap_or_default();
        let has_failed = if of == "Ready" {
            is_about_it(&stalled)
        } else {
            is_about_it(&said) && DEGRADED.contains(&reason)
        };
        let is_ready = is_about_it(&said) && said["status"] == "True" && reason == "AllChildrenReady";
        let flux = flux.as_deref().unwrap_or("Unknown");
        match flux {
            "Failed" => ensure!(has_failed, "Flux: Failed: {object}"),
            "Current" => ensure!(is_ready && !has_failed, "Flux: Current: {object}"),
            _ => ensure!(!is_ready && !has_failed, "Flux: {flux}: {object}"),
        }
        seen[["Failed", "Current"].iter().position(|status| *status == flux).unwrap_or(2)] += 1;
        let as_flux = judged["profile"]["status"].as_str().unwrap_or("Unknown");
        ensure!(as_flux == flux, "rollcall eval: {judged}, Flux: {flux}: {object}");
    }
    ensure!(seen.iter().all(|count| *count > 0), "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn flux_reads_every_state_of_a_parent_by_the_expressions_that_are_printed_for_it() -> Result<()> {
    let tenant = TestTenant::start("flux-states").await?;
    for of in ["Ready", "example.com/All_Well.v1"] {
        let policy = tenant.policy_manifest("db", "Database", json!({ "condition": { "type": of } }));
        ask_flux(&tenant, &flux_check(&tenant, &[policy])?, of)?;
    }
    Ok(())
}
