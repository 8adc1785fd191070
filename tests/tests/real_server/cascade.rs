//! Parents that are themselves children.

use acceptance::crd::Crd;
use acceptance::objects::{owned_by, owner_reference, playing, stateful_set};
use acceptance::recorder::Recorder;
use acceptance::scene::Scene;
use acceptance::wish::{because, mentions, says};
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn a_leaf_two_levels_down_reaches_the_top() -> Result<()> {
    let scene = Scene::set("cascade").await?;
    scene.crd(&Crd::new("Platform")).await?;
    scene.crd(&Crd::new("Database")).await?;
    let (leaves, databases) = (json!([scene.child("StatefulSet")]), json!([scene.child("Database")]));
    scene.policy("low", "Database", json!({ "children": leaves, "settle": "200ms" })).await?;
    scene.policy("high", "Platform", json!({ "children": databases, "settle": "200ms" })).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let recorder = Recorder::start(&scene, &["Platform", "Database", "StatefulSet"]).await?;

    let platform = scene.create(scene.custom("Platform", "all")).await?;
    for name in ["main", "spare"] {
        let db = scene.create(owned_by(&platform, scene.custom("Database", name))).await?;
        scene.create(owned_by(&db, playing("hold", stateful_set(name, 1)))).await?;
        scene.until_pods(name, 1).await?;
    }
    scene.until("Platform/all", says("Ready", "False").and(mentions("Ready", "2 of 2 not ready"))).await?;
    scene.play("spare", None).await?;
    let one = mentions("Ready", "1 of 2 not ready").and(mentions("Ready", "Database main"));
    scene.until("Platform/all", one).await?;
    scene.play("main", None).await?;
    scene.until("Platform/all", says("Ready", "True")).await?;
    scene.play("main", Some("crash")).await?;
    scene.until("Platform/all", says("Ready", "False").and(mentions("Ready", "Database main"))).await?;
    scene.play("main", None).await?;
    scene.until("Platform/all", says("Ready", "True")).await?;

    let recording = recorder.stop().await?;
    recording.first_word_is_unknown(&scene.address("Platform/all")?, "Ready")?;
    for name in ["Database/main", "Database/spare"] {
        recording.no_false_ready(&scene.address(name)?, "Ready", &[("StatefulSet", 1)])?;
    }
    Ok(())
}

#[tokio::test]
async fn owners_in_a_circle_hold_each_other_back_and_nobody_else() -> Result<()> {
    let scene = Scene::set("circle").await?;
    scene.crd(&Crd::new("Chicken")).await?;
    scene.crd(&Crd::new("Egg")).await?;
    let (eggs, chickens) = (json!([scene.child("Egg")]), json!([scene.child("Chicken")]));
    scene.policy("chickens", "Chicken", json!({ "children": eggs, "settle": "100ms" })).await?;
    scene.policy("eggs", "Egg", json!({ "children": chickens, "settle": "100ms" })).await?;
    let rollcall = scene.rollcall(&[]).await?;
    let chicken = scene.create(scene.custom("Chicken", "first")).await?;
    let egg = scene.create(owned_by(&chicken, scene.custom("Egg", "first"))).await?;
    let back = json!({ "metadata": { "ownerReferences": [owner_reference(&egg)] } });
    scene.change("Chicken/first", back).await?;
    // Its own owner is nobody's child.
    let lone = scene.create(scene.custom("Egg", "lone")).await?;
    let own = json!({ "metadata": { "ownerReferences": [owner_reference(&lone)] } });
    scene.change("Egg/lone", own).await?;
    scene.until("Egg/lone", because("Ready", "ChildrenMissing")).await?;
    rollcall.until_printed("cycle").await?;

    for place in ["Chicken/first", "Egg/first", "Egg/lone"] {
        let status = scene.until(place, acceptance::wish::has("Ready", true)).await?;
        let entry = acceptance::objects::condition(&status, "Ready").cloned().unwrap_or_default();
        assert_ne!(entry["status"], "True", "{place}: {entry}");
    }
    let healthy = scene.create(scene.custom("Chicken", "healthy")).await?;
    scene.create(owned_by(&healthy, scene.custom("Egg", "empty"))).await?;
    scene.until("Chicken/healthy", mentions("Ready", "Egg empty")).await?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_scoped_parent_counts_children_in_namespaces_and_a_namespaced_owner_none_elsewhere()
-> Result<()> {
    let scene = Scene::set("scopes").await?;
    scene.crd(&Crd::new("ClusterStack")).await?;
    scene.crd(&Crd::new("Stack")).await?;
    let children = json!([scene.child("StatefulSet")]);
    scene.policy("wide", "ClusterStack", json!({ "children": children, "settle": "100ms" })).await?;
    scene.policy("narrow", "Stack", json!({ "children": children, "settle": "100ms" })).await?;
    let _rollcall = scene.rollcall(&[]).await?;
    let wide = scene.create(scene.custom("ClusterStack", "wide")).await?;
    scene.create(owned_by(&wide, stateful_set("below", 1))).await?;
    scene.until("ClusterStack/wide", says("Ready", "True")).await?;

    // A child elsewhere that names this owner would be collected as an orphan; before that, it does not count.
    let elsewhere = Scene::set("elsewhere").await?;
    let narrow = scene.create(scene.custom("Stack", "narrow")).await?;
    elsewhere.create(owned_by(&narrow, stateful_set("stray", 1))).await?;
    scene.until("Stack/narrow", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}
