//! More guides, followed to the letter.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, gone, says, there};
use acceptance::guide::{GuidedSteps, InlineCommands};
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::places;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::guides::installed;

/// A cluster of its own, with the names that the guides use: `default`, example.com, the repository's folders at hand.
pub(super) async fn reader(parts: ClusterParts, word: &str, group: &str) -> Result<TestTenant> {
    let plane = Arc::new(ControlPlane::start(parts).await?);
    let mut tenant = TestTenant::start_on(plane, word).await?;
    group.clone_into(&mut tenant.group);
    "default".clone_into(&mut tenant.name);
    for folder in ["deploy", "dashboards"] {
        std::os::unix::fs::symlink(places::repository().join(folder), tenant.folder.join(folder))?;
    }
    Ok(tenant)
}

#[tokio::test]
async fn kopf_and_argo_cd_from_start_to_end() -> Result<()> {
    let tenant = reader(ClusterParts::Everything, "kopf-guide", "shop.example.com").await?;
    tenant.until("ServiceAccount/default", there()).await?;
    let service = installed(&tenant).await?;
    tenant.plane.kubectl(&["create", "namespace", "argocd"])?;
    tenant.plane.kubectl(&["create", "configmap", "argocd-cm", "-n", "argocd"])?;
    let mut guide = GuidedSteps::open("deploy/guides/kopf-argocd.md")?;
    guide.follow(&tenant, "kubectl apply --server-side")?;
    // No kubelet runs the operator's pod: it runs here, as its service account.
    let token = tenant.plane.token_of("shop-system", "shop-operator").await?;
    let kubeconfig = tenant.folder.join("operator.kubeconfig");
    tenant.plane.kubeconfig_for(&kubeconfig, tenant.plane.url(), &token, "default")?;
    let script = places::repository().join("deploy/examples/kopf/shop_operator.py");
    let operator = tenant.operator("operator", KopfVersion::Current, &script, &kubeconfig, &[])?;
    guide.follow(&tenant, "kubectl apply -f").with_context(|| service.tail(40))?;
    guide.follow(&tenant, "rollcall tree").with_context(|| service.tail(40))?;
    guide.is_done()?;
    InlineCommands::of("deploy/guides/kopf-argocd.md")?.type_in(&tenant, "rollcall doctor", &[])?;
    let sentences = InlineCommands::of("deploy/examples/kopf/README.md")?;
    let script = sentences.type_in(
        &tenant,
        "rollcall health-lua -f policies.yaml",
        &[("-f ", "-f deploy/examples/kopf/")],
    )?;
    ensure!(script.contains("shop.example.com_Shop"), "no script for a Shop: {script}");
    // The example's own page says the same, shorter, and how the operator is run from one's own machine.
    drop(operator);
    let own = [("shop_operator.py", "deploy/examples/kopf/shop_operator.py")];
    let operator = sentences.start(&tenant, "kopf run -A shop_operator.py", &own)?;
    tenant.delete("Shop/books").await?;
    // With all that was its own: the next one by that name has children of the same names.
    for left in [
        "Shop/books",
        "Deployment/books-web",
        "Job/books-setup",
        "Store/books-store",
        "StatefulSet/books-store",
    ] {
        tenant.until(left, gone()).await.with_context(|| operator.tail(40))?;
    }
    let mut guide = GuidedSteps::open("deploy/examples/kopf/README.md")?;
    guide.follow(&tenant, "kubectl apply --server-side").with_context(|| operator.tail(40))?;
    guide.is_done()
}

