//! The stage itself, before anyone plays on it: what the other tests take for granted.

use acceptance::crd::CrdBuilder;
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{deployment, job, owned_by, playing, pod, stateful_set, uid};
use acceptance::recorder::StateRecorder;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, gone, says, there};
use anyhow::Result;
use http::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn a_control_plane_has_the_version_that_it_was_built_from() -> Result<()> {
    let scene = TestTenant::set("version").await?;
    let version = scene.plane.kubectl(&["version", "-o", "json"])?;
    assert!(version.contains("v1.36.3"), "{version}");
    Ok(())
}

#[tokio::test]
async fn workloads_become_ready_and_jobs_complete() -> Result<()> {
    let scene = TestTenant::set("workloads").await?;
    scene.create(deployment("web", 3)).await?;
    scene.create(stateful_set("db", 2)).await?;
    scene.create(job("migrate")).await?;
    scene.until("Deployment/web", says("Available", "True")).await?;
    scene.until("Job/migrate", says("Complete", "True")).await?;
    let all = StateExpectation::new("all of its replicas ready", |db| db["status"]["readyReplicas"] == 2);
    scene.until("StatefulSet/db", all).await?;
    Ok(())
}

#[tokio::test]
async fn pods_play_the_part_that_they_are_given() -> Result<()> {
    let scene = TestTenant::set("parts").await?;
    scene.create(playing("hold", pod("held"))).await?;
    scene.create(playing("fail", job("broken"))).await?;
    scene.until("Job/broken", says("Failed", "True")).await?;
    assert_eq!(scene.get("Pod/held").await?["status"]["phase"], "Pending");
    scene.play("held", None).await?;
    scene.until("Pod/held", says("Ready", "True")).await?;
    scene.play("held", Some("crash")).await?;
    scene.until("Pod/held", says("Ready", "False")).await?;
    scene.play("held", None).await?;
    scene.until("Pod/held", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn every_shape_of_custom_resource_is_served() -> Result<()> {
    let scene = TestTenant::set("shapes").await?;
    let shapes = [
        CrdBuilder::new("Listed"),
        CrdBuilder::new("Atomic").atomic(),
        CrdBuilder::new("Pruned").pruning(),
        CrdBuilder::new("Flat").without_status_subresource(),
        CrdBuilder::new("Shapeless").shapeless(),
        CrdBuilder::new("ClusterWide"),
    ];
    for crd in &shapes {
        scene.crd(crd).await?;
    }
    let pruned = scene.create(scene.custom("Pruned", "one")).await?;
    assert!(!uid(&pruned).is_empty());
    let entry = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Up" });
    let left = scene.change_status("Pruned/one", entry.clone()).await?;
    assert_eq!(left["status"], json!({ "phase": "Up" }), "conditions are pruned");
    scene.create(scene.custom("Shapeless", "one")).await?;
    let odd = scene.change_status("Shapeless/one", json!(true)).await?;
    assert_eq!(odd["status"], true, "a status that is no object");
    let flat = scene.create(scene.custom("Flat", "one")).await?;
    let moved = scene.change("Flat/one", json!({ "status": entry })).await?;
    assert!(moved["metadata"]["generation"].as_i64() > flat["metadata"]["generation"].as_i64());
    scene.create(scene.custom("ClusterWide", &scene.name)).await?;
    scene.until(&format!("ClusterWide/{}", scene.name), there()).await?;
    Ok(())
}

/// A stand-in for Rollcall that says True when told so, to see that the judge cannot be fooled.
async fn claim(scene: &TestTenant, status: &str, generation: i64) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "observedGeneration": generation });
    scene.change_status("Database/db", json!({ "conditions": [entry] })).await?;
    Ok(())
}

