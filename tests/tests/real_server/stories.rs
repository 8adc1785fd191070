//! More guides, followed to the letter; and what deploy/README.md says to type.

use std::sync::Arc;
use std::time::Duration;

use acceptance::control_plane::{ControlPlane, Parts};
use acceptance::crd::Crd;
use acceptance::guide::{Guide, Sentences};
use acceptance::kopf::Kopf;
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::places;
use acceptance::rollcall::get;
use acceptance::scene::{PATIENCE, Scene};
use acceptance::wish::{Wish, because, gone, says, there};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::guides::{installed, installed_at};

/// A cluster of its own, with the names that the guides use: `default`, example.com, the repository's `deploy` at hand.
async fn reader(parts: Parts, word: &str, group: &str) -> Result<Scene> {
    let plane = Arc::new(ControlPlane::start(parts).await?);
    let mut scene = Scene::set_on(plane, word).await?;
    group.clone_into(&mut scene.group);
    "default".clone_into(&mut scene.name);
    std::os::unix::fs::symlink(places::repository().join("deploy"), scene.folder.join("deploy"))?;
    Ok(scene)
}

#[tokio::test]
async fn kopf_and_argo_cd_from_start_to_end() -> Result<()> {
    let scene = reader(Parts::Everything, "kopf-guide", "shop.example.com").await?;
    scene.until("ServiceAccount/default", there()).await?;
    let service = installed(&scene).await?;
    scene.plane.kubectl(&["create", "namespace", "argocd"])?;
    scene.plane.kubectl(&["create", "configmap", "argocd-cm", "-n", "argocd"])?;
    let mut guide = Guide::open("deploy/guides/kopf-argocd.md")?;
    guide.follow(&scene, "kubectl apply --server-side")?;
    // No kubelet runs the operator's pod: it runs here, as its service account.
    let token = scene.plane.token_of("shop-system", "shop-operator").await?;
    let kubeconfig = scene.folder.join("operator.kubeconfig");
    scene.plane.kubeconfig_for(&kubeconfig, scene.plane.url(), &token, "default")?;
    let script = places::repository().join("deploy/examples/kopf/shop_operator.py");
    let _operator = scene.operator("operator", Kopf::Current, &script, &kubeconfig, &[])?;
    guide.follow(&scene, "kubectl apply -f").with_context(|| service.tail(40))?;
    guide.follow(&scene, "rollcall tree").with_context(|| service.tail(40))?;
    guide.is_done()?;
    // The example's own page says the same, shorter.
    let mut guide = Guide::open("deploy/examples/kopf/README.md")?;
    guide.follow(&scene, "kubectl apply --server-side")?;
    guide.is_done()
}

