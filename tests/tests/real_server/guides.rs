//! The guides, followed to the letter on a cluster that has seen none of it.

use std::fs;
use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane, free_ports};
use acceptance::expectation::{StateExpectation, because, says};
use acceptance::guide::{GuidedSteps, InlineCommands};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, owned_by};
use acceptance::process::LoggedProcess;
use acceptance::tenant::TestTenant;
use acceptance::{peers, places};
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// What Argo CD makes of an object, by the ConfigMap that is in the cluster now.
async fn argo_cd(tenant: &TestTenant, object: &Value) -> Result<String> {
    let place = ObjectAddress {
        kind: tenant.kind("ConfigMap"),
        namespace: "argocd".to_owned(),
        name: "argocd-cm".to_owned(),
    };
    let live = tenant.admin.get(&place).await?.context("no argocd-cm")?;
    let file = tenant.folder.join("live-argocd-cm.json");
    fs::write(&file, live.to_string())?;
    peers::argocd(Some(&file), std::slice::from_ref(object))?.remove(0).0.context("no health")
}

/// The base of `deploy/`, and the service with the rights that it has there.
pub(crate) async fn installed(tenant: &TestTenant) -> Result<LoggedProcess> {
    installed_at(tenant, &format!("127.0.0.1:{}", free_ports(1)?[0])).await
}

/// The same, listening there.
pub(super) async fn installed_at(tenant: &TestTenant, listen: &str) -> Result<LoggedProcess> {
    let base = places::repository().join("deploy/kustomize");
    tenant.plane.kubectl(&["apply", "--server-side", "-k", &base.to_string_lossy()])?;
    let crd = "CustomResourceDefinition/readinesspolicies.rollcall.dev";
    tenant.until(crd, says("Established", "True")).await?;
    let token = tenant.plane.token_of("rollcall-system", "rollcall").await?;
    let kubeconfig = tenant.folder.join("deployed.kubeconfig");
    tenant.plane.kubeconfig_for(&kubeconfig, tenant.plane.url(), &token, "rollcall-system")?;
    let args = [
        "run".to_owned(),
        "--leader-elect".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--listen={listen}"),
    ];
    LoggedProcess::start("rollcall", &places::rollcall()?, &args, &[], &tenant.folder.join("rollcall.log"))
}

#[tokio::test]
async fn sync_waves_wait_for_children() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let mut tenant = TestTenant::start_on(plane, "waves").await?;
    "example.com".clone_into(&mut tenant.group);
    "default".clone_into(&mut tenant.name);
    let service = installed(&tenant).await?;
    tenant.plane.kubectl(&["create", "namespace", "argocd"])?;
    let kept = "resource.customizations.health.other.io_Shop=return { status = 'Healthy' }";
    let literal = format!("--from-literal={kept}");
    tenant.plane.kubectl(&["create", "configmap", "argocd-cm", "-n", "argocd", &literal])?;

    let mut guide = GuidedSteps::open("deploy/guides/sync-waves.md")?;
    guide.follow(&tenant, "database.yaml")?;
    let file = tenant.folder.join("database.yaml");
    tenant.plane.kubectl(&["apply", "-f", &file.to_string_lossy()])?;
    let pending = tenant.until("Database/orders", says("Ready", "Unknown")).await?;
    assert_eq!(argo_cd(&tenant, &pending).await?, "Progressing");
    tenant.create(owned_by(&pending, deployment("orders", 1))).await?;
    let progressing = because("Ready", "ChildrenProgressing");
    let waiting = tenant.until("Database/orders", progressing).await.with_context(|| service.tail(40))?;
    assert_eq!(argo_cd(&tenant, &waiting).await?, "Progressing");
    let well = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        ],
    });
    tenant.change_status("Deployment/orders", well).await?;
    let ready = tenant.until("Database/orders", says("Ready", "True")).await?;
    assert_eq!(argo_cd(&tenant, &ready).await?, "Healthy");
    let other = json!({ "apiVersion": "other.io/v1", "kind": "Shop", "metadata": { "name": "s" } });
    assert_eq!(argo_cd(&tenant, &other).await?, "Healthy", "what was there before is still there");
    guide.follow(&tenant, "kubectl wait")?;
    let sentences = InlineCommands::of("deploy/guides/sync-waves.md")?;
    let command = "rollcall health-lua -f policy.yaml --format operator";
    assert!(sentences.type_in(&tenant, command, &[])?.contains("resourceHealthChecks"));
    fs::write(tenant.folder.join("live.json"), tenant.get("Deployment/orders").await?.to_string())?;
    for profile in ["kstatus", "flux", "argocd"] {
        let sentences = InlineCommands::of("deploy/guides/comparison.md")?;
        let own = [("kstatus|flux|argocd", profile), ("eval", "eval -f live.json")];
        let judged = sentences.type_in(&tenant, "rollcall eval --profile kstatus|flux|argocd", &own)?;
        assert!(judged.contains("Deployment"), "{judged}");
    }
    guide.follow(&tenant, "kubectl apply --server-side -f")?;
    let nothing = StateExpectation::new("without anything of ours", |db| {
        let status = &db["status"];
        status["observedGeneration"].is_null() && status["conditions"].as_array().is_none_or(Vec::is_empty)
    });
    tenant.until("Database/orders", nothing).await.with_context(|| service.tail(40))?;
    guide.is_done()
}
