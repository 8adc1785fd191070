//! What waits beyond its limit, by the word of the real scheduler, quota and volume controller; and what hangs in deletion.

use acceptance::crd::Crd;
use acceptance::kind::Address;
use acceptance::objects::{condition, deployment, job, owned_by, playing, stateful_set};
use acceptance::rollcall::Rollcall;
use acceptance::scene::Scene;
use acceptance::wish::{Wish, because, gone, mentions, says};
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::explain::shell;
use super::live::run;

/// A Database with these kinds of children, all of them limited to a few seconds, and a quick pass over it.
async fn limited(word: &str, kinds: &[&str]) -> Result<(Scene, Rollcall, Value)> {
    let scene = Scene::set(word).await?;
    scene.crd(&Crd::new("Database")).await?;
    let child = |kind: &&str| {
        let mut child = scene.child(kind);
        child["expect"] = json!({ "min": 0 });
        child
    };
    let children: Vec<Value> = kinds.iter().map(child).collect();
    let limits = json!({ "pending": "3s", "terminating": "2s" });
    scene
        .policy("db", "Database", json!({ "children": children, "settle": "100ms", "limits": limits }))
        .await?;
    let running = scene.rollcall(&["--resync=1s"]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    Ok((scene, running, db))
}

/// Waits until the parent says that it is stuck, in these words, for good as far as its readers go.
async fn until_stuck(scene: &Scene, words: &[&str]) -> Result<String> {
    let mut wish = says("Ready", "False").and(because("Ready", "ChildrenStuck")).and(says("Stalled", "True"));
    for part in words {
        wish = wish.and(mentions("Ready", part));
    }
    let parent = scene.until("Database/db", wish.and(mentions("Stalled", words[0]))).await?;
    let message = condition(&parent, "Ready").context("no Ready")?["message"].as_str().unwrap_or_default();
    eprintln!("{message}");
    Ok(message.to_owned())
}

#[tokio::test]
async fn a_job_whose_pod_no_node_takes_is_stuck_in_the_schedulers_words() -> Result<()> {
    let (scene, _running, db) = limited("nonode", &["Job"]).await?;
    let mut seed = job("seed");
    seed["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    scene.create(owned_by(&db, seed)).await?;
    until_stuck(&scene, &["Job seed stuck", "Pod seed-", "unschedulable: 0/1 nodes are available"]).await?;
    Ok(())
}

/// What a kubelet writes of a container whose image cannot be had.
async fn cannot_pull(scene: &Scene, app: &str, reason: &str) -> Result<()> {
    let query = format!("labelSelector=app={app}");
    let (pods, _) = scene.admin.list(&scene.kind("Pod"), &scene.name, &query).await?;
    let waiting = json!({ "waiting": { "reason": reason, "message": "Back-off pulling image \"example.com/main:1\"" } });
    let container = json!({ "name": "main", "image": "example.com/main:1", "imageID": "", "ready": false,
        "restartCount": 0, "state": waiting });
    let status = json!({ "status": { "phase": "Pending", "containerStatuses": [container] } });
    for pod in &pods {
        scene.admin.merge(&Address::of(pod)?, "/status", &status).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_makes_its_workload_stuck_and_a_pod_that_comes_up_frees_it()
-> Result<()> {
    let (scene, _running, db) = limited("noimage", &["Deployment"]).await?;
    scene.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    scene.until_pods("web", 1).await?;
    cannot_pull(&scene, "web", "ErrImagePull").await?;
    scene.until("Database/db", mentions("Ready", "ErrImagePull")).await?;
    // Kubelets say the one and the other in turn.
    cannot_pull(&scene, "web", "ImagePullBackOff").await?;
    until_stuck(&scene, &["Deployment web stuck", "Pod web-", "ImagePullBackOff"]).await?;
    scene.play("web", None).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_that_nobody_binds_makes_itself_and_what_waits_for_it_stuck_until_there_is_a_volume()
-> Result<()> {
    let (scene, _running, db) = limited("nobind", &["StatefulSet", "PersistentVolumeClaim"]).await?;
    let class = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": scene.name },
        "provisioner": "example.com/nobody", "volumeBindingMode": "Immediate" });
    scene.admin.create(&class).await?;
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": scene.name,
        "resources": { "requests": { "storage": "1Gi" } } });
    let mut store = stateful_set("store", 1);
    store["spec"]["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": claim }]);
    scene.create(owned_by(&db, store)).await?;
    let cache = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "cache" }, "spec": claim });
    scene.create(owned_by(&db, cache)).await?;
    let why = [
        "PersistentVolumeClaim cache stuck",
        "StatefulSet store stuck",
        "Pod store-0",
        "unbound immediate PersistentVolumeClaims",
    ];
    until_stuck(&scene, &why).await?;
    for (name, claim) in [("data", "data-store-0"), ("cache", "cache")] {
        let volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": format!("{}-{name}", scene.name) },
            "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": scene.name,
                "claimRef": { "namespace": scene.name, "name": claim }, "hostPath": { "path": "/nowhere" } } });
        scene.admin.create(&volume).await?;
    }
    scene.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