#[tokio::test]
async fn beside_crossplane_a_condition_of_its_own() -> Result<()> {
    let scene = reader(Parts::Storage, "crossplane-guide", "example.org").await?;
    let service = installed(&scene).await?;
    scene.crd(&Crd::new("XDatabase")).await?;
    let composite = scene.create(scene.custom("XDatabase", "orders")).await?;
    let theirs = json!({
        "type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    scene.change_status("XDatabase/orders", json!({ "conditions": [theirs] })).await?;
    scene.create(owned_by(&composite, deployment("orders", 1))).await?;
    let mut guide = Guide::open("deploy/guides/crossplane.md")?;
    guide.follow(&scene, "rollcall check")?;
    let seen = scene.until("XDatabase/orders", says("ChildrenReady", "False")).await;
    let seen = seen.with_context(|| service.tail(40))?;
    assert_eq!(condition(&seen, "Ready").context("theirs is gone")?["reason"], "Available");
    scene.change_status("Deployment/orders", well()).await?;
    guide.follow(&scene, "kubectl wait").with_context(|| service.tail(40))?;
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
    let scene = Arc::new(reader(Parts::Storage, "helm-guide", "example.com").await?);
    let service = installed(&scene).await?;
    let mut guide = Guide::open("deploy/guides/helm-only.md")?;
    guide.follow(&scene, "rollcall rbac")?;
    // An operator that takes its time.
    let operator = tokio::spawn({
        let scene = scene.clone();
        async move {
            // Established says that it will be served; until then a list is refused.
            let databases = scene.kind("Database");
            while scene.admin.list(&databases, "", "limit=1").await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let db = scene.until("Database/orders", there()).await?;
            scene.create(owned_by(&db, deployment("orders", 1))).await?;
            scene.until("Database/orders", because("Ready", "ChildrenProgressing")).await?;
            scene.change_status("Deployment/orders", well()).await
        }
    });
    let helm = tokio::task::spawn_blocking({
        let scene = scene.clone();
        move || guide.follow(&scene, "helm install").map(|()| guide)
    });
    let ended = tokio::try_join!(async { operator.await? }, async {
        let guide = helm.await??;
        let said = scene.get("Deployment/orders").await?;
        ensure!(condition(&said, "Available").is_some(), "helm did not wait for the operator");
        Ok(guide)
    });
    let (_, mut guide) = ended.with_context(|| service.tail(40))?;
    assert_eq!(condition(&scene.get("Database/orders").await?, "Ready").context("none")?["status"], "True");
    guide.follow(&scene, "rollcall explain")?;
    guide.follow(&scene, "rollcall wait")?;
    guide.is_done()
}

#[tokio::test]
async fn shadow_first_then_write_and_back() -> Result<()> {
    let scene = reader(Parts::Storage, "shadow-guide", "example.com").await?;
    let service = installed(&scene).await?;
    scene.crd(&Crd::new("Database")).await?;
    let db = scene.create(scene.custom("Database", "orders")).await?;
    scene.create(owned_by(&db, deployment("orders", 1))).await?;
    scene.change_status("Deployment/orders", well()).await?;
    let mut guide = Guide::open("deploy/guides/shadow.md")?;
    guide.follow(&scene, "rollcall check").with_context(|| service.tail(40))?;
    guide.follow(&scene, "rollcall tree")?;
    let counted = Wish::new("ready in shadow", |policy| policy["status"]["ready"] == json!(1));
    scene.until("ReadinessPolicy/databases", counted).await.with_context(|| service.tail(40))?;
    ensure!(condition(&scene.get("Database/orders").await?, "Ready").is_none(), "shadow wrote");
    guide.follow(&scene, "sed -i 's/mode: shadow/").with_context(|| service.tail(40))?;
    guide.follow(&scene, "sed -i 's/mode: write/")?;
    let bare = Wish::new("without our entries", |db| condition(db, "Ready").is_none());
    scene.until("Database/orders", bare).await.with_context(|| service.tail(40))?;
    guide.is_done()
}

/// What deploy/README.md says of the page of a service in a cluster.
async fn the_page_is_brought_here(scene: &Scene) -> Result<()> {
    let sentences = Sentences::of("deploy/README.md")?;
    let command = "kubectl -n rollcall-system port-forward service/rollcall 8080";
    // To a port of kubectl's own choice: another on this machine may have 8080.
    let forward = sentences.start(scene, command, &[("rollcall 8080", "rollcall :8080")])?;
    let local = async {
        loop {
            let output = forward.output();
            let here = output.lines().find_map(|line| line.strip_prefix("Forwarding from 127.0.0.1:"));
            if let Some((port, "8080")) = here.and_then(|here| here.split_once(" -> ")) {
                return format!("127.0.0.1:{port}");
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let local = timeout(PATIENCE, local).await.with_context(|| forward.tail(40))?;
    assert_eq!(get(&local, "/readyz", "").await?.code, 200);
    let page = get(&local, "/", "").await?;
    ensure!(page.code == 200 && page.body.contains("<title>"), "no page: {}", page.body);
    // It is the listener's address that counts: who comes by a port-forward comes from loopback, and is asked all the same.
    assert_eq!(get(&local, "/api/v1/parents", "").await?.code, 401);
    scene.plane.kubectl(&["create", "serviceaccount", "looker"])?;
    let role = ["create", "clusterrolebinding", "looker", "--clusterrole=cluster-admin"];
    scene.plane.kubectl(&[&role[..], &["--serviceaccount=default:looker"]].concat())?;
    let token = sentences.type_in(scene, "kubectl create token NAME", &[("NAME", "looker")])?;
    let parents = get(&local, "/api/v1/parents", token.trim()).await?;
    ensure!(parents.code == 200 && parents.body.contains("\"orders\""), "{}: {}", parents.code, parents.body);
    Ok(())
}

#[tokio::test]
async fn what_the_readme_of_deploy_says_to_type_works() -> Result<()> {
    let scene = reader(Parts::Everything, "deploy-guide", "example.com").await?;
    scene.until("ServiceAccount/default", there()).await?;
    scene.crd(&Crd::new("Database")).await?;
    let policy = scene.policy_manifest("db", "Database", json!({ "settle": "100ms" }));
    std::fs::write(scene.folder.join("policy.yaml"), policy.to_string())?;
    let mut guide = Guide::open("deploy/README.md")?;
    guide.follow(&scene, "kubectl apply --server-side -k")?;
    // As in its pods, it listens to everybody. No kubelet runs these: kwok plays them, and whoever asks one is led here.
    let service = installed_at(&scene, &format!("0.0.0.0:{}", scene.plane.forwarded()?)).await?;
    let db = scene.create(scene.custom("Database", "orders")).await?;
    scene.create(owned_by(&db, deployment("orders", 1))).await?;
    scene.until("Database/orders", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    the_page_is_brought_here(&scene).await.with_context(|| service.tail(40))?;
    guide.follow(&scene, "rollcall release")?;
    ensure!(condition(&scene.get("Database/orders").await?, "Ready").is_none(), "it was not released");
    drop(service);
    std::fs::write(
        scene.folder.join("values.yaml"),
        "parents: [{ group: example.com, resource: databases }]\n",
    )?;
    scene.until("Namespace/rollcall-system", gone()).await?;
    guide.follow(&scene, "helm install")?;
    guide.is_done()
}
