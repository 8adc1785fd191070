//! The stage itself, before anyone plays on it: what the other tests take for granted.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, gone, says, there};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{deployment, job, owned_by, playing, pod, stateful_set, uid};
use acceptance::recorder::StateRecorder;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use http::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn a_control_plane_has_the_version_that_it_was_built_from() -> Result<()> {
    let tenant = TestTenant::start("version").await?;
    let version = tenant.plane.kubectl(&["version", "-o", "json"])?;
    assert!(version.contains("v1.36.3"), "{version}");
    Ok(())
}

#[tokio::test]
async fn workloads_become_ready_and_jobs_complete() -> Result<()> {
    let tenant = TestTenant::start("workloads").await?;
    tenant.create(deployment("web", 3)).await?;
    tenant.create(stateful_set("db", 2)).await?;
    tenant.create(job("migrate")).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    tenant.until("Job/migrate", says("Complete", "True")).await?;
    let all = StateExpectation::new("all of its replicas ready", |db| db["status"]["readyReplicas"] == 2);
    tenant.until("StatefulSet/db", all).await?;
    Ok(())
}

#[tokio::test]
async fn pods_play_the_part_that_they_are_given() -> Result<()> {
    let tenant = TestTenant::start("parts").await?;
    tenant.create(playing("hold", pod("held"))).await?;
    tenant.create(playing("fail", job("broken"))).await?;
    tenant.until("Job/broken", says("Failed", "True")).await?;
    assert_eq!(tenant.get("Pod/held").await?["status"]["phase"], "Pending");
    tenant.play("held", None).await?;
    tenant.until("Pod/held", says("Ready", "True")).await?;
    tenant.play("held", Some("crash")).await?;
    tenant.until("Pod/held", says("Ready", "False")).await?;
    tenant.play("held", None).await?;
    tenant.until("Pod/held", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn every_shape_of_custom_resource_is_served() -> Result<()> {
    let tenant = TestTenant::start("shapes").await?;
    let shapes = [
        CrdBuilder::new("Listed"),
        CrdBuilder::new("Atomic").atomic(),
        CrdBuilder::new("Pruned").pruning(),
        CrdBuilder::new("Flat").without_status_subresource(),
        CrdBuilder::new("Shapeless").shapeless(),
        CrdBuilder::new("ClusterWide"),
    ];
    for crd in &shapes {
        tenant.crd(crd).await?;
    }
    let pruned = tenant.create(tenant.custom("Pruned", "one")).await?;
    assert!(!uid(&pruned).is_empty());
    let entry = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Up" });
    let left = tenant.change_status("Pruned/one", entry.clone()).await?;
    assert_eq!(left["status"], json!({ "phase": "Up" }), "conditions are pruned");
    tenant.create(tenant.custom("Shapeless", "one")).await?;
    let odd = tenant.change_status("Shapeless/one", json!(true)).await?;
    assert_eq!(odd["status"], true, "a status that is no object");
    let flat = tenant.create(tenant.custom("Flat", "one")).await?;
    let moved = tenant.change("Flat/one", json!({ "status": entry })).await?;
    assert!(moved["metadata"]["generation"].as_i64() > flat["metadata"]["generation"].as_i64());
    tenant.create(tenant.custom("ClusterWide", &tenant.name)).await?;
    tenant.until(&format!("ClusterWide/{}", tenant.name), there()).await?;
    Ok(())
}

/// A stand-in for Rollcall that says True when told so, to see that the judge cannot be fooled.
async fn claim(tenant: &TestTenant, status: &str, generation: i64) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "observedGeneration": generation });
    tenant.change_status("Database/db", json!({ "conditions": [entry] })).await?;
    Ok(())
}

#[tokio::test]
async fn the_recorder_believes_a_true_word() -> Result<()> {
    let tenant = TestTenant::start("honest").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "Job"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    claim(&tenant, "Unknown", 1).await?;
    tenant.create(owned_by(&db, deployment("web", 2))).await?;
    tenant.create(owned_by(&db, job("migrate"))).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    tenant.until("Job/migrate", says("Complete", "True")).await?;
    claim(&tenant, "True", 1).await?;
    tenant.delete("Deployment/web").await?;
    tenant.until("Deployment/web", gone()).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1), ("Job", 1)])?;
    assert_eq!(recording.said(&parent, "Ready").len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_recorder_convicts_each_kind_of_false_ready() -> Result<()> {
    let tenant = TestTenant::start("liar").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    claim(&tenant, "True", 1).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    claim(&tenant, "False", 1).await?;
    claim(&tenant, "True", 1).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    assert!(recording.first_word_is_unknown(&parent, "Ready").is_err());
    let too_few = recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)]);
    assert!(format!("{too_few:?}").contains("0 of 1 Deployment exist"), "{too_few:?}");
    let not_ready = recording.no_false_ready(&parent, "Ready", &[("Deployment", 0)]);
    assert!(format!("{not_ready:?}").contains("not ready"), "{not_ready:?}");
    Ok(())
}

#[tokio::test]
async fn the_recorder_convicts_a_word_for_another_generation() -> Result<()> {
    let tenant = TestTenant::start("stale").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.create(tenant.custom("Database", "db")).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    claim(&tenant, "True", 1).await?;
    let recording = recorder.stop().await?;
    let verdict = recording.no_false_ready(&tenant.address("Database/db")?, "Ready", &[]);
    assert!(format!("{verdict:?}").contains("another generation"), "{verdict:?}");
    Ok(())
}

#[tokio::test]
async fn a_gate_passes_holds_and_refuses() -> Result<()> {
    let tenant = TestTenant::start("gate").await?;
    let gate = ApiGate::open(&tenant.admin).await?;
    let file = tenant.folder.join("gate.kubeconfig");
    tenant.plane.kubeconfig_for(&file, &gate.url, "nobody", &tenant.name)?;
    let guest = acceptance::caller::ApiCaller::from_kubeconfig(&file).await?;
    let place = tenant.address("ConfigMap/note")?;
    let mut note = acceptance::objects::config_map("note");
    note["metadata"]["namespace"] = json!(tenant.name);
    guest.create(&note).await?;

    gate.set(GateRule::Hold(Method::PATCH, "configmaps".to_owned()));
    let write = {
        let (guest, place) = (guest.clone(), place.clone());
        tokio::spawn(async move { guest.merge(&place, "", &json!({ "data": { "a": "1" } })).await })
    };
    gate.caught().await?;
    assert!(tenant.get("ConfigMap/note").await?["data"].is_null(), "a held write is not done");
    gate.set(GateRule::Pass);
    write.await??;
    assert_eq!(tenant.get("ConfigMap/note").await?["data"]["a"], "1");

    gate.set(GateRule::LoseAnswer(Method::PATCH, "configmaps".to_owned()));
    assert!(guest.merge(&place, "", &json!({ "data": { "a": "2" } })).await.is_err());
    assert_eq!(tenant.get("ConfigMap/note").await?["data"]["a"], "2", "done, though the answer was lost");

    gate.set(GateRule::Answer(Method::GET, "configmaps".to_owned(), StatusCode::FORBIDDEN));
    assert!(guest.get(&place).await.is_err());
    gate.set(GateRule::Down);
    assert!(guest.create(&note).await.is_err());
    gate.set(GateRule::Pass);
    assert!(guest.get(&place).await?.is_some());
    Ok(())
}
