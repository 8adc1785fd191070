//! Hooks that nobody owns: Jobs that Helm or Argo CD runs and takes away again, remembered by a group.

use acceptance::expectation::{because, gone, mentions, says};
use acceptance::groups::TenantGroups as _;
use acceptance::objects::{deployment, job, playing};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::RollcallProcess;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

const RELEASE: [(&str, &str); 2] =
    [("app.kubernetes.io/managed-by", "Helm"), ("app.kubernetes.io/instance", "shop")];

/// A group of a release: its Deployments, and a hook by its name.
fn release_with_hook(limits: &Value) -> Value {
    let hook = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "shop-migrate" }]);
    json!({ "settle": "100ms", "limits": limits, "members": [
        { "kinds": [{ "group": "apps", "kind": "Deployment" }], "helmRelease": "shop" },
        { "objects": hook, "afterDeletion": "remember" },
    ] })
}

async fn tenant_with_group(word: &str, limits: &Value) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    let spec = release_with_hook(limits);
    let running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", spec.clone())]).await?;
    tenant.readiness_group("shop", spec).await?;
    tenant.until("ReadinessGroup/shop", because("Ready", "ChildrenMissing")).await?;
    let mut web = deployment("web", 1);
    web["metadata"]["labels"] =
        RELEASE.map(|(key, value)| (key.to_owned(), json!(value))).into_iter().collect();
    tenant.create(web).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    Ok((tenant, running))
}

/// A hook as Helm and Argo CD have it, which goes as soon as it has ended.
fn hook() -> Value {
    let mut hook = job("shop-migrate");
    hook["metadata"]["annotations"] = json!({
        "helm.sh/hook": "post-install,post-upgrade", "helm.sh/hook-delete-policy": "hook-succeeded",
        "argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/hook-delete-policy": "HookSucceeded",
    });
    hook["spec"]["ttlSecondsAfterFinished"] = json!(0);
    hook
}

#[tokio::test]
async fn a_hook_that_nobody_owns_is_remembered_by_its_group_through_a_kill() -> Result<()> {
    let (tenant, mut running) = tenant_with_group("hooks", &json!({})).await?;
    let recorder = StateRecorder::start(&tenant, &["ReadinessGroup"]).await?;
    tenant.create(hook()).await?;
    tenant.until("Job/shop-migrate", gone()).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    // What it remembers is in a record: the object itself is gone.
    tenant.until_listed("ReadinessRecord", &tenant.name, "").await?;
    running.kill()?;
    running.again().await?;
    running.until_ready().await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True")).await?;
    // The next run counts as it is, and its failure is kept as its success was.
    tenant.create(playing("fail", hook())).await?;
    tenant.until("Job/shop-migrate", gone()).await?;
    tenant
        .until(
            "ReadinessGroup/shop",
            because("Ready", "ChildrenFailed").and(mentions("Ready", "shop-migrate")),
        )
        .await?;
    let told = recorder.stop().await?.statuses(&tenant.address("ReadinessGroup/shop")?, "Ready");
    assert_eq!(told, ["False", "True", "False"]);
    // One that runs while nobody looks was not seen: its Events do not say for whom it ran.
    running.kill()?;
    tenant.create(hook()).await?;
    tenant.until("Job/shop-migrate", gone()).await?;
    running.again().await?;
    let unseen = because("Ready", "ChildrenUnknown").and(mentions("Ready", "its outcome was not observed"));
    tenant.until("ReadinessGroup/shop", unseen).await?;
    tenant.create(hook()).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_hook_that_hangs_in_deletion_is_named_with_the_owner_of_its_finalizer() -> Result<()> {
    let (tenant, _running) = tenant_with_group("hunghook", &json!({ "terminating": "3s" })).await?;
    let mut hung = hook();
    hung["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    tenant.create(hung).await?;
    let stuck = says("Stalled", "True").and(because("Ready", "ChildrenStuck")).and(mentions(
        "Ready",
        "shop-migrate stuck (finalizer argocd.argoproj.io/hook-finalizer (likely Argo CD)",
    ));
    tenant.until("ReadinessGroup/shop", stuck).await?;
    tenant.change("Job/shop-migrate", json!({ "metadata": { "finalizers": null } })).await?;
    tenant.until("Job/shop-migrate", gone()).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True")).await?;
    Ok(())
}
