//! `tree` and `wait`, with a user's own rights and without a running service.

use std::process::Command;

use acceptance::crd::Crd;
use acceptance::objects::{deployment, owned_by, playing};
use acceptance::scene::Scene;
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A parent with one workload that is ready and one that is not; a policy in a file alone.
async fn scene_with_shop(word: &str) -> Result<Scene> {
    let scene = Scene::set(word).await?;
    scene.crd(&Crd::new("Database")).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.create(owned_by(&db, playing("hold", deployment("slow", 1)))).await?;
    scene.until("Deployment/web", acceptance::wish::says("Available", "True")).await?;
    Ok(scene)
}

async fn run(scene: &Scene, args: &[&str]) -> Result<(i32, String, String)> {
    let admin = scene.plane.kubeconfig();
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(args).args(["--kubeconfig", &admin.to_string_lossy(), "-n", &scene.name]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code().context("killed")?, text(&output.stdout), text(&output.stderr)))
}

#[tokio::test]
async fn a_tree_needs_neither_a_service_nor_a_policy() -> Result<()> {
    let scene = scene_with_shop("tree").await?;
    let object = format!("database.{}/db", scene.group);
    let (code, out, err) = run(&scene, &["tree", &object]).await?;
    assert_eq!(code, 1, "{out}{err}");
    for part in ["Database", "Deployment", "slow", "web", "Progressing", "Ready"] {
        assert!(out.contains(part), "no {part} in:\n{out}");
    }
    let (_, out, _) = run(&scene, &["tree", &object, "-o", "json"]).await?;
    let trees: Value = serde_json::from_str(&out)?;
    assert_eq!(trees[0]["children"].as_array().map(Vec::len), Some(2), "{out}");
    assert_eq!(trees[0]["children"][0]["name"], "slow", "the worst comes first");
    let (code, _, err) = run(&scene, &["tree", "nonsense/db"]).await?;
    assert_eq!(code, 2);
    assert!(err.contains("nonsense") && err.contains("kubectl api-resources"), "{err}");
    Ok(())
}

#[tokio::test]
async fn wait_returns_when_all_of_it_is_ready_and_not_before() -> Result<()> {
    let scene = scene_with_shop("wait").await?;
    let object = format!("database.{}/db", scene.group);
    let (code, out, _) = run(&scene, &["wait", &object, "--timeout", "3s"]).await?;
    assert_eq!(code, 124, "{out}");
    assert!(out.contains("Deployment slow"), "the root cause is named: {out}");
    let args = ["wait", &object, "--timeout", "60s"];
    let waiting = run(&scene, &args);
    let ((code, out, err), ()) = tokio::try_join!(waiting, async { scene.play("slow", None).await })?;
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("Database db: ready"), "{out}");
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_read_is_named_and_the_rest_is_shown() -> Result<()> {
    let scene = scene_with_shop("partly").await?;
    // The rights of a service whose policy never named StatefulSets.
    let narrow = json!({ "children": [scene.child("Deployment")] });
    let narrow = scene.policy("narrow", "Database", narrow).await?;
    scene.grant_for(&[narrow])?;
    let own = scene.kubeconfig(scene.plane.url()).await?;
    let wide = json!({ "children": [scene.child("Deployment"), scene.child("StatefulSet")] });
    let wide = scene.policy("wide", "Database", wide).await?;
    let file = scene.policies_file(&[wide])?;
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["tree", "-f", &file.to_string_lossy(), "-n", &scene.name]);
    command.args(["--kubeconfig", &own.to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(err.contains("StatefulSet.apps") && err.contains("may not list"), "{err}");
    assert!(out.contains("Deployment"), "{out}{err}");
    Ok(())
}
