//! The namespace of records, or their definition, deleted while Rollcall runs with records in it.

use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::expectation::{StateExpectation, because, gone, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{owned_by, playing, uid};
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, apply_crds, policy_address};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::Value;

use crate::memory::{fleeting, record, records, remembering, remembering_on};
use crate::rights::rbac;

/// Whether the rights to keep records go with their namespace.
#[derive(Clone, Copy, PartialEq)]
enum RecordRights {
    /// A Role in that namespace has them, as `rollcall rbac` prints it.
    InTheNamespace,
    /// Whoever granted them granted them everywhere.
    Everywhere,
}

/// Creates the namespace of records, with the rights there that Rollcall needs to keep them.
async fn create_home(tenant: &TestTenant, home: &str, rights: RecordRights) -> Result<()> {
    tenant.plane.kubectl(&["create", "namespace", home])?;
    match rights {
        RecordRights::InTheNamespace => tenant.grant_with_records_in(home).await,
        RecordRights::Everywhere => Ok(()),
    }
}

/// Asked about the namespace of records `rbac --check` finds that nothing lacks, and otherwise what lacks in the account's own.
fn a_check_asks_about_the_namespace_of_records(tenant: &TestTenant, home: &str) -> Result<()> {
    let name = tenant.policy_name("db");
    let (code, said) = rbac(tenant, &[&name, "--check", "--records-namespace", home])?;
    ensure!(code == Some(0) && said.contains(" 0 lack"), "{said}");
    let (code, said) = rbac(tenant, &[&name, "--check"])?;
    let lacks = format!("lacks create readinessrecords.rollcall.dev in namespace {}", tenant.name);
    ensure!(code == Some(1) && said.contains(&lacks), "{said}");
    Ok(())
}

/// What was written again is what a restart needs.
async fn a_restart_writes_nothing(
    tenant: &TestTenant,
    running: &mut RollcallProcess,
    done: &Value,
) -> Result<()> {
    let late = tenant.get("Database/late").await?;
    running.kill()?;
    running.again().await?;
    running.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 2.0).await?;
    ensure!(tenant.get("Database/done").await? == *done, "nothing was written on it");
    ensure!(tenant.get("Database/late").await? == late, "nothing was written on it");
    Ok(())
}

/// Deletes the namespace of records and creates it again, while outcomes are remembered and come; the policy says meanwhile
/// what is not saved.
async fn without_a_home(word: &str, rights: RecordRights, meanwhile: StateExpectation) -> Result<()> {
    let tenant = remembering(word, "remember").await?;
    let home = format!("{}-home", tenant.name);
    if rights == RecordRights::Everywhere {
        tenant.grant().await?;
        let account = format!("--serviceaccount={}:rollcall", tenant.name);
        let binding = format!("{}-everything", tenant.name);
        let role = "--clusterrole=cluster-admin";
        tenant.plane.kubectl(&["create", "clusterrolebinding", &binding, role, &account])?;
    }
    create_home(&tenant, &home, rights).await?;
    let options = [format!("--records-namespace={home}")];
    let mut running = tenant.rollcall_at(tenant.plane.url(), &options.each_ref().map(String::as_str)).await?;
    running.until_ready().await?;
    let of = |parent: &Value| ObjectAddress {
        kind: tenant.kind("ReadinessRecord"),
        namespace: home.clone(),
        name: uid(parent).to_owned(),
    };
    let policy = policy_address(&tenant, "db")?;
    let done = tenant.create(tenant.custom("Database", "done")).await?;
    tenant.create(owned_by(&done, fleeting("early"))).await?;
    let late = tenant.create(tenant.custom("Database", "late")).await?;
    tenant.create(owned_by(&late, playing("hold", fleeting("slow")))).await?;
    tenant.until("Job/early", gone()).await?;
    let before = tenant.until("Database/done", says("Ready", "True")).await?;
    tenant.until_at(&of(&done), &records("early", "Complete")).await?;
    tenant.until_at(&of(&late), &records("slow", "Running")).await?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;

    tenant.plane.kubectl(&["delete", "namespace", &home])?;
    tenant.until_at(&policy, &says("Ready", "False").and(meanwhile)).await?;
    running.until_metric("rollcall_records_failing", &[], |failing| failing > 0.5).await?;
    ensure!(running.http("/readyz").await?.code == 200, "a pod that is not ready would save nothing either");
    // What ends meanwhile is told, and remembered by the process.
    tenant.play("slow", None).await?;
    tenant.until("Database/late", says("Ready", "True")).await?;
    tenant.until("Job/slow", gone()).await?;
    ensure!(tenant.get("Database/done").await? == before, "its answer rests on what is known all the same");

    create_home(&tenant, &home, rights).await?;
    if rights == RecordRights::InTheNamespace {
        a_check_asks_about_the_namespace_of_records(&tenant, &home)?;
    }
    tenant.until_at(&of(&done), &records("early", "Complete")).await?;
    tenant.until_at(&of(&late), &records("slow", "Complete")).await?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    running.until_metric("rollcall_records_failing", &[], |failing| failing < 0.5).await?;
    a_restart_writes_nothing(&tenant, &mut running, &before).await
}

#[tokio::test]
async fn outcomes_are_kept_again_once_the_namespace_of_records_is_back() -> Result<()> {
    let create = mentions("Ready", "kubectl create namespace homeless-");
    let meanwhile = because("Ready", "RecordsNamespaceMissing").and(create);
    without_a_home("homeless", RecordRights::Everywhere, meanwhile).await
}

#[tokio::test]
async fn so_they_are_where_the_rights_to_keep_them_went_with_it() -> Result<()> {
    let lacks = mentions("Watching", "get,list,watch readinessrecords.rollcall.dev in namespace rightless-");
    let remedy = mentions("Watching", " --records-namespace rightless-");
    let meanwhile = because("Watching", "Forbidden").and(lacks).and(remedy);
    without_a_home("rightless", RecordRights::InTheNamespace, meanwhile).await
}

#[tokio::test]
async fn so_they_are_once_the_definition_of_records_is_back() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Everything).await?);
    let tenant = remembering_on(plane.clone(), "unrecorded", "remember").await?;
    let mut running = tenant.rollcall(&[]).await?;
    let done = tenant.create(tenant.custom("Database", "done")).await?;
    tenant.create(owned_by(&done, fleeting("early"))).await?;
    let late = tenant.create(tenant.custom("Database", "late")).await?;
    tenant.create(owned_by(&late, playing("hold", fleeting("slow")))).await?;
    tenant.until("Job/early", gone()).await?;
    let before = tenant.until("Database/done", says("Ready", "True")).await?;
    tenant.until_at(&record(&tenant, &done)?, &records("early", "Complete")).await?;
    tenant.until_at(&record(&tenant, &late)?, &records("slow", "Running")).await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;

    plane.kubectl(&["delete", "crd", "readinessrecords.rollcall.dev"])?;
    tenant.until_at(&policy, &says("Ready", "False")).await?;
    tenant.play("slow", None).await?;
    tenant.until("Job/slow", gone()).await?;
    apply_crds(&tenant, &places::rollcall()?).await?;
    tenant.until("Database/late", says("Ready", "True")).await?;
    tenant.until_at(&record(&tenant, &done)?, &records("early", "Complete")).await?;
    tenant.until_at(&record(&tenant, &late)?, &records("slow", "Complete")).await?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    a_restart_writes_nothing(&tenant, &mut running, &before).await
}
