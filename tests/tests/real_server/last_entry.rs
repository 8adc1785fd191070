//! With the last entry of Rollcall's goes a list that holds nothing else, and what the CRD's schema says by default shows again.

use acceptance::TEST_TIMEOUT;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, has, says};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::policies::policy_address;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::RollcallProcess;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::timeout;

async fn ready_database(tenant: &TestTenant) -> Result<(Value, RollcallProcess)> {
    let policy = tenant.policy("db", "Database", over_deployments(tenant)).await?;
    let running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok((policy, running))
}

fn over_deployments(tenant: &TestTenant) -> Value {
    json!({ "children": [tenant.child("Deployment")], "settle": "100ms" })
}

/// As a new object of that kind says, of which no policy was ever told.
async fn untouched(tenant: &TestTenant, kind: &str) -> Result<Value> {
    tenant.create(tenant.custom(kind, "untouched")).await?;
    Ok(tenant.get(&format!("{kind}/untouched")).await?["status"].clone())
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
        let tenant = TestTenant::start(word).await?;
        tenant.crd_with_defaults(&crd).await?;
        let first = untouched(&tenant, "Database").await?;
        assert_eq!(first["conditions"][0]["reason"], "ChildrenPending", "{first}");
        let (_, running) = ready_database(&tenant).await?;
        let policy = policy_address(&tenant, "db")?;
        tenant.admin.delete(&policy).await?;
        let released = tenant.until("Database/db", has_status(&first)).await?;
        // The default is in our words, and is never taken for an entry that is still to be removed.
        running.until_printed("the entries of a deleted policy are removed").await?;
        assert_eq!(
            version(&tenant.get("Database/db").await?),
            version(&released),
            "nothing more was written"
        );
        tenant.policy("db", "Database", over_deployments(&tenant)).await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn that_many_parents_lose_their_conditions_is_said_before_and_afterwards() -> Result<()> {
    let tenant = TestTenant::start("many-released").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let names: Vec<String> = (0..30).map(|number| format!("db-{number}")).collect();
    for name in &names {
        tenant.create(tenant.custom("Database", name)).await?;
    }
    for name in &names {
        tenant.until(&format!("Database/{name}"), says("Ready", "False")).await?;
    }
    tenant.admin.delete(&policy_address(&tenant, "db")?).await?;
    running.until_printed("removing conditions from parents that no policy chooses any more").await?;
    running.until_printed("removed the conditions from all parents that no policy chooses any more").await?;
    for name in &names {
        tenant.until(&format!("Database/{name}"), has("Ready", false)).await?;
    }
    Ok(())
}

/// Parents of a policy that is deleted and comes back while they are released, 17 a second.
const RELEASED: usize = 150;

#[tokio::test]
async fn a_policy_that_is_applied_again_in_the_midst_of_its_release_keeps_what_was_not_released() -> Result<()>
{
    let tenant = TestTenant::start("kept-release").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    let _running = tenant.rollcall(&[]).await?;
    let names: Vec<String> = (0..RELEASED).map(|number| format!("db-{number}")).collect();
    for name in &names {
        tenant.create(tenant.custom("Database", name)).await?;
    }
    for name in &names {
        tenant.until(&format!("Database/{name}"), says("Ready", "False")).await?;
    }
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.admin.delete(&policy_address(&tenant, "db")?).await?;
    let first_loss = async {
        loop {
            let (parents, _) = tenant.admin.list(&tenant.kind("Database"), &tenant.name, "").await?;
            if parents.iter().any(|parent| condition(parent, "Ready").is_none()) {
                return anyhow::Ok(());
            }
        }
    };
    timeout(TEST_TIMEOUT, first_loss).await??;
    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    for name in &names {
        tenant.until(&format!("Database/{name}"), says("Ready", "False")).await?;
    }
    let recording = recorder.stop().await?;
    let mut kept = 0;
    for name in &names {
        let said = recording.statuses(&tenant.address(&format!("Database/{name}"))?, "Ready");
        kept += usize::from(!said.contains(&"gone".to_owned()));
    }
    println!("{kept} of {RELEASED} never lost their condition");
    assert!((RELEASED / 2..RELEASED).contains(&kept), "{kept} of {RELEASED} never lost their condition");
    Ok(())
}

#[tokio::test]
async fn without_a_default_nothing_is_left_and_what_others_say_stays() -> Result<()> {
    let tenant = TestTenant::start("last-entry").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let (_, _running) = ready_database(&tenant).await?;
    let beside = tenant.create(tenant.custom("Database", "beside")).await?;
    tenant.create(owned_by(&beside, deployment("beside", 1))).await?;
    tenant.until("Database/beside", says("Ready", "True")).await?;
    let synced = json!({ "type": "Synced", "status": "True" });
    let added = json!([{ "op": "add", "path": "/status/conditions/-", "value": synced }]);
    tenant.admin.json_patch(&tenant.address("Database/beside")?, "/status", &added).await?;
    tenant.admin.delete(&policy_address(&tenant, "db")?).await?;
    tenant.until("Database/db", has_status(&json!({}))).await?;
    tenant.until("Database/beside", has_status(&json!({ "conditions": [synced] }))).await?;
    Ok(())
}

#[tokio::test]
async fn an_uninstall_brings_the_default_back_too_and_twice_it_writes_nothing() -> Result<()> {
    let tenant = TestTenant::start("default-release").await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let first = untouched(&tenant, "Database").await?;
    let (policy, mut running) = ready_database(&tenant).await?;
    assert!(running.terminate().await?.success());
    let file = tenant.policies_file(&[policy])?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    let mut versions = Vec::new();
    for _ in 0..2 {
        rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
        let released = tenant.get("Database/db").await?;
        assert_eq!(released["status"], first);
        versions.push(version(&released).clone());
    }
    assert_eq!(versions[0], versions[1]);
    Ok(())
}

#[tokio::test]
async fn a_list_that_the_schema_requires_stays_and_is_empty() -> Result<()> {
    let tenant = TestTenant::start("required-list").await?;
    let mut crd = CrdBuilder::new("Database").manifest(&tenant.group);
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    if let Some(status) = crd.pointer_mut(status) {
        status["required"] = json!(["conditions"]);
    }
    tenant.define(&crd).await?;
    let (policy, mut running) = ready_database(&tenant).await?;
    tenant.admin.delete(&policy_address(&tenant, "db")?).await?;
    tenant.until("Database/db", has_status(&json!({ "conditions": [] }))).await?;

    tenant.policy("db", "Database", over_deployments(&tenant)).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(running.terminate().await?.success());
    let file = tenant.policies_file(&[policy])?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
    assert_eq!(tenant.get("Database/db").await?["status"], json!({ "conditions": [] }));
    Ok(())
}