/// No pod is admitted any more.
async fn no_pods(scene: &Scene) -> Result<()> {
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "small", "namespace": scene.name },
        "spec": { "hard": { "pods": "0" } } });
    let quota = scene.admin.create(&quota).await?;
    let counted = Wish::new("counted", |quota| quota["status"]["hard"]["pods"] == "0");
    scene.until_at(&Address::of(&quota)?, &counted).await?;
    Ok(())
}

#[tokio::test]
async fn a_quota_that_is_used_up_makes_its_workload_fail_and_then_stuck_in_its_own_words() -> Result<()> {
    let (scene, _running, db) = limited("noquota", &["Deployment"]).await?;
    no_pods(&scene).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    let failed = because("Ready", "ChildrenFailed").and(mentions("Ready", "exceeded quota: small"));
    scene.until("Database/db", failed).await?;
    until_stuck(&scene, &["Deployment web stuck", "exceeded quota: small"]).await?;
    Ok(())
}

#[tokio::test]
async fn where_no_condition_tells_of_a_quota_the_events_of_the_workload_do() -> Result<()> {
    let (scene, _running, db) = limited("eventquota", &["StatefulSet", "Job"]).await?;
    no_pods(&scene).await?;
    scene.create(owned_by(&db, stateful_set("store", 1))).await?;
    scene.create(owned_by(&db, job("seed"))).await?;
    let both = ["Job seed stuck", "StatefulSet store stuck", "Event FailedCreate", "exceeded quota: small"];
    until_stuck(&scene, &both).await?;
    Ok(())
}

/// Puts one more finalizer on it, in the name of a controller.
async fn hold(scene: &Scene, place: &str, manager: &str, finalizer: &str) -> Result<()> {
    let address = scene.address(place)?;
    let mut held = scene.get(place).await?["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    held.push(json!(finalizer));
    let patch = json!({ "metadata": { "finalizers": held } });
    let path = format!("{}?fieldManager={manager}", address.path());
    scene
        .admin
        .send(Method::PATCH, &path, "application/merge-patch+json", serde_json::to_vec(&patch)?)
        .await?;
    Ok(())
}

#[tokio::test]
async fn what_hangs_in_deletion_names_each_finalizer_since_when_and_whose_it_is() -> Result<()> {
    let (scene, _running, db) = limited("heldby", &["Deployment"]).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    let held = [
        ("argocd-controller", "argocd.argoproj.io/hook-finalizer"),
        ("kopf", "kopf.zalando.org/KopfFinalizerMarker"),
        ("backup-controller", "backup.example.com/hold"),
    ];
    for (manager, finalizer) in held {
        hold(&scene, "Deployment/web", manager, finalizer).await?;
    }
    scene.delete("Deployment/web").await?;
    let told = until_stuck(&scene, &["Deployment web stuck"]).await?;
    let since = scene.get("Deployment/web").await?["metadata"]["deletionTimestamp"].clone();
    for part in [
        "argocd.argoproj.io/hook-finalizer (likely Argo CD)",
        "kopf.zalando.org/KopfFinalizerMarker (likely a Kopf operator)",
        // No table knows this one: the server does.
        "backup.example.com/hold (set by backup-controller)",
        since.as_str().context("not being deleted")?,
    ] {
        ensure!(told.contains(part), "no {part} in {told}");
    }
    // Each is released by the command that is printed beside it, the first one first; after the last it is gone.
    for (manager, finalizer) in held {
        let object = format!("database.{}/db", scene.group);
        let (_, out, err) = run(&scene, &["explain", &object, "-o", "json"]).await?;
        let told: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
        let holder = &told[0]["causes"][0]["holders"][0];
        ensure!(holder["finalizer"] == finalizer && holder["manager"] == manager, "{holder:#}");
        ensure!(holder["since"] == since && holder["warning"].is_string(), "{holder:#}");
        shell(&scene, holder["release"].as_str().context("no command")?)?;
    }
    scene.until("Deployment/web", gone()).await?;
    Ok(())
}