#[tokio::test]
async fn the_recorder_believes_a_true_word() -> Result<()> {
    let scene = TestTenant::set("honest").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let recorder = StateRecorder::start(&scene, &["Database", "Deployment", "Job"]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    claim(&scene, "Unknown", 1).await?;
    scene.create(owned_by(&db, deployment("web", 2))).await?;
    scene.create(owned_by(&db, job("migrate"))).await?;
    scene.until("Deployment/web", says("Available", "True")).await?;
    scene.until("Job/migrate", says("Complete", "True")).await?;
    claim(&scene, "True", 1).await?;
    scene.delete("Deployment/web").await?;
    scene.until("Deployment/web", gone()).await?;
    let recording = recorder.stop().await?;
    let parent = scene.address("Database/db")?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1), ("Job", 1)])?;
    assert_eq!(recording.said(&parent, "Ready").len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_recorder_convicts_each_kind_of_false_ready() -> Result<()> {
    let scene = TestTenant::set("liar").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let recorder = StateRecorder::start(&scene, &["Database", "Deployment"]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    claim(&scene, "True", 1).await?;
    scene.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    claim(&scene, "False", 1).await?;
    claim(&scene, "True", 1).await?;
    let recording = recorder.stop().await?;
    let parent = scene.address("Database/db")?;
    assert!(recording.first_word_is_unknown(&parent, "Ready").is_err());
    let too_few = recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)]);
    assert!(format!("{too_few:?}").contains("0 of 1 Deployment exist"), "{too_few:?}");
    let not_ready = recording.no_false_ready(&parent, "Ready", &[("Deployment", 0)]);
    assert!(format!("{not_ready:?}").contains("not ready"), "{not_ready:?}");
    Ok(())
}

#[tokio::test]
async fn the_recorder_convicts_a_word_for_another_generation() -> Result<()> {
    let scene = TestTenant::set("stale").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let recorder = StateRecorder::start(&scene, &["Database"]).await?;
    scene.create(scene.custom("Database", "db")).await?;
    scene.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    claim(&scene, "True", 1).await?;
    let recording = recorder.stop().await?;
    let verdict = recording.no_false_ready(&scene.address("Database/db")?, "Ready", &[]);
    assert!(format!("{verdict:?}").contains("another generation"), "{verdict:?}");
    Ok(())
}

#[tokio::test]
async fn a_gate_passes_holds_and_refuses() -> Result<()> {
    let scene = TestTenant::set("gate").await?;
    let gate = ApiGate::open(&scene.admin).await?;
    let file = scene.folder.join("gate.kubeconfig");
    scene.plane.kubeconfig_for(&file, &gate.url, "nobody", &scene.name)?;
    let guest = acceptance::caller::ApiCaller::from_kubeconfig(&file).await?;
    let place = scene.address("ConfigMap/note")?;
    let mut note = acceptance::objects::config_map("note");
    note["metadata"]["namespace"] = json!(scene.name);
    guest.create(&note).await?;

    gate.set(GateRule::Hold(Method::PATCH, "configmaps".to_owned()));
    let write = {
        let (guest, place) = (guest.clone(), place.clone());
        tokio::spawn(async move { guest.merge(&place, "", &json!({ "data": { "a": "1" } })).await })
    };
    gate.caught().await?;
    assert!(scene.get("ConfigMap/note").await?["data"].is_null(), "a held write is not done");
    gate.set(GateRule::Pass);
    write.await??;
    assert_eq!(scene.get("ConfigMap/note").await?["data"]["a"], "1");

    gate.set(GateRule::LoseAnswer(Method::PATCH, "configmaps".to_owned()));
    assert!(guest.merge(&place, "", &json!({ "data": { "a": "2" } })).await.is_err());
    assert_eq!(scene.get("ConfigMap/note").await?["data"]["a"], "2", "done, though the answer was lost");

    gate.set(GateRule::Answer(Method::GET, "configmaps".to_owned(), StatusCode::FORBIDDEN));
    assert!(guest.get(&place).await.is_err());
    gate.set(GateRule::Down);
    assert!(guest.create(&note).await.is_err());
    gate.set(GateRule::Pass);
    assert!(guest.get(&place).await?.is_some());
    Ok(())
}
