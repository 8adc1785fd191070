//! The guides, followed to the letter on a cluster that has seen none of it.

use std::fs;
use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane, free_ports};
use acceptance::guide::{GuidedSteps, InlineCommands};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, owned_by};
use acceptance::peers;
use acceptance::places;
use acceptance::process::LoggedProcess;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, because, says};
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// What Argo CD makes of an object, by the ConfigMap that is in the cluster now.
async fn argo_cd(scene: &TestTenant, object: &Value) -> Result<String> {
    let place = ObjectAddress {
        kind: scene.kind("ConfigMap"),
        namespace: "argocd".to_owned(),
        name: "argocd-cm".to_owned(),
    };
    let live = scene.admin.get(&place).await?.context("no argocd-cm")?;
    let file = scene.folder.join("live-argocd-cm.json");
    fs::write(&file, live.to_string())?;
    peers::argocd(Some(&file), std::slice::from_ref(object))?.remove(0).0.context("no health")
}

/// The base of `deploy/`, and the service with the rights that it has there.
pub(super) async fn installed(scene: &TestTenant) -> Result<LoggedProcess> {
    installed_at(scene, &format!("127.0.0.1:{}", free_ports(1)?[0])).await
}

/// The same, listening there.
pub(super) async fn installed_at(scene: &TestTenant, listen: &str) -> Result<LoggedProcess> {
    let base = places::repository().join("deploy/kustomize");
    scene.plane.kubectl(&["apply", "--server-side", "-k", &base.to_string_lossy()])?;
    let crd = "CustomResourceDefinition/readinesspolicies.rollcall.dev";
    scene.until(crd, says("Established", "True")).await?;
    let token = scene.plane.token_of("rollcall-system", "rollcall").await?;
    let kubeconfig = scene.folder.join("deployed.kubeconfig");
    scene.plane.kubeconfig_for(&kubeconfig, scene.plane.url(), &token, "rollcall-system")?;
    let args = [
        "run".to_owned(),
        "--leader-elect".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--listen={listen}"),
    ];
    LoggedProcess::start("rollcall", &places::rollcall()?, &args, &[], &scene.folder.join("rollcall.log"))
}

#[tokio::test]
async fn sync_waves_wait_for_children() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let mut scene = TestTenant::set_on(plane, "waves").await?;
    "example.com".clone_into(&mut scene.group);
    "default".clone_into(&mut scene.name);
    let service = installed(&scene).await?;
    scene.plane.kubectl(&["create", "namespace", "argocd"])?;
    let kept = "resource.customizations.health.other.io_Shop=return { status = 'Healthy' }";
    let literal = format!("--from-literal={kept}");
    scene.plane.kubectl(&["create", "configmap", "argocd-cm", "-n", "argocd", &literal])?;

    let mut guide = GuidedSteps::open("deploy/guides/sync-waves.md")?;
    guide.follow(&scene, "database.yaml")?;
    let file = scene.folder.join("database.yaml");
    scene.plane.kubectl(&["apply", "-f", &file.to_string_lossy()])?;
    let pending = scene.until("Database/orders", says("Ready", "Unknown")).await?;
    assert_eq!(argo_cd(&scene, &pending).await?, "Progressing");
    scene.create(owned_by(&pending, deployment("orders", 1))).await?;
    let progressing = because("Ready", "ChildrenProgressing");
    let waiting = scene.until("Database/orders", progressing).await.with_context(|| service.tail(40))?;
    assert_eq!(argo_cd(&scene, &waiting).await?, "Progressing");
    let well = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        ],
    });
    scene.change_status("Deployment/orders", well).await?;
    let ready = scene.until("Database/orders", says("Ready", "True")).await?;
    assert_eq!(argo_cd(&scene, &ready).await?, "Healthy");
    let other = json!({ "apiVersion": "other.io/v1", "kind": "Shop", "metadata": { "name": "s" } });
    assert_eq!(argo_cd(&scene, &other).await?, "Healthy", "what was there before is still there");
    guide.follow(&scene, "kubectl wait")?;
    let sentences = InlineCommands::of("deploy/guides/sync-waves.md")?;
    let command = "rollcall health-lua -f policy.yaml --format operator";
    assert!(sentences.type_in(&scene, command, &[])?.contains("resourceHealthChecks"));
    fs::write(scene.folder.join("live.json"), scene.get("Deployment/orders").await?.to_string())?;
    for profile in ["kstatus", "flux", "argocd"] {
        let sentences = InlineCommands::of("deploy/guides/comparison.md")?;
        let own = [("kstatus|flux|argocd", profile), ("eval", "eval -f live.json")];
        let judged = sentences.type_in(&scene, "rollcall eval --profile kstatus|flux|argocd", &own)?;
        assert!(judged.contains("Deployment"), "{judged}");
    }
    guide.follow(&scene, "kubectl apply --server-side -f")?;
    let nothing = StateExpectation::new("without anything of ours", |db| {
        let status = &db["status"];
        status["observedGeneration"].is_null() && status["conditions"].as_array().is_none_or(Vec::is_empty)
    });
    scene.until("Database/orders", nothing).await.with_context(|| service.tail(40))?;
    guide.is_done()
}
