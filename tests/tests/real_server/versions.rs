//! Versions of a parent's kind that are not served any more, or never were.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::owned_by;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::json;

/// Lets the policy over this kind ask for its parents in this version.
async fn ask_for(tenant: &TestTenant, kind: &str, version: &str) -> Result<()> {
    let asked = json!({ "spec": { "parent": { "version": version } } });
    tenant.admin.merge(&policy_address(tenant, &kind.to_lowercase())?, "", &asked).await?;
    Ok(())
}

/// The same objects are served in another version: what stands on them can be taken back there.
#[tokio::test]
async fn a_true_is_taken_back_where_its_version_is_not_served_any_more_and_the_policy_says_why() -> Result<()>
{
    let tenant = TestTenant::start("versions").await?;
    let kinds = ["Retired", "Mistyped"];
    let mut definitions = Vec::new();
    for kind in kinds {
        let mut definition = CrdBuilder::new(kind).manifest(&tenant.group);
        let versions = definition["spec"]["versions"].as_array_mut().context("no versions")?;
        let mut older = versions[0].clone();
        (older["name"], older["storage"]) = (json!("v1beta1"), json!(false));
        versions.push(older);
        tenant.define(&definition).await?;
        definitions.push(format!(
            "CustomResourceDefinition/{}",
            definition["metadata"]["name"].as_str().unwrap_or_default()
        ));
        let children = json!([tenant.child("ConfigMap")]);
        let spec = json!({ "parent": { "version": "v1beta1" }, "children": children, "settle": "100ms" });
        tenant.policy(&kind.to_lowercase(), kind, spec).await?;
    }
    let _running = tenant.rollcall(&[]).await?;
    for kind in kinds {
        let parent = tenant.create(tenant.custom(kind, "x")).await?;
        let name = kind.to_lowercase();
        let child = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": tenant.name } });
        tenant.create(owned_by(&parent, child)).await?;
        tenant.until(&format!("{kind}/x"), says("Ready", "True")).await?;
    }
    let switched = json!([{ "op": "replace", "path": "/spec/versions/1/served", "value": false }]);
    tenant.plane.admin().await?.json_patch(&tenant.address(&definitions[0])?, "", &switched).await?;
    ask_for(&tenant, "Mistyped", "v9").await?;
    for kind in kinds {
        tenant.admin.delete(&tenant.address(&format!("ConfigMap/{}", kind.to_lowercase()))?).await?;
    }
    for (kind, reason) in [("Retired", "WatchStale"), ("Mistyped", "RuleChanged")] {
        let told = tenant.until(&format!("{kind}/x"), says("Ready", "Unknown")).await?;
        assert!(
            [reason, "WatchStale"].iter().any(|reason| told["status"].to_string().contains(reason)),
            "{told:#}"
        );
        let policy = policy_address(&tenant, &kind.to_lowercase())?;
        let served = format!("it is served as {}/v1, not in the version asked for", tenant.group);
        tenant.until_at(&policy, &because("Watching", "Stale").and(mentions("Watching", &served))).await?;
    }
    // As soon as the policy asks for what is served, all is as it should be.
    for kind in kinds {
        ask_for(&tenant, kind, "v1").await?;
        tenant
            .until(&format!("{kind}/x"), says("Ready", "False").and(because("Ready", "ChildrenMissing")))
            .await?;
    }
    Ok(())
}
