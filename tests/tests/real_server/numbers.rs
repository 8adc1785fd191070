//! How many are enough, what does not count, and how long all must have been well; whose parents are only looked at.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::objects::{condition, deployment, job, owned_by, owner_reference, pod};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, policy_address};
use acceptance::scene::TestTenant;
use acceptance::wish::{because, mentions, says};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A Database over Parts, which say of themselves what a test lets them say.
async fn over_parts(word: &str, group: &Value, more: &Value) -> Result<(TestTenant, RollcallProcess, Value)> {
    let scene = TestTenant::set(word).await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    scene.crd(&CrdBuilder::new("Part")).await?;
    let mut child = scene.child("Part");
    merge(&mut child, group);
    let mut spec = json!({ "children": [child], "settle": "100ms" });
    merge(&mut spec, more);
    scene.policy("db", "Database", spec).await?;
    let running = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    Ok((scene, running, db))
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

async fn part(scene: &TestTenant, parent: &Value, name: &str) -> Result<()> {
    scene.create(owned_by(parent, scene.custom("Part", name))).await?;
    Ok(())
}

async fn say(scene: &TestTenant, name: &str, kind: &str, status: &str) -> Result<()> {
    let said = json!({ "conditions": [{ "type": kind, "status": status, "reason": "Test" }] });
    scene.change_status(&format!("Part/{name}"), said).await?;
    Ok(())
}

#[tokio::test]
async fn a_quorum_of_a_number_holds_whatever_becomes_of_the_rest_and_then_no_more() -> Result<()> {
    let (scene, _running, db) = over_parts("two", &json!({ "quorum": 2 }), &json!({})).await?;
    for name in ["a", "b", "c"] {
        part(&scene, &db, name).await?;
        say(&scene, name, "Ready", "False").await?;
    }
    say(&scene, "a", "Ready", "True").await?;
    scene.until("Database/db", says("Ready", "False").and(mentions("Ready", "of 3 not ready"))).await?;
    say(&scene, "b", "Ready", "True").await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 3 ready"))).await?;
    let recorder = StateRecorder::start(&scene, &["Database"]).await?;
    // What is left may progress, fail and go: the quorum holds, and nothing but True is said.
    for (kind, status) in [("Ready", "False"), ("Failed", "True"), ("Stalled", "True"), ("Ready", "False")] {
        say(&scene, "c", kind, status).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    scene.delete("Part/c").await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let parent = scene.address("Database/db")?;
    let told = recorder.stop().await?.statuses(&parent, "Ready");
    ensure!(!told.is_empty() && told.iter().all(|status| status == "True"), "{told:?}");
    say(&scene, "b", "Failed", "True").await?;
    let failed = because("Ready", "ChildrenFailed").and(mentions("Ready", "Part b"));
    scene.until("Database/db", says("Ready", "False").and(failed)).await?;
    Ok(())
}

#[tokio::test]
async fn all_must_have_been_well_for_as_long_as_the_policy_holds() -> Result<()> {
    let (scene, _running, db) = over_parts("held", &json!({}), &json!({ "hold": "3s" })).await?;
    let recorder = StateRecorder::start(&scene, &["Database"]).await?;
    part(&scene, &db, "a").await?;
    say(&scene, "a", "Ready", "True").await?;
    scene.until("Database/db", because("Ready", "ChildrenSettling")).await?;
    // A flap starts it over.
    say(&scene, "a", "Ready", "False").await?;
    scene.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    let again = Instant::now();
    say(&scene, "a", "Ready", "True").await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    ensure!(again.elapsed() >= Duration::from_millis(2_900), "{:?}", again.elapsed());
    let parent = scene.address("Database/db")?;
    let told = recorder.stop().await?.statuses(&parent, "Ready");
    ensure!(told.iter().filter(|status| *status == "True").count() == 1, "{told:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_suspended_counts_for_neither_and_alone_it_is_not_enough() -> Result<()> {
    let scene = TestTenant::set("suspended").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let few = |kind: &str| {
        let mut child = scene.child(kind);
        child["expect"] = json!({ "min": 0 });
        child
    };
    let children = json!([few("Deployment"), few("Job")]);
    scene.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _running = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    let mut later = job("later");
    later["spec"]["suspend"] = json!(true);
    scene.create(owned_by(&db, later)).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Job/later", says("Suspended", "True")).await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 2 ready"))).await?;
    scene.delete("Deployment/web").await?;
    let alone = says("Ready", "False").and(because("Ready", "ChildrenSuspended"));
    let said = scene.until("Database/db", alone.and(mentions("Ready", "Job later"))).await?;
    ensure!(condition(&said, "Reconciling").is_none(), "nothing is under way: {}", said["status"]);
    scene.change("Job/later", json!({ "spec": { "suspend": false } })).await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    Ok(())
}

