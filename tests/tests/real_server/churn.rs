//! Steady under churn: scaling and lost pods of what was rolled out whole, by the controllers of Kubernetes themselves.

use acceptance::crd::CrdBuilder;
use acceptance::objects::{deployment, owned_by, playing, stateful_set};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::RollcallProcess;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, because, mentions, says};
use anyhow::Result;
use serde_json::{Value, json};

/// A ready `Database` over a Deployment of three pods and a StatefulSet of three.
async fn ready_scene(word: &str, policy: Value) -> Result<(TestTenant, RollcallProcess)> {
    let scene = TestTenant::set(word).await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let mut policy = policy;
    policy["children"] = json!([scene.child("Deployment"), scene.child("StatefulSet")]);
    policy["settle"] = json!("200ms");
    scene.policy("db", "Database", policy).await?;
    let rollcall = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 3))).await?;
    scene.create(owned_by(&db, stateful_set("store", 3))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    Ok((scene, rollcall))
}

/// Every replica of the workload is there and available, and its controller has seen its spec.
fn whole(replicas: i64) -> StateExpectation {
    StateExpectation::new("every replica is available", move |workload| {
        let status = &workload["status"];
        status["availableReplicas"] == replicas
            && status["replicas"] == replicas
            && status["observedGeneration"] == workload["metadata"]["generation"]
    })
}

/// So many replicas are there, of which so many are available.
fn available(available: i64, replicas: i64) -> StateExpectation {
    StateExpectation::new("so many replicas are available", move |workload| {
        let status = &workload["status"];
        (&status["availableReplicas"], &status["replicas"]) == (&json!(available), &json!(replicas))
    })
}

async fn scale(scene: &TestTenant, place: &str, replicas: i64) -> Result<()> {
    scene.change(place, json!({ "spec": { "replicas": replicas } })).await?;
    Ok(())
}

/// Lets one pod of the workload become unready, and waits until its controller has seen that.
async fn lose_a_pod(scene: &TestTenant, app: &str, workload: &str, of: i64) -> Result<()> {
    scene.play_one(app, "crash").await?;
    scene.until(workload, available(of - 1, of)).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_rolled_out_scales_and_loses_a_pod_without_a_word() -> Result<()> {
    let (scene, rollcall) = ready_scene("churn", json!({})).await?;
    let recorder = StateRecorder::start(&scene, &["Database", "Deployment", "StatefulSet"]).await?;
    // One by one, as an autoscaler does; 3 to 4 leaves a Deployment of 25 % maxUnavailable no pod to spare.
    for replicas in [4, 5, 6, 5] {
        scale(&scene, "Deployment/web", replicas).await?;
        scene.until("Deployment/web", whole(replicas)).await?;
    }
    for replicas in [4, 3] {
        scale(&scene, "StatefulSet/store", replicas).await?;
        scene.until("StatefulSet/store", whole(replicas)).await?;
    }
    lose_a_pod(&scene, "web", "Deployment/web", 5).await?;
    lose_a_pod(&scene, "store", "StatefulSet/store", 3).await?;
    // Both are named, and counted.
    let named = mentions("Ready", "0 of 2 ready").and(mentions("Ready", "Deployment web"));
    scene.until("Database/db", says("Ready", "True").and(named)).await?;
    rollcall.until_metric("rollcall_available_children", &[], |children| children >= 2.0).await?;
    scene.play("web", None).await?;
    scene.play("store", None).await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    rollcall.until_metric("rollcall_damped_flips_total", &[], |flips| flips >= 1.0).await?;

    let recording = recorder.stop().await?;
    let parent = scene.address("Database/db")?;
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True"], "{transcript}");
    assert!(recording.said(&parent, "Reconciling").iter().all(|said| said.entry.is_null()), "{transcript}");
    Ok(())
}

#[tokio::test]
async fn under_a_strict_policy_every_scaling_and_lost_pod_is_told() -> Result<()> {
    let (scene, _rollcall) = ready_scene("churn-strict", json!({ "availability": "strict" })).await?;
    lose_a_pod(&scene, "store", "StatefulSet/store", 3).await?;
    let named = because("Ready", "ChildrenProgressing").and(mentions("Ready", "StatefulSet store"));
    scene.until("Database/db", says("Ready", "False").and(named)).await?;
    Ok(())
}

#[tokio::test]
async fn a_new_template_and_a_loss_beyond_the_budget_are_told() -> Result<()> {
    let (scene, _rollcall) = ready_scene("churn-ends", json!({})).await?;
    // Two of three: more than the one that its maxUnavailable allows.
    lose_a_pod(&scene, "store", "StatefulSet/store", 3).await?;
    scene.play("store", Some("crash")).await?;
    scene.until("Database/db", says("Ready", "False").and(mentions("Ready", "StatefulSet store"))).await?;
    scene.play("store", None).await?;
    scene.until("Database/db", says("Ready", "True")).await?;

    let template = playing("hold", deployment("web", 3))["spec"]["template"].clone();
    scene.change("Deployment/web", json!({ "spec": { "template": template } })).await?;
    scene.until("Database/db", says("Ready", "False").and(mentions("Ready", "Deployment web"))).await?;
    Ok(())
}
