//! Versions that overlap: a CRD that knows more than the program or less, replicas of which one takes over from the
//! other, and the way back; with parents at rest. `tests/run --older` lets another build of the program be the older one;
//! without it both sides run the same one, and what the versions differ in is said by the CRD.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, owned_by};
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, apply_crds, install_crds_of, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::forged_state::refused_while_away;

const ELECTED: [&str; 2] = ["--leader-elect", "--audit=0s"];
/// The fields of a policy and of its status, in the CRD.
const FIELDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties";

/// A parent that is ready, one that is not, and a policy that was accepted, on a cluster of their own: the CRDs of
/// Rollcall are for all of a cluster.
async fn at_rest(word: &str, program: &Path) -> Result<(TestTenant, RollcallProcess)> {
    let tenant =
        TestTenant::start_on(Arc::new(ControlPlane::start(ClusterParts::Storage).await?), word).await?;
    install_crds_of(&tenant, program).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    tenant.grant().await?;
    let running = tenant.rollcall_of(program, tenant.plane.url(), &ELECTED, &[]).await?;
    running.until_ready().await?;
    for (name, ready) in [("well", 1), ("ill", 0)] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, deployment(name, 1))).await?;
        let status = json!({
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready,
            "availableReplicas": ready, "unavailableReplicas": 1 - ready,
        });
        tenant.change_status(&format!("Deployment/{name}"), status).await?;
    }
    tenant.until("Database/well", says("Ready", "True")).await?;
    tenant.until("Database/ill", says("Ready", "False").and(mentions("Ready", "1 of 1 not ready"))).await?;
    leads_and_counts(&running, 2.0).await?;
    tenant.until_at(&policy_address(&tenant, "db")?, &says("Accepted", "True")).await?;
    Ok((tenant, running))
}

/// It leads, and has evaluated at least so many parents.
async fn leads_and_counts(one: &RollcallProcess, parents: f64) -> Result<()> {
    one.until_metric("rollcall_leader", &[], |leads| leads > 0.5).await?;
    one.until_metric("rollcall_parents", &["verdict=\"Ready\""], |count| count >= 1.0).await?;
    let enough = if parents > 2.5 { |count| count >= 3.0 } else { |count: f64| count >= 2.0 };
    one.until_metric("rollcall_parents", &[], enough).await?;
    Ok(())
}