/// A policy over a kind whose status is not for others to write.
fn over(scene: &TestTenant, name: &str, group: &str, kind: &str) -> Value {
    let mut policy = scene.policy_manifest(name, "Database", json!({ "children": [scene.child("Pod")] }));
    policy["spec"]["parent"] = json!({ "group": group, "kind": kind });
    policy
}

#[tokio::test]
async fn parents_whose_status_belongs_to_others_are_computed_and_their_policies_say_so() -> Result<()> {
    let scene = TestTenant::set("others").await?;
    // What installs the kinds of Rollcall, and is not looked at.
    scene.crd(&CrdBuilder::new("Database")).await?;
    scene.policy("none", "Database", json!({ "children": [scene.child("Pod")] })).await?;
    let kinds = [
        ("built-in", "apps", "Deployment"),
        ("argocd", "argoproj.io", "Application"),
        ("flux", "kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("kro", "kro.run", "ResourceGraphDefinition"),
    ];
    for (name, group, kind) in kinds {
        scene.admin.create(&over(&scene, name, group, kind)).await?;
    }
    let running = scene.rollcall(&[]).await?;
    let web = scene.create(deployment("web", 1)).await?;
    let mut below = pod("below");
    below["metadata"]["ownerReferences"] = json!([owner_reference(&web)]);
    scene.create(below).await?;
    for (name, _, kind) in kinds {
        let said =
            says("Accepted", "True").and(because("Accepted", "Shadow")).and(mentions("Accepted", kind));
        scene
            .until_at(&policy_address(&scene, name)?, &said.and(mentions("Accepted", "nothing is written")))
            .await?;
    }
    let policy = format!("policy=\"{}\"", scene.policy_name("built-in"));
    running.until_metric("rollcall_parents", &[&policy, "verdict=\"Ready\""], |n| n > 0.5).await?;
    let web = scene.get("Deployment/web").await?;
    ensure!(condition(&web, "Ready").is_none(), "{}", web["status"]);
    ensure!(running.metric("rollcall_writes_total", &[&policy]).await? < 0.5, "written");
    Ok(())
}

#[tokio::test]
async fn a_parent_in_the_middle_that_is_told_nothing_counts_with_what_is_known_of_it() -> Result<()> {
    let scene = TestTenant::set("middle").await?;
    for kind in ["Platform", "Database", "Part"] {
        scene.crd(&CrdBuilder::new(kind)).await?;
    }
    let below =
        |kind: &str, mode: &str| json!({ "children": [scene.child(kind)], "settle": "100ms", "mode": mode });
    scene.policy("top", "Platform", below("Database", "write")).await?;
    scene.policy("middle", "Database", below("Part", "shadow")).await?;
    let _running = scene.rollcall(&[]).await?;
    let platform = scene.create(scene.custom("Platform", "all")).await?;
    let db = scene.create(owned_by(&platform, scene.custom("Database", "db"))).await?;
    part(&scene, &db, "a").await?;
    say(&scene, "a", "Ready", "False").await?;
    let named = mentions("Ready", "Database db").and(mentions("Ready", "Part a"));
    scene.until("Platform/all", says("Ready", "False").and(named)).await?;
    say(&scene, "a", "Ready", "True").await?;
    scene.until("Platform/all", says("Ready", "True")).await?;
    say(&scene, "a", "Failed", "True").await?;
    scene.until("Platform/all", because("Ready", "ChildrenFailed")).await?;
    let db = scene.get("Database/db").await?;
    ensure!(db["status"].is_null(), "it is in shadow: {}", db["status"]);
    Ok(())
}
