//! How children are found, and how many are expected: references, copied labels, numbers that the parent gives.

use acceptance::crd::CrdBuilder;
use acceptance::objects::{deployment, owned_by};
use acceptance::scene::TestTenant;
use acceptance::wish::{because, mentions, says};
use anyhow::Result;
use serde_json::{Value, json};

/// A scene with `Database` over this one group of children, and Rollcall.
async fn over(word: &str, child: Value) -> Result<(TestTenant, acceptance::rollcall::RollcallProcess)> {
    let scene = TestTenant::set(word).await?;
    scene.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let mut group = scene.child("Deployment");
    for (key, value) in child.as_object().into_iter().flatten() {
        group[key] = value.clone();
    }
    scene.policy("db", "Database", json!({ "children": [group], "settle": "100ms" })).await?;
    let rollcall = scene.rollcall(&[]).await?;
    Ok((scene, rollcall))
}

fn reference(name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name })
}

#[tokio::test]
async fn what_a_parent_refers_to_is_its_child_and_all_of_it_is_expected() -> Result<()> {
    let (scene, _rollcall) = over("refs", json!({ "find": { "refs": "spec.resourceRefs[*]" } })).await?;
    let mut db = scene.custom("Database", "db");
    let other = json!({ "apiVersion": "v1", "kind": "Secret", "name": "not-meant" });
    db["spec"]["resourceRefs"] = json!([reference("web"), reference("api"), other]);
    scene.create(db).await?;
    scene.create(deployment("web", 1)).await?;
    scene.create(deployment("stranger", 1)).await?;
    let missing = because("Ready", "ChildrenMissing").and(mentions("Ready", "Deployment api missing"));
    scene.until("Database/db", says("Ready", "False").and(missing)).await?;
    scene.create(deployment("api", 1)).await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    scene.change("Database/db", json!({ "spec": { "resourceRefs": [reference("web")] } })).await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    // A path that leads to something else is said of this parent alone.
    let mut odd = scene.custom("Database", "odd");
    odd["spec"]["resourceRefs"] = json!(["web"]);
    scene.create(odd).await?;
    let named = because("Ready", "TemplateFailed").and(mentions("Ready", "spec.resourceRefs[*]"));
    scene.until("Database/odd", says("Ready", "Unknown").and(named)).await?;
    Ok(())
}

#[tokio::test]
async fn labels_that_were_copied_to_a_siblings_children_do_not_leak() -> Result<()> {
    let find = json!({ "find": { "labels": { "team": "{parent.metadata.labels.team}" } } });
    let (scene, _rollcall) = over("siblings", find).await?;
    let labelled = |mut object: Value| {
        object["metadata"]["labels"]["team"] = json!("blue");
        object
    };
    let one = scene.create(labelled(scene.custom("Database", "one"))).await?;
    let two = scene.create(labelled(scene.custom("Database", "two"))).await?;
    scene.create(owned_by(&one, labelled(deployment("web-one", 1)))).await?;
    scene.create(owned_by(&two, labelled(deployment("web-two", 1)))).await?;
    for name in ["Database/one", "Database/two"] {
        scene.until(name, says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    }
    Ok(())
}

#[tokio::test]
async fn as_many_children_as_the_parent_asks_for_are_expected() -> Result<()> {
    let (scene, _rollcall) = over("asked", json!({ "expect": { "cel": "6 / parent.spec.size" } })).await?;
    let mut db = scene.custom("Database", "db");
    db["spec"]["size"] = json!(3);
    let db = scene.create(db).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    let missing = mentions("Ready", "Deployment missing (1 of at least 2 found)");
    scene.until("Database/db", because("Ready", "ChildrenMissing").and(missing)).await?;
    scene.create(owned_by(&db, deployment("api", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    // Nobody can say how many that would be: this parent is Unknown, and the other one is not concerned.
    let mut none = scene.custom("Database", "none");
    none["spec"]["size"] = json!(0);
    let none = scene.create(none).await?;
    scene.create(owned_by(&none, deployment("lone", 1))).await?;
    let named = because("Ready", "TemplateFailed").and(mentions("Ready", "divi"));
    scene.until("Database/none", says("Ready", "Unknown").and(named)).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_quorum_is_enough_and_never_one_of_nothing() -> Result<()> {
    let (scene, _rollcall) = over("quorum", json!({ "quorum": "50%", "expect": { "min": 0 } })).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.until("Database/db", says("Ready", "False").and(because("Ready", "ChildrenMissing"))).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    scene.create(owned_by(&db, acceptance::objects::playing("hold", deployment("slow", 1)))).await?;
    scene.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 2 ready"))).await?;
    scene.play("web", Some("crash")).await?;
    scene.until("Database/db", says("Ready", "False")).await?;
    Ok(())
}
