//! Controllers that take off and put back each other's finalizers.

use acceptance::caller::code_of;
use acceptance::crd::Crd;
use acceptance::kind::Address;
use acceptance::kopf::Kopf;
use acceptance::objects::{deployment, owned_by};
use acceptance::rollcall::Rollcall;
use acceptance::scene::Scene;
use acceptance::wish::{Wish, gone, mentions, says};
use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

/// An operator that wants its finalizer on what is guarded, and is slow where it is told to be.
const OPERATOR: &str = r#"
import os, time, kopf

NAME = os.environ["NAME"]

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = f"{NAME}.example.com/guard"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=f"{NAME}.example.com")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=f"{NAME}.example.com")
    settings.posting.enabled = False

@kopf.on.event("GROUP", "v1", "databases")
def look(**_):
    time.sleep(float(os.environ["SLOW"]))

@kopf.on.delete("GROUP", "v1", "databases", labels={"guard": "yes"})
def release(**_):
    pass
"#;

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn has_finalizers(names: &'static [&'static str]) -> Wish {
    Wish::new(&format!("held by {names:?}"), move |object| {
        let mut held = finalizers(object);
        held.sort_unstable();
        held == names
    })
}

async fn told(scene: &Scene, running: &Rollcall, place: &str, words: &str) -> Result<String> {
    let parent = scene.until(place, mentions("Ready", words)).await?;
    running.until_metric("rollcall_finalizer_flaps_total", &[], |times| times >= 2.0).await?;
    let address = scene.address(place)?;
    let named = format!("name=\"{}\"", address.name);
    running.until_metric("rollcall_parent_finalizers_flapping_info", &[&named], |one| one > 0.0).await?;
    let event = async || {
        let (events, _) = scene.admin.list(&scene.kind("Event"), &scene.name, "").await?;
        let of_it =
            |e: &&Value| e["reason"] == "FinalizerFlapping" && e["involvedObject"]["name"] == *address.name;
        anyhow::Ok(events.iter().find(of_it).map(|event| event["message"].to_string()))
    };
    let mut note = event().await?;
    for _ in 0..500 {
        if note.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        note = event().await?;
    }
    assert!(note.as_ref().is_some_and(|note| note.contains("taken off and put back")), "{note:?}");
    let entry = acceptance::objects::condition(&parent, "Ready").cloned().unwrap_or_default();
    eprintln!("{entry:#}");
    Ok(entry["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn two_operators_in_old_and_new_kopf_that_drop_each_others_finalizers_are_found_out() -> Result<()> {
    let scene = Scene::set("finalizers").await?;
    scene.crd(&Crd::new("Database").shapeless()).await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    scene.policy("db", "Database", spec).await?;
    let running = scene.rollcall(&[]).await?;
    let _old = scene.script("old", Kopf::Before144, OPERATOR, &[("NAME", "old"), ("SLOW", "1")])?;
    let _new = scene.script("new", Kopf::Current, OPERATOR, &[("NAME", "new"), ("SLOW", "0")])?;
    scene.create(scene.custom("Database", "db")).await?;
    let both: &[&str] = &["new.example.com/guard", "old.example.com/guard"];
    // How often one hits upon the other is a matter of chance.
    for _ in 0..20 {
        if mentions("Ready", "put back").holds(Some(&scene.get("Database/db").await?)) {
            break;
        }
        scene.change("Database/db", json!({ "metadata": { "labels": { "guard": "yes" } } })).await?;
        scene.until("Database/db", has_finalizers(both)).await?;
        scene.change("Database/db", json!({ "metadata": { "labels": { "guard": null } } })).await?;
        scene.until("Database/db", has_finalizers(&[])).await?;
    }
    let message = told(&scene, &running, "Database/db", "finalizer").await?;
    assert!(message.contains(".example.com/guard"), "{message}");
    assert!(!message.contains("managers"), "both are called kopf, which tells nobody apart: {message}");
    scene.delete("Database/db").await?;
    scene.until("Database/db", gone()).await?;
    Ok(())
}

/// A controller in Go's fashion: it updates the whole object to what it wants of it, with its own finalizer alone.
async fn put_own(scene: &Scene, address: &Address) -> Result<()> {
    put_as(scene, address, "shop-controller", |_| json!(["shop-controller.example.com/lock"])).await
}

async fn put_as(
    scene: &Scene,
    address: &Address,
    manager: &str,
    finalizers: impl Fn(&Value) -> Value,
) -> Result<()> {
    let path = format!("{}?fieldManager={manager}", address.path());
    loop {
        let mut read = scene.admin.get(address).await?.context("it is gone")?;
        read["metadata"]["finalizers"] = finalizers(&read["metadata"]["finalizers"]);
        match scene.admin.send(Method::PUT, &path, "application/json", serde_json::to_vec(&read)?).await {
            Ok(_) => return Ok(()),
            Err(error) if code_of(&error) == Some(409) => {}
            Err(error) => return Err(error),
        }
    }
}

#[tokio::test]
async fn a_controller_that_puts_the_whole_object_is_found_out_beside_kopf_and_named() -> Result<()> {
    let scene = Scene::set("putback").await?;
    scene.crd(&Crd::new("Database").shapeless()).await?;
    scene.crd(&Crd::new("Platform")).await?;
    let web = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    let databases = json!({ "children": [scene.child("Database")], "settle": "100ms" });
    scene.policy("db", "Database", web).await?;
    scene.policy("all", "Platform", databases).await?;
    let running = scene.rollcall(&[]).await?;
    let _kopf = scene.script("new", Kopf::Current, OPERATOR, &[("NAME", "new"), ("SLOW", "0")])?;
    let platform = scene.create(scene.custom("Platform", "all")).await?;
    let mut db = owned_by(&platform, scene.custom("Database", "db"));
    db["metadata"]["labels"] = json!({ "guard": "yes" });
    scene.create(db).await?;
    let address = scene.address("Database/db")?;
    scene.until("Database/db", has_finalizers(&["new.example.com/guard"])).await?;
    for _ in 0..3 {
        put_own(&scene, &address).await?;
        let both: &[&str] = &["new.example.com/guard", "shop-controller.example.com/lock"];
        scene.until("Database/db", has_finalizers(both)).await?;
    }
    let message = told(&scene, &running, "Database/db", "new.example.com/guard").await?;
    assert!(message.contains("(managers kopf, shop-controller)"), "{message}");
    assert!(!message.contains("lock"), "the lock was never taken off: {message}");
    told(&scene, &running, "Platform/all", "Database db: finalizer new.example.com/guard").await?;
    Ok(())
}

#[tokio::test]
async fn who_fights_over_a_finalizer_of_a_child_that_is_no_parent_is_named_too() -> Result<()> {
    let scene = Scene::set("childlock").await?;
    scene.crd(&Crd::new("Database")).await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    scene.policy("db", "Database", spec).await?;
    let running = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    let web = scene.address("Deployment/web")?;
    for _ in 0..3 {
        let both = |held: &Value| {
            let mut held = held.as_array().cloned().unwrap_or_default();
            held.push(json!("backup.example.com/hold"));
            json!(held)
        };
        put_as(&scene, &web, "backup-controller", both).await?;
        put_own(&scene, &web).await?;
    }
    let message =
        told(&scene, &running, "Database/db", "Deployment web: finalizer backup.example.com/hold").await?;
    assert!(message.contains("(managers backup-controller, shop-controller)"), "{message}");
    assert!(!message.contains("lock"), "the lock was never taken off: {message}");
    Ok(())
}
