//! Steady under churn: scaling and lost pods of what was rolled out whole, by the controllers of Kubernetes themselves.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::objects::{deployment, owned_by, playing, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A ready `Database` over a Deployment of three pods and a StatefulSet of three.
async fn ready_tenant(word: &str, policy: Value) -> Result<(TestTenant, RollcallProcess)> {
    ready_tenant_beside(word, policy, &[]).await
}

/// The same beside objects that were there before Rollcall was.
async fn ready_tenant_beside(
    word: &str,
    policy: Value,
    objects: &[Value],
) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    for object in objects {
        tenant.create(object.clone()).await?;
    }
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut policy = policy;
    policy["children"] = json!([tenant.child("Deployment"), tenant.child("StatefulSet")]);
    policy["settle"] = json!("200ms");
    tenant.policy("db", "Database", policy).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 3))).await?;
    tenant.create(owned_by(&db, stateful_set("store", 3))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok((tenant, rollcall))
}

/// Every replica of the workload is there and available, and its controller has seen its spec.
pub(crate) fn whole(replicas: i64) -> StateExpectation {
    StateExpectation::new("every replica is available", move |workload| {
        let status = &workload["status"];
        status["availableReplicas"] == replicas
            && status["replicas"] == replicas
            && status["observedGeneration"] == workload["metadata"]["generation"]
    })
}

/// So many replicas are there, of which so many are available.
pub(crate) fn available(available: i64, replicas: i64) -> StateExpectation {
    StateExpectation::new("so many replicas are available", move |workload| {
        let status = &workload["status"];
        (&status["availableReplicas"], &status["replicas"]) == (&json!(available), &json!(replicas))
    })
}

async fn scale(tenant: &TestTenant, place: &str, replicas: i64) -> Result<()> {
    tenant.change(place, json!({ "spec": { "replicas": replicas } })).await?;
    Ok(())
}

/// Lets one pod of the workload become unready, and waits until its controller has seen that.
async fn lose_a_pod(tenant: &TestTenant, app: &str, workload: &str, of: i64) -> Result<()> {
    tenant.play_one(app, "crash").await?;
    tenant.until(workload, available(of - 1, of)).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_rolled_out_scales_and_loses_a_pod_without_a_word() -> Result<()> {
    let (tenant, rollcall) = ready_tenant("churn", json!({})).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "StatefulSet"]).await?;
    // One by one, as an autoscaler does; 3 to 4 leaves a Deployment of 25 % maxUnavailable no pod to spare.
    for replicas in [4, 5, 6, 5] {
        scale(&tenant, "Deployment/web", replicas).await?;
        tenant.until("Deployment/web", whole(replicas)).await?;
    }
    for replicas in [4, 3] {
        scale(&tenant, "StatefulSet/store", replicas).await?;
        tenant.until("StatefulSet/store", whole(replicas)).await?;
    }
    lose_a_pod(&tenant, "web", "Deployment/web", 5).await?;
    lose_a_pod(&tenant, "store", "StatefulSet/store", 3).await?;
    // Both are named, and counted.
    let named = mentions("Ready", "0 of 2 ready").and(mentions("Ready", "Deployment web"));
    tenant.until("Database/db", says("Ready", "True").and(named)).await?;
    rollcall.until_metric("rollcall_available_children", &[], |children| children >= 2.0).await?;
    tenant.play("web", None).await?;
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    rollcall.until_metric("rollcall_damped_flips_total", &[], |flips| flips >= 1.0).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True"], "{transcript}");
    assert!(recording.said(&parent, "Reconciling").iter().all(|said| said.entry.is_null()), "{transcript}");
    Ok(())
}

#[tokio::test]
async fn under_a_strict_policy_every_scaling_and_lost_pod_is_told() -> Result<()> {
    let (tenant, _rollcall) = ready_tenant("churn-strict", json!({ "availability": "strict" })).await?;
    lose_a_pod(&tenant, "store", "StatefulSet/store", 3).await?;
    let named = because("Ready", "ChildrenProgressing").and(mentions("Ready", "StatefulSet store"));
    tenant.until("Database/db", says("Ready", "False").and(named)).await?;
    Ok(())
}

#[tokio::test]
async fn a_new_template_and_a_loss_beyond_the_budget_are_told() -> Result<()> {
    let (tenant, _rollcall) = ready_tenant("churn-ends", json!({})).await?;
    // Two of three: more than the one that its maxUnavailable allows.
    lose_a_pod(&tenant, "store", "StatefulSet/store", 3).await?;
    tenant.play("store", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "StatefulSet store"))).await?;
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    let template = playing("hold", deployment("web", 3))["spec"]["template"].clone();
    tenant.change("Deployment/web", json!({ "spec": { "template": template } })).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "Deployment web"))).await?;
    Ok(())
}

/// What evictions may take away of the pods of a workload.
pub(crate) fn disruption_budget(app: &str, bound: &str, amount: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": app },
        "spec": { "selector": { "matchLabels": { "app": app } }, bound: amount },
    })
}

#[tokio::test]
async fn a_disruption_within_the_budget_of_the_pods_is_told_nobody_also_not_after_a_restart() -> Result<()> {
    let budgets = [
        disruption_budget("web", "minAvailable", &json!("25%")),
        disruption_budget("store", "maxUnavailable", &json!(2)),
    ];
    let (tenant, mut rollcall) = ready_tenant_beside("churn-budget", json!({}), &budgets).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    // More than its own budget allows.
    tenant.play_first("store", Some("crash"), 2).await?;
    tenant.until("StatefulSet/store", available(1, 3)).await?;
    let named = mentions("Ready", "1 of 2 ready").and(mentions("Ready", "StatefulSet store"));
    tenant.until("Database/db", says("Ready", "True").and(named)).await?;
    ensure!(rollcall.terminate().await?.success());
    let rollcall = tenant.rollcall(&[]).await?;
    rollcall.until_metric("rollcall_available_children", &[], |children| children >= 1.0).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    let transcript = recording.transcript(&parent, "Ready");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True"], "{transcript}");

    // None of them is left.
    tenant.play("store", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "StatefulSet store"))).await?;
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    // A Deployment that is not available by its own word is told, whatever the budget of its pods allows.
    tenant.play_first("web", Some("crash"), 2).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "Deployment web"))).await?;
    Ok(())
}

#[tokio::test]
async fn without_the_right_to_read_budgets_the_own_one_of_a_workload_counts() -> Result<()> {
    let budget = disruption_budget("store", "maxUnavailable", &json!(2));
    let tenant = TestTenant::start("churn-unread").await?;
    tenant.create(budget).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("StatefulSet")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "200ms" })).await?;
    // A strict policy needs none.
    let mut policies = tenant.policies().await?;
    for policy in &mut policies {
        policy["spec"]["availability"] = json!("strict");
    }
    tenant.grant_for(&policies)?;
    let rollcall = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    rollcall.until_printed("cannot watch PodDisruptionBudgets").await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, stateful_set("store", 3))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.play_first("store", Some("crash"), 2).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "StatefulSet store"))).await?;
    Ok(())
}
