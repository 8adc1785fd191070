//! Releases of the Helm chart, from their coming to their going, with real Helm on the real server.

use std::sync::Arc;
use std::time::Duration;

use acceptance::caller::Caller;
use acceptance::control_plane::{ControlPlane, Parts, free_ports};
use acceptance::crd::Crd;
use acceptance::kind::Kind;
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::places;
use acceptance::process::Process;
use acceptance::scene::{PATIENCE, Scene};
use acceptance::wish::{Wish, says};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::chart::{EVERYTHING, HOME, helm, values, words};
use super::memory::fleeting;

/// A CRD that stands for one of the Prometheus operator's.
fn stub(kind: &str, plural: &str) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version =
        json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.monitoring.coreos.com") },
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": kind, "plural": plural, "singular": plural.trim_end_matches('s') },
        },
    })
}

/// Helm as the administrator of the scene's cluster.
fn operate(scene: &Scene, home: &str, args: &[&str]) -> Result<String> {
    let kubeconfig = scene.plane.kubeconfig().to_string_lossy().into_owned();
    let output = helm(&[args, &["-n", home, "--kubeconfig", &kubeconfig]].concat())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm {args:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a container of the release is told to run, run here: with the rights of its service account.
async fn as_deployed(scene: &Scene, home: &str, args: Vec<String>, name: &str) -> Result<Process> {
    let token = scene.plane.token_of(home, "rollcall").await?;
    let kubeconfig = scene.folder.join("chart.kubeconfig");
    scene.plane.kubeconfig_for(&kubeconfig, scene.plane.url(), &token, home)?;
    let mut args = args;
    for arg in &mut args {
        if arg.starts_with("--listen=") {
            *arg = format!("--listen=127.0.0.1:{}", free_ports(1)?[0]);
        }
        // Where the ConfigMap would be mounted.
        *arg = arg.replace("/etc/rollcall", &scene.folder.to_string_lossy());
    }
    args.push(format!("--kubeconfig={}", kubeconfig.display()));
    // In a pod, its own namespace.
    let env = [("ROLLCALL_RECORDS_NAMESPACE".to_owned(), home.to_owned())];
    Process::start(name, &places::rollcall()?, &args, &env, &scene.folder.join(format!("{name}.log")))
}

fn container(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]["containers"][0]
}

/// Everything in the cluster that carries the release's label, of all kinds that can be listed.
fn ours(scene: &Scene) -> Result<String> {
    let kinds = scene.plane.kubectl(&["api-resources", "--verbs=list", "-o", "name"])?;
    // Events tell of the release, and expire.
    let kinds: Vec<_> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let label = "app.kubernetes.io/instance=rollcall";
    scene.plane.kubectl(&["get", &kinds.join(","), "-A", "-l", label, "-o", "name", "--ignore-not-found"])
}

/// A cluster with the Prometheus operator's kinds, a kind of parents, and a namespace that demands the restricted profile.
async fn cluster() -> Result<Scene> {
    let plane = Arc::new(ControlPlane::start(Parts::Everything).await?);
    let mut scene = Scene::set_on(plane, "chart").await?;
    "example.com".clone_into(&mut scene.group);
    for (kind, plural) in [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")] {
        let crd = scene.admin.create(&stub(kind, plural)).await?;
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        scene.until(&format!("CustomResourceDefinition/{name}"), says("Established", "True")).await?;
    }
    scene.crd(&Crd::new("Database")).await?;
    let restricted = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": HOME, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    scene.admin.create(&restricted).await?;
    Ok(scene)
}

/// Installs, and runs what the release's Deployment says until a parent is told that it is ready.
async fn comes(scene: &Scene, options: &[&str]) -> Result<Process> {
    let notes = operate(scene, HOME, &[&["install", "rollcall", "rollcall"], options].concat())?;
    ensure!(notes.contains("kubectl apply -f policy.yaml"), "{notes}");
    let deployed = scene.plane.kubectl(&["get", "deployment", "rollcall", "-n", HOME, "-o", "json"])?;
    let deployed: Value = serde_json::from_str(&deployed)?;
    assert_eq!(deployed["status"]["availableReplicas"], 2, "both replicas are admitted and run");
    let service = as_deployed(scene, HOME, words(&container(&deployed)["args"]), "deployed").await?;
    let jobs = json!({ "kind": { "group": "batch", "kind": "Job" }, "expect": { "min": 0 }, "afterDeletion": "remember" });
    let spec = json!({ "children": [scene.child("Deployment"), jobs], "settle": "100ms" });
    scene.admin.create(&scene.policy_manifest("db", "Database", spec)).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.create(owned_by(&db, fleeting("migrate"))).await?;
    scene.until("Database/db", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    let remembered = async {
        while remembered(scene).await? == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, remembered).await.context("nothing is remembered")??;
    let own = Caller::from_kubeconfig(&scene.folder.join("chart.kubeconfig")).await?;
    ensure!(own.list(&scene.kind("Secret"), "", "").await.is_err(), "it may read secrets");
    Ok(service)
}

/// So many records are in the release's namespace.
async fn remembered(scene: &Scene) -> Result<usize> {
    let records = Kind::new("rollcall.dev/v1alpha1", "ReadinessRecord");
    Ok(scene.admin.list(&records, HOME, "").await?.0.len())
}

/// An upgrade leaves the lease, and who holds it, alone.
fn changes(scene: &Scene, options: &[&str]) -> Result<()> {
    let holder = "jsonpath={.spec.holderIdentity}";
    let lease = || scene.plane.kubectl(&["get", "lease", "rollcall", "-n", HOME, "-o", holder]);
    let before = lease()?;
    ensure!(!before.is_empty(), "nobody leads");
    let upgrade = ["upgrade", "rollcall", "rollcall", "--set", "replicas=3,resync=20s"];
    operate(scene, HOME, &[&upgrade, options].concat())?;
    assert_eq!(lease()?, before);
    Ok(())
}

/// No kubelet runs what the hook says, so it is run here; afterwards Helm believes that it ran there.
async fn goes(scene: &Scene) -> Result<()> {
    let hook: Value = serde_saphyr::from_str(&operate(scene, HOME, &["get", "hooks", "rollcall"])?)?;
    assert_eq!(hook["metadata"]["annotations"]["helm.sh/hook"], "pre-delete");
    let mut release = as_deployed(scene, HOME, words(&container(&hook)["args"]), "release").await?;
    let ended = release.end(Duration::from_secs(60)).await?;
    ensure!(ended.success(), "{}", release.tail(40));
    let bare = Wish::new("without our entries", |db| condition(db, "Ready").is_none());
    scene.until("Database/db", bare).await?;
    assert_eq!(remembered(scene).await?, 0, "what was remembered is still there: {}", release.tail(20));
    // The service runs on, and sees a change that it would have to write.
    scene.play("web", Some("crash")).await?;
    scene.until("Deployment/web", says("Available", "False")).await?;
    assert_eq!(remembered(scene).await?, 0, "it was remembered again");
    operate(scene, HOME, &["uninstall", "rollcall", "--wait", "--timeout", "100s"])?;
    Ok(())
}

#[tokio::test]
async fn a_release_comes_works_changes_and_goes_without_a_trace() -> Result<()> {
    let scene = cluster().await?;
    let everything = values(EVERYTHING, "life")?;
    let options = ["--wait", "--timeout", "100s", "-f", &everything];
    let mut service = comes(&scene, &options).await?;
    changes(&scene, &options)?;
    goes(&scene).await.with_context(|| service.tail(40))?;
    ensure!(condition(&scene.get("Database/db").await?, "Ready").is_none(), "it was written again");
    service.terminate()?;
    ensure!(service.end(Duration::from_secs(20)).await?.success(), "{}", service.tail(40));

    assert_eq!(ours(&scene)?, "");
    let policies = Kind::new("rollcall.dev/v1alpha1", "ReadinessPolicy");
    ensure!(scene.admin.list(&policies, "", "").await.is_err(), "the CRD is still there");
    ensure!(condition(&scene.get("Database/db").await?, "Ready").is_none(), "it was written at the end");
    Ok(())
}

#[tokio::test]
async fn in_one_namespace_roles_are_enough() -> Result<()> {
    let scene = Scene::set("chart-roles").await?;
    let home = scene.name.as_str();
    scene.crd(&Crd::new("Database")).await?;
    let policy = scene.policy_manifest("db", "Database", json!({ "settle": "100ms" }));
    let wanted = json!({
        "namespaces": [home], "policies": { "databases": policy["spec"] },
        "parents": [{ "group": scene.group, "resource": "databases" }],
        // Others share this control plane.
        "crds": { "install": false },
    });
    let file = values(&wanted.to_string(), home)?;
    operate(&scene, home, &["install", "rollcall", "rollcall", "-f", &file])?;
    let policies = scene.get("ConfigMap/rollcall-policies").await?;
    let policies = policies["data"]["policies.yaml"].as_str().context("no policies")?;
    std::fs::write(scene.folder.join("policies.yaml"), policies)?;
    let deployed = scene.get("Deployment/rollcall").await?;
    let mut service = as_deployed(&scene, home, words(&container(&deployed)["args"]), "deployed").await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    let own = Caller::from_kubeconfig(&scene.folder.join("chart.kubeconfig")).await?;
    for kind in ["Database", "Deployment", "ReadinessPolicy"] {
        ensure!(
            own.list(&scene.kind(kind), "", "").await.is_err(),
            "it may read {kind} in the whole cluster"
        );
    }
    let hook: Value = serde_saphyr::from_str(&operate(&scene, home, &["get", "hooks", "rollcall"])?)?;
    let mut release = as_deployed(&scene, home, words(&container(&hook)["args"]), "release").await?;
    ensure!(release.end(Duration::from_secs(60)).await?.success(), "{}", release.tail(40));
    let bare = Wish::new("without our entries", |db| condition(db, "Ready").is_none());
    scene.until("Database/db", bare).await?;
    service.terminate()?;
    ensure!(service.end(Duration::from_secs(20)).await?.success(), "{}", service.tail(40));
    operate(&scene, home, &["uninstall", "rollcall", "--wait", "--timeout", "100s"])?;
    ensure!(scene.get(&format!("Role/{home}-rollcall")).await.is_err(), "a Role is left");
    Ok(())
}