#[tokio::test]
async fn beside_crossplane_a_condition_of_its_own() -> Result<()> {
    let tenant = reader(ClusterParts::Storage, "crossplane-guide", "example.org").await?;
    let service = installed(&tenant).await?;
    tenant.crd(&CrdBuilder::new("XDatabase")).await?;
    let composite = tenant.create(tenant.custom("XDatabase", "orders")).await?;
    let theirs = json!({
        "type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    tenant.change_status("XDatabase/orders", json!({ "conditions": [theirs] })).await?;
    tenant.create(owned_by(&composite, deployment("orders", 1))).await?;
    let mut guide = GuidedSteps::open("deploy/guides/crossplane.md")?;
    guide.follow(&tenant, "rollcall check")?;
    let seen = tenant.until("XDatabase/orders", says("ChildrenReady", "False")).await;
    let seen = seen.with_context(|| service.tail(40))?;
    assert_eq!(condition(&seen, "Ready").context("theirs is gone")?["reason"], "Available");
    tenant.change_status("Deployment/orders", well()).await?;
    guide.follow(&tenant, "kubectl wait").with_context(|| service.tail(40))?;
    let sentences = InlineCommands::of("deploy/guides/crossplane.md")?;
    let script = sentences.type_in(&tenant, "rollcall health-lua -f policy.yaml", &[])?;
    ensure!(script.contains("ChildrenReady"), "a script that reads another condition: {script}");
    guide.is_done()
}

/// The status of a Deployment that is well.
fn well() -> serde_json::Value {
    json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [{ "type": "Available", "status": "True" }],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helm_alone_waits() -> Result<()> {
    let tenant = Arc::new(reader(ClusterParts::Storage, "helm-guide", "example.com").await?);
    let service = installed(&tenant).await?;
    let mut guide = GuidedSteps::open("deploy/guides/helm-only.md")?;
    guide.follow(&tenant, "rollcall rbac")?;
    // An operator that takes its time.
    let operator = tokio::spawn({
        let tenant = tenant.clone();
        async move {
            // Established says that it will be served; until then a list is refused.
            let databases = tenant.kind("Database");
            while tenant.admin.list(&databases, "", "limit=1").await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let db = tenant.until("Database/orders", there()).await?;
            tenant.create(owned_by(&db, deployment("orders", 1))).await?;
            tenant.until("Database/orders", because("Ready", "ChildrenProgressing")).await?;
            tenant.change_status("Deployment/orders", well()).await
        }
    });
    let helm = tokio::task::spawn_blocking({
        let tenant = tenant.clone();
        move || guide.follow(&tenant, "helm install").map(|()| guide)
    });
    let ended = tokio::try_join!(async { operator.await? }, async {
        let guide = helm.await??;
        let said = tenant.get("Deployment/orders").await?;
        ensure!(condition(&said, "Available").is_some(), "helm did not wait for the operator");
        Ok(guide)
    });
    let (_, mut guide) = ended.with_context(|| service.tail(40))?;
    assert_eq!(condition(&tenant.get("Database/orders").await?, "Ready").context("none")?["status"], "True");
    guide.follow(&tenant, "rollcall explain")?;
    guide.follow(&tenant, "rollcall wait")?;
    let sentences = InlineCommands::of("deploy/guides/helm-only.md")?;
    let crd = sentences.type_in(&tenant, "kubectl kustomize .", &[])?;
    ensure!(crd.contains("reason: ChildrenPending"), "a CRD without the default: {crd}");
    let wait = [("wait", "wait database/orders")];
    sentences.type_in(&tenant, "kubectl wait --for=condition=Ready", &wait)?;
    let upgrade = [("upgrade", "upgrade orders chart")];
    sentences.type_in(&tenant, "helm upgrade --wait", &upgrade).with_context(|| service.tail(40))?;
    guide.is_done()
}

#[tokio::test]
async fn shadow_first_then_write_and_back() -> Result<()> {
    let tenant = reader(ClusterParts::Storage, "shadow-guide", "example.com").await?;
    let service = installed(&tenant).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let db = tenant.create(tenant.custom("Database", "orders")).await?;
    tenant.create(owned_by(&db, deployment("orders", 1))).await?;
    tenant.change_status("Deployment/orders", well()).await?;
    let mut guide = GuidedSteps::open("deploy/guides/shadow.md")?;
    guide.follow(&tenant, "rollcall check").with_context(|| service.tail(40))?;
    guide.follow(&tenant, "rollcall tree")?;
    let counted = StateExpectation::new("ready in shadow", |policy| policy["status"]["ready"] == json!(1));
    tenant.until("ReadinessPolicy/databases", counted).await.with_context(|| service.tail(40))?;
    ensure!(condition(&tenant.get("Database/orders").await?, "Ready").is_none(), "shadow wrote");
    guide.follow(&tenant, "sed -i 's/mode: shadow/").with_context(|| service.tail(40))?;
    guide.follow(&tenant, "sed -i 's/mode: write/")?;
    let bare = StateExpectation::new("without our entries", |db| condition(db, "Ready").is_none());
    tenant.until("Database/orders", bare).await.with_context(|| service.tail(40))?;
    guide.is_done()
}
