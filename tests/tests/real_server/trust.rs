//! What those can cause who may write only a part of what Rollcall rests on: the status of policies, records of outcomes,
//! labels of namespaces.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, gone, has, says};
use acceptance::objects::{condition, deployment, job, owned_by, playing};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::memory::{fleeting, record, records, remembering};

/// A policy's status says that it was accepted with this spec.
fn accepts(spec: &Value) -> StateExpectation {
    let spec = spec.clone();
    StateExpectation::new(&format!("accepted with {spec}"), move |policy| {
        policy["status"]["accepted"] == spec
    })
}

#[tokio::test]
async fn what_somebody_writes_into_the_status_of_a_policy_is_set_right_and_changes_nothing() -> Result<()> {
    let tenant = TestTenant::start("forged").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let policy = policy_address(&tenant, "db")?;
    let right = tenant.until_at(&policy, &says("Ready", "True")).await?["status"]["accepted"].clone();

    let mut other = tenant.policy_manifest("db", "Database", json!({}))["spec"].clone();
    other["condition"] = json!({ "type": "Forged" });
    let forged = json!({ "generation": right["generation"], "spec": other.to_string() });
    let status = json!({ "status": { "accepted": forged, "parents": 7 } });
    tenant.admin.merge(&policy, "/status", &status).await?;
    tenant.until_at(&policy, &accepts(&right)).await?;

    // Written while nothing runs, it is not believed either: the spec is accepted.
    rollcall.kill()?;
    tenant.admin.merge(&policy, "/status", &status).await?;
    rollcall.again().await?;
    tenant.until_at(&policy, &accepts(&right)).await?;
    let broken = json!({ "spec": { "children": [{ "kind": { "group": "apps", "kind": "Deployment" },
        "ready": { "cel": { "current": "nonsense(" } } }] } });
    tenant.admin.merge(&policy, "", &broken).await?;
    tenant.until_at(&policy, &says("Accepted", "False").and(accepts(&right))).await?;
    tenant.delete("Deployment/web").await?;
    let told = tenant.until("Database/db", because("Ready", "ChildrenMissing")).await?;
    assert!(condition(&told, "Forged").is_none(), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_forged_record_reaches_the_parent_whose_uid_it_has_and_no_job_that_is_there() -> Result<()> {
    let tenant = remembering("forger", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut parents = Vec::new();
    for name in ["held", "gone", "other"] {
        parents.push(tenant.create(tenant.custom("Database", name)).await?);
    }
    tenant.create(owned_by(&parents[0], playing("fail", job("stays")))).await?;
    tenant.until("Database/held", because("Ready", "ChildrenFailed")).await?;
    tenant.create(owned_by(&parents[1], playing("fail", fleeting("goes")))).await?;
    tenant.until("Job/goes", gone()).await?;
    tenant.until("Database/gone", because("Ready", "ChildrenFailed")).await?;
    tenant.until("Database/other", because("Ready", "ChildrenMissing")).await?;
    let (of_held, of_gone) = (record(&tenant, &parents[0])?, record(&tenant, &parents[1])?);
    tenant.until_at(&of_held, &records("stays", "Failed")).await?;
    tenant.until_at(&of_gone, &records("goes", "Failed")).await?;

    rollcall.kill()?;
    for place in [&of_held, &of_gone] {
        let found = tenant.admin.get(place).await?.context("no record")?;
        let mut forged = found["spec"]["outcomes"].clone();
        forged[0]["outcome"] = json!("Complete");
        tenant.admin.merge(place, "", &json!({ "spec": { "outcomes": forged } })).await?;
    }
    rollcall.again().await?;
    // That is what it can cause: how a Job ended that is gone stands nowhere else.
    tenant.until("Database/gone", says("Ready", "True")).await?;
    tenant.until_at(&of_held, &records("stays", "Failed")).await?;
    let told = tenant.get("Database/held").await?;
    assert_eq!(condition(&told, "Ready").context("no Ready")?["reason"], "ChildrenFailed");
    tenant.until("Database/other", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

#[tokio::test]
async fn who_labels_a_namespace_decides_for_its_parents_and_for_no_others() -> Result<()> {
    let tenant = TestTenant::start("labelled").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let chosen = json!({ "matchLabels": { "rollcall-trust": tenant.name } });
    let spec = json!({ "parent": { "namespaceSelector": chosen }, "children": [tenant.child("Deployment")],
        "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let elsewhere = format!("{}-else", tenant.name);
    let labels = json!({ "rollcall-trust": tenant.name });
    let space = json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": elsewhere, "labels": labels } });
    tenant.admin.create(&space).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(tenant.custom("Database", "here")).await?;
    let mut there = tenant.custom("Database", "there");
    there["metadata"]["namespace"] = json!(elsewhere);
    let mut address = tenant.address("Database/there")?;
    address.namespace.clone_from(&elsewhere);
    tenant.admin.create(&there).await?;
    let missing = || because("Ready", "ChildrenMissing");
    let told = tenant.until_at(&address, &missing()).await?;
    assert!(condition(&tenant.get("Database/here").await?, "Ready").is_none());

    let own = format!("Namespace/{}", tenant.name);
    for round in 0..2 {
        tenant.change(&own, json!({ "metadata": { "labels": labels } })).await?;
        tenant.until("Database/here", missing()).await.with_context(|| format!("round {round}"))?;
        tenant.change(&own, json!({ "metadata": { "labels": { "rollcall-trust": null } } })).await?;
        tenant.until("Database/here", has("Ready", false)).await?;
    }
    let after = tenant.admin.get(&address).await?.context("it is gone")?;
    assert_eq!(after["status"], told["status"], "what is in another namespace was left alone");
    Ok(())
}
