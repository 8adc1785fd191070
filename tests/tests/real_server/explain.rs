//! `explain`, against what a real scheduler, quota and garbage collector say.

use std::process::Command;

use acceptance::crd::Crd;
use acceptance::kind::Address;
use acceptance::objects::{deployment, job, owned_by};
use acceptance::scene::Scene;
use acceptance::wish::{Wish, gone, says};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::live::run;

/// A Database of this scene.
async fn database(scene: &Scene) -> Result<Value> {
    scene.crd(&Crd::new("Database")).await?;
    scene.create(scene.custom("Database", "db")).await
}

/// What `explain` says of it, and its exit code.
async fn explained(scene: &Scene) -> Result<(i32, Value)> {
    let object = format!("database.{}/db", scene.group);
    let (code, out, err) = run(scene, &["explain", &object, "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    Ok((code, told[0].clone()))
}

#[tokio::test]
async fn a_pod_that_no_node_takes_is_explained_in_the_schedulers_own_words() -> Result<()> {
    let scene = Scene::set("explain-node").await?;
    let db = database(&scene).await?;
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    scene.create(owned_by(&db, web)).await?;
    scene.until_pods("web", 1).await?;
    let (pods, _) = scene.admin.list(&scene.kind("Pod"), &scene.name, "labelSelector=app=web").await?;
    let pod = pods[0]["metadata"]["name"].as_str().context("a pod without a name")?.to_owned();
    scene.until(&format!("Pod/{pod}"), says("PodScheduled", "False")).await?;

    let (code, told) = explained(&scene).await?;
    let cause = &told["causes"][0];
    assert_eq!((code, &cause["object"]["name"]), (1, &json!("web")), "{told:#}");
    assert_eq!(cause["path"], json!(["Database db", "Deployment web"]));
    let below = cause["owns"][0].to_string();
    assert!(below.contains(&pod) && below.contains("not scheduled") && below.contains("node"), "{below}");
    for part in ["rule", "branch", "changes"] {
        assert!(cause[part].as_str().is_some_and(|text| !text.is_empty()), "no {part}: {cause:#}");
    }
    let fields: Vec<_> =
        cause["values"].as_array().into_iter().flatten().map(|v| v["field"].clone()).collect();
    assert!(fields.contains(&json!("spec.replicas")), "{fields:?}");
    let object = format!("database.{}/db", scene.group);
    let (_, out, _) = run(&scene, &["explain", &object]).await?;
    for part in ["1. Deployment", "not scheduled", "branch", "changes", "kubectl -n"] {
        assert!(out.contains(part), "no {part} in:\n{out}");
    }
    Ok(())
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_named() -> Result<()> {
    let scene = Scene::set("explain-quota").await?;
    let db = database(&scene).await?;
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "small", "namespace": scene.name },
        "spec": { "hard": { "pods": "0" } } });
    let quota = scene.admin.create(&quota).await?;
    let counted = Wish::new("counted", |quota| quota["status"]["hard"]["pods"] == "0");
    scene.until_at(&Address::of(&quota)?, &counted).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Deployment/web", says("ReplicaFailure", "True")).await?;
    let (_, told) = explained(&scene).await?;
    let owns = told["causes"][0]["owns"].to_string();
    assert!(owns.contains("exceeded quota: small"), "{told:#}");
    Ok(())
}

#[tokio::test]
async fn whoever_holds_a_child_is_named_with_a_command_that_lets_go() -> Result<()> {
    let scene = Scene::set("explain-held").await?;
    let db = database(&scene).await?;
    let mut seed = job("seed");
    seed["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    scene.create(owned_by(&db, seed)).await?;
    scene.until("Job/seed", says("Complete", "True")).await?;
    scene.delete("Job/seed").await?;
    let leaving = Wish::new("to be deleted", |job| job["metadata"]["deletionTimestamp"].is_string());
    scene.until("Job/seed", leaving).await?;

    let (code, told) = explained(&scene).await?;
    let holder = &told["causes"][0]["holders"][0];
    assert_eq!((code, &holder["likely"]), (1, &json!("Argo CD")), "{told:#}");
    assert!(holder["manager"].is_string() && holder["warning"].is_string(), "{holder:#}");
    assert!(scene.get("Job/seed").await.is_ok(), "it is named, and nothing is done");
    // The command is for people; it has to be one that works.
    shell(&scene, holder["release"].as_str().context("no command")?)?;
    scene.until("Job/seed", gone()).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_or_not_known_is_said() -> Result<()> {
    let scene = Scene::set("explain-none").await?;
    database(&scene).await?;
    let object = format!("database.{}/other", scene.group);
    let (code, _, err) = run(&scene, &["explain", &object]).await?;
    assert!(code == 2 && err.contains("there is no Database other"), "{code} {err}");
    Ok(())
}

/// Runs a printed command as its reader would, against this control plane.
pub(crate) fn shell(scene: &Scene, command: &str) -> Result<()> {
    let kubectl = acceptance::places::program("kubectl")?;
    let folder = kubectl.parent().context("kubectl is nowhere")?.to_path_buf();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .env("KUBECONFIG", scene.plane.kubeconfig())
        .output()
        .context("failed to run a shell")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command}: {errors}");
    Ok(())
}
