//! With the last entry of Rollcall's goes a list that holds nothing else, and what the CRD's schema says by default shows again.

use acceptance::crd::CrdBuilder;
use acceptance::objects::{deployment, owned_by};
use acceptance::rollcall::{RollcallProcess, policy_address, rollcall};
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, says};
use anyhow::Result;
use serde_json::{Value, json};

async fn ready_database(scene: &TestTenant) -> Result<(Value, RollcallProcess)> {
    let policy = scene.policy("db", "Database", over_deployments(scene)).await?;
    let running = scene.rollcall(&[]).await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, deployment("web", 1))).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    Ok((policy, running))
}

fn over_deployments(scene: &TestTenant) -> Value {
    json!({ "children": [scene.child("Deployment")], "settle": "100ms" })
}

/// As a new object of that kind says, of which no policy was ever told.
async fn untouched(scene: &TestTenant, kind: &str) -> Result<Value> {
    scene.create(scene.custom(kind, "untouched")).await?;
    Ok(scene.get(&format!("{kind}/untouched")).await?["status"].clone())
}

fn has_status(wanted: &Value) -> StateExpectation {
    let wanted = wanted.clone();
    StateExpectation::new("without a trace in its status", move |object| object["status"] == wanted)
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// For a list with entries by type and for one that is replaced as a whole.
#[tokio::test]
async fn where_a_policy_goes_the_default_of_the_crd_shows_again() -> Result<()> {
    for (word, crd) in
        [("default-map", CrdBuilder::new("Database")), ("default-atom", CrdBuilder::new("Database").atomic())]
    {
        let scene = TestTenant::set(word).await?;
        scene.crd_with_defaults(&crd).await?;
        let first = untouched(&scene, "Database").await?;
        assert_eq!(first["conditions"][0]["reason"], "ChildrenPending", "{first}");
        let (_, running) = ready_database(&scene).await?;
        let policy = policy_address(&scene, "db")?;
        scene.admin.delete(&policy).await?;
        let released = scene.until("Database/db", has_status(&first)).await?;
        // The default is in our words, and is never taken for an entry that is still to be removed.
        running.until_printed("the entries of a deleted policy are removed").await?;
        assert_eq!(version(&scene.get("Database/db").await?), version(&released), "nothing more was written");
        scene.policy("db", "Database", over_deployments(&scene)).await?;
        scene.until("Database/db", says("Ready", "True")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_a_default_nothing_is_left_and_what_others_say_stays() -> Result<()> {
    let scene = TestTenant::set("last-entry").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let (_, _running) = ready_database(&scene).await?;
    let beside = scene.create(scene.custom("Database", "beside")).await?;
    scene.create(owned_by(&beside, deployment("beside", 1))).await?;
    scene.until("Database/beside", says("Ready", "True")).await?;
    let synced = json!({ "type": "Synced", "status": "True" });
    let added = json!([{ "op": "add", "path": "/status/conditions/-", "value": synced }]);
    scene.admin.json_patch(&scene.address("Database/beside")?, "/status", &added).await?;
    scene.admin.delete(&policy_address(&scene, "db")?).await?;
    scene.until("Database/db", has_status(&json!({}))).await?;
    scene.until("Database/beside", has_status(&json!({ "conditions": [synced] }))).await?;
    Ok(())
}

#[tokio::test]
async fn an_uninstall_brings_the_default_back_too_and_twice_it_writes_nothing() -> Result<()> {
    let scene = TestTenant::set("default-release").await?;
    scene.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let first = untouched(&scene, "Database").await?;
    let (policy, mut running) = ready_database(&scene).await?;
    assert!(running.terminate().await?.success());
    let file = scene.policies_file(&[policy])?;
    let kubeconfig = scene.kubeconfig(scene.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    let mut versions = Vec::new();
    for _ in 0..2 {
        rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
        let released = scene.get("Database/db").await?;
        assert_eq!(released["status"], first);
        versions.push(version(&released).clone());
    }
    assert_eq!(versions[0], versions[1]);
    Ok(())
}

#[tokio::test]
async fn a_list_that_the_schema_requires_stays_and_is_empty() -> Result<()> {
    let scene = TestTenant::set("required-list").await?;
    let mut crd = CrdBuilder::new("Database").manifest(&scene.group);
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    if let Some(status) = crd.pointer_mut(status) {
        status["required"] = json!(["conditions"]);
    }
    scene.define(&crd).await?;
    let (policy, mut running) = ready_database(&scene).await?;
    scene.admin.delete(&policy_address(&scene, "db")?).await?;
    scene.until("Database/db", has_status(&json!({ "conditions": [] }))).await?;

    scene.policy("db", "Database", over_deployments(&scene)).await?;
    scene.until("Database/db", says("Ready", "True")).await?;
    assert!(running.terminate().await?.success());
    let file = scene.policies_file(&[policy])?;
    let kubeconfig = scene.kubeconfig(scene.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
    assert_eq!(scene.get("Database/db").await?["status"], json!({ "conditions": [] }));
    Ok(())
}