/// The policy is in force for whom it sees first, and what was to be written before that is written.
async fn evaluates_another(tenant: &TestTenant, name: &str) -> Result<()> {
    tenant.create(tenant.custom("Database", name)).await?;
    tenant.until(&format!("Database/{name}"), because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

/// The two parents, which nobody may write, and what is said of them meanwhile.
struct UntouchedParents {
    versions: [Value; 2],
    recorder: StateRecorder,
}

impl UntouchedParents {
    async fn watch(tenant: &TestTenant) -> Result<UntouchedParents> {
        let versions = UntouchedParents::versions(tenant).await?;
        Ok(UntouchedParents { versions, recorder: StateRecorder::start(tenant, &["Database"]).await? })
    }

    /// What stands on them: every write changes it.
    async fn versions(tenant: &TestTenant) -> Result<[Value; 2]> {
        let version = async |name: &str| -> Result<Value> {
            Ok(tenant.get(&format!("Database/{name}")).await?["metadata"]["resourceVersion"].clone())
        };
        Ok([version("well").await?, version("ill").await?])
    }

    async fn are_as_before(&self, tenant: &TestTenant, when: &str) -> Result<()> {
        assert_eq!(UntouchedParents::versions(tenant).await?, self.versions, "{when}");
        Ok(())
    }

    /// Neither has turned at any time.
    async fn have_said_the_same(self, tenant: &TestTenant) -> Result<()> {
        let recording = self.recorder.stop().await?;
        for (parent, status) in [("Database/well", "True"), ("Database/ill", "False")] {
            assert_eq!(recording.statuses(&tenant.address(parent)?, "Ready"), [status], "{parent}");
        }
        Ok(())
    }
}

/// One takes over from the other, as in a rollout: it is ready before that one stops.
async fn take_over(from: &mut RollcallProcess, to: &RollcallProcess, parents: f64) -> Result<()> {
    to.until_ready().await?;
    ensure!(from.terminate().await?.success());
    leads_and_counts(to, parents).await
}

async fn change_crd(tenant: &TestTenant, operation: Value) -> Result<()> {
    let crd = tenant.address("CustomResourceDefinition/readinesspolicies.rollcall.dev")?;
    tenant.admin.json_patch(&crd, "", &json!([operation])).await?;
    Ok(())
}

/// Waits until the server answers by the changed CRD, which it takes up some time later and does not announce.
async fn until_read(tenant: &TestTenant, policy: &ObjectAddress, holds: fn(&Value) -> bool) -> Result<()> {
    let read = async {
        while !tenant.admin.get(policy).await?.is_some_and(|policy| holds(&policy)) {
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    timeout(TEST_TIMEOUT, read).await.map_err(|_| anyhow!("the CRD is not taken up"))?
}

#[tokio::test]
async fn an_upgrade_and_the_way_back_write_no_parent_at_rest() -> Result<()> {
    let (older, newer) = (places::older_rollcall()?, places::rollcall()?);
    let (tenant, mut first) = at_rest("upgrade", &older).await?;
    let policy = policy_address(&tenant, "db")?;
    let parents = UntouchedParents::watch(&tenant).await?;

    // The CRD goes first. It knows a field that neither program does, and says it of every policy.
    apply_crds(&tenant, &newer).await?;
    let field = format!("{FIELDS}/spec/properties/future");
    let future = json!({ "op": "add", "path": field, "value": { "type": "string", "default": "on" } });
    change_crd(&tenant, future).await?;
    until_read(&tenant, &policy, |policy| policy["spec"]["future"] == "on").await?;
    // One that starts now has never seen the policy but with that field.
    let mut second = tenant.rollcall_at(tenant.plane.url(), &ELECTED).await?;
    take_over(&mut first, &second, 2.0).await?;
    tenant.until_at(&policy, &says("Accepted", "False").and(mentions("Accepted", "future"))).await?;
    evaluates_another(&tenant, "during").await?;
    parents.are_as_before(&tenant, "after the upgrade").await?;

    // And back: the replica of before, and then the CRD of before.
    first.again().await?;
    take_over(&mut second, &first, 3.0).await?;
    parents.are_as_before(&tenant, "after a replica came back").await?;
    change_crd(&tenant, json!({ "op": "remove", "path": field })).await?;
    apply_crds(&tenant, &older).await?;
    until_read(&tenant, &policy, |policy| policy["spec"]["future"].is_null()).await?;
    // As `kubectl apply` of the older manifests brings it about.
    tenant.admin.merge(&policy, "", &json!({ "metadata": { "annotations": { "rolled": "back" } } })).await?;
    tenant.until_at(&policy, &says("Accepted", "True")).await?;
    evaluates_another(&tenant, "after").await?;
    parents.are_as_before(&tenant, "after the rollback").await?;

    parents.have_said_the_same(&tenant).await
}

#[tokio::test]
async fn a_version_takes_over_from_another_in_both_directions_without_a_write() -> Result<()> {
    let (older, newer) = (places::older_rollcall()?, places::rollcall()?);
    let (tenant, mut first) = at_rest("two-versions", &older).await?;
    let policy = policy_address(&tenant, "db")?;
    let parents = UntouchedParents::watch(&tenant).await?;

    // With its own CRD each accepts the policy, and says the same of everything.
    apply_crds(&tenant, &newer).await?;
    let mut second = tenant.rollcall_of(&newer, tenant.plane.url(), &ELECTED, &[]).await?;
    take_over(&mut first, &second, 2.0).await?;
    tenant.until_at(&policy, &says("Accepted", "True")).await?;
    evaluates_another(&tenant, "during").await?;
    parents.are_as_before(&tenant, "after the upgrade").await?;

    first.again().await?;
    take_over(&mut second, &first, 3.0).await?;
    apply_crds(&tenant, &older).await?;
    tenant.until_at(&policy, &says("Accepted", "True")).await?;
    evaluates_another(&tenant, "after").await?;
    parents.are_as_before(&tenant, "after the rollback").await?;

    parents.have_said_the_same(&tenant).await
}

#[tokio::test]
async fn a_crd_that_lacks_what_this_version_reads_and_writes_costs_no_write_of_a_parent() -> Result<()> {
    let (tenant, mut running) = at_rest("older-crd", &places::rollcall()?).await?;
    let policy = policy_address(&tenant, "db")?;
    let parents = UntouchedParents::watch(&tenant).await?;

    // As a CRD of before has it: a field of the spec with a default, and one of the status, are pruned.
    for field in ["spec/properties/grace", "status/properties/accepted"] {
        change_crd(&tenant, json!({ "op": "remove", "path": format!("{FIELDS}/{field}") })).await?;
    }
    until_read(&tenant, &policy, |policy| {
        policy["spec"]["grace"].is_null() && policy["status"]["accepted"].is_null()
    })
    .await?;
    ensure!(running.terminate().await?.success());
    running.again().await?;
    leads_and_counts(&running, 2.0).await?;
    tenant.until_at(&policy, &says("Accepted", "True")).await?;
    evaluates_another(&tenant, "first").await?;
    parents.are_as_before(&tenant, "after the restart").await?;
    let refused = running.metric("rollcall_policy_refused", &[]).await?;
    ensure!(refused < 0.5, "nothing is wrong with the policy");

    parents.have_said_the_same(&tenant).await
}

/// As after the way back from a version that knows more: what it accepted cannot be read here, and what this one had accepted
/// before that is kept beside it.
#[tokio::test]
async fn what_was_accepted_before_an_upgrade_is_in_force_where_what_was_accepted_by_it_cannot_be_read()
-> Result<()> {
    let (tenant, mut rollcall) = refused_while_away("unreadable").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let policy = policy_address(&tenant, "database")?;
    let kept = tenant.admin.get(&policy).await?.unwrap_or_default()["status"]["accepted"].clone();
    let mut newer: Value = serde_json::from_str(kept["spec"].as_str().unwrap_or_default())?;
    newer["learnedLater"] = json!({ "of": "a newer version" });
    let accepted = json!({ "generation": kept["generation"], "version": "9.9", "spec": newer.to_string(),
        "earlier": { "generation": kept["generation"], "version": kept["version"], "spec": kept["spec"] } });
    tenant.admin.merge(&policy, "/status", &json!({ "status": { "accepted": accepted } })).await?;
    let before = tenant.get("Database/one").await?;
    rollcall.again().await?;
    tenant.until_at(&policy, &says("Accepted", "False")).await?;
    rollcall.until_metric("rollcall_parents", &["verdict=\"Ready\""], |parents| parents > 0.5).await?;
    assert_eq!(tenant.get("Database/one").await?, before, "nothing is written at rest");
    // It is in force, not only left standing.
    tenant.play("database", Some("crash")).await?;
    tenant
        .until("Database/one", says("Ready", "False").and(mentions("Ready", "Deployment database")))
        .await?;
    let recording = recorder.stop().await?;
    assert_eq!(recording.statuses(&tenant.address("Database/one")?, "Ready"), ["True", "False"]);
    Ok(())
}
