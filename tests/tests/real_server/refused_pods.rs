//! Workloads whose pods a quota, a limit range or an admission policy refuses: stuck in the words of the refusal, until
//! there is room.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::expectation::{StateExpectation, because, has, mentions, says};
use acceptance::kind::{ManifestKind, ObjectAddress};
use acceptance::objects::{deployment, job, owned_by, playing, pod, stateful_set};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::stuck::{limited, until_stuck};

/// Not more than so many pods are admitted.
async fn quota(tenant: &TestTenant, pods: u32) -> Result<ObjectAddress> {
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "small", "namespace": tenant.name },
        "spec": { "hard": { "pods": pods.to_string() } } });
    let quota = ObjectAddress::of(&tenant.admin.create(&quota).await?)?;
    counted(tenant, &quota, pods).await?;
    Ok(quota)
}

async fn counted(tenant: &TestTenant, quota: &ObjectAddress, pods: u32) -> Result<()> {
    let pods = json!(pods.to_string());
    let counted = StateExpectation::new("counted", move |quota| quota["status"]["hard"]["pods"] == pods);
    tenant.until_at(quota, &counted).await?;
    Ok(())
}

/// More are admitted. A controller tries again after twice as long each time: an annotation makes it look at once.
async fn raise(tenant: &TestTenant, quota: &ObjectAddress, pods: u32, workload: &str) -> Result<()> {
    let hard = json!({ "spec": { "hard": { "pods": pods.to_string() } } });
    tenant.admin.merge(quota, "", &hard).await?;
    counted(tenant, quota, pods).await?;
    tenant.change(workload, json!({ "metadata": { "annotations": { "look": "again" } } })).await?;
    Ok(())
}

#[tokio::test]
async fn a_quota_that_is_used_up_makes_its_workload_fail_and_then_stuck_in_its_own_words() -> Result<()> {
    let (tenant, _running, db) = limited("noquota", &["Deployment"]).await?;
    quota(&tenant, 0).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let failed = because("Ready", "ChildrenFailed").and(mentions("Ready", "exceeded quota: small"));
    tenant.until("Database/db", failed).await?;
    until_stuck(&tenant, &["Deployment web stuck", "exceeded quota: small"]).await?;
    Ok(())
}

#[tokio::test]
async fn where_no_condition_tells_of_a_quota_the_events_of_the_workload_do() -> Result<()> {
    let (tenant, _running, db) = limited("eventquota", &["StatefulSet", "Job"]).await?;
    quota(&tenant, 0).await?;
    tenant.create(owned_by(&db, stateful_set("store", 1))).await?;
    tenant.create(owned_by(&db, job("seed"))).await?;
    let both = ["Job seed stuck", "StatefulSet store stuck", "Event FailedCreate", "exceeded quota: small"];
    until_stuck(&tenant, &both).await?;
    Ok(())
}

/// One of its three pods is there, the others are refused; with room for all it becomes ready.
async fn some_are_refused(word: &str, workload: Value, told: &str) -> Result<()> {
    let kind = workload["kind"].as_str().context("no kind")?.to_owned();
    let place = format!("{kind}/{}", workload["metadata"]["name"].as_str().context("no name")?);
    let (tenant, _running, db) = limited(word, &[&kind]).await?;
    let quota = quota(&tenant, 1).await?;
    tenant.create(owned_by(&db, workload)).await?;
    let why = until_stuck(&tenant, &[&format!("{} stuck", place.replace('/', " ")), "exceeded quota: small"])
        .await?;
    ensure!(why.contains(told), "no {told:?} in {why}");
    raise(&tenant, &quota, 3, &place).await?;
    tenant.until("Database/db", says("Ready", "True").and(has("Stalled", false))).await?;
    Ok(())
}

#[tokio::test]
async fn a_stateful_set_that_is_refused_some_of_its_pods_is_stuck_until_there_is_room() -> Result<()> {
    some_are_refused("someset", stateful_set("store", 3), "1 of 3 replicas created; Event FailedCreate").await
}

#[tokio::test]
async fn so_is_one_whose_pods_are_created_one_after_the_other() -> Result<()> {
    let mut store = stateful_set("store", 3);
    store["spec"]["podManagementPolicy"] = json!("OrderedReady");
    some_are_refused("someordered", store, "1 of 3 replicas created; Event FailedCreate").await
}

#[tokio::test]
async fn a_deployment_that_is_refused_some_of_its_pods_is_stuck_by_its_own_condition() -> Result<()> {
    some_are_refused("somedeployment", deployment("web", 3), "FailedCreate").await
}

#[tokio::test]
async fn a_job_that_is_refused_some_of_its_pods_is_stuck_until_there_is_room() -> Result<()> {
    let mut seed = playing("hold", job("seed"));
    (seed["spec"]["parallelism"], seed["spec"]["completions"]) = (json!(3), json!(3));
    let (tenant, _running, db) = limited("somejob", &["Job"]).await?;
    let quota = quota(&tenant, 1).await?;
    tenant.create(owned_by(&db, seed)).await?;
    until_stuck(
        &tenant,
        &["Job seed stuck", "0 of 3 completions; Event FailedCreate", "exceeded quota: small"],
    )
    .await?;
    raise(&tenant, &quota, 3, "Job/seed").await?;
    tenant.until_pods("seed", 3).await?;
    // They do not get far, but what was refused is over.
    let freed =
        StateExpectation::new("without the quota", |db| !db["status"].to_string().contains("exceeded quota"));
    tenant.until("Database/db", freed).await?;
    tenant.play("seed", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_is_refused_some_of_its_pods_is_stuck_until_there_is_room() -> Result<()> {
    let tenant = TestTenant::start("nodes").await?;
    // Nobody else's pods are to be scheduled there.
    let taint = json!({ "key": tenant.name, "effect": "NoSchedule" });
    for number in 1..=3 {
        let name = format!("{}-{number}", tenant.name);
        let labels = json!({ "kubernetes.io/hostname": name, "agents": tenant.name });
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels },
            "spec": { "taints": [taint] } });
        tenant.admin.create(&node).await?;
    }
    let mut agent = deployment("agent", 1);
    agent["kind"] = json!("DaemonSet");
    agent["spec"].as_object_mut().context("no spec")?.remove("replicas");
    agent["spec"]["template"]["spec"]["nodeSelector"] = json!({ "agents": tenant.name });
    agent["spec"]["template"]["spec"]["tolerations"] = json!([{ "key": tenant.name, "operator": "Exists" }]);
    some_are_refused("someagents", agent, "1 of 3 replicas created; Event FailedCreate").await
}

/// It takes the server a moment to take up a policy, and nothing tells when it has: it is asked.
async fn until_refused(tenant: &TestTenant, object: &Value) -> Result<()> {
    let path = format!("{}?dryRun=All", ManifestKind::of(object)?.path(&tenant.name));
    let refused = async {
        let body = serde_json::to_vec(object).unwrap_or_default();
        while tenant.admin.send(Method::POST, &path, "application/json", body.clone()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TEST_TIMEOUT, refused).await.context("the policy refuses nothing")
}

#[tokio::test]
async fn what_a_limit_range_and_an_admission_policy_refuse_is_told_in_their_words() -> Result<()> {
    let (tenant, _running, db) = limited("refused", &["StatefulSet", "Job"]).await?;
    let range = json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "little", "namespace": tenant.name },
        "spec": { "limits": [{ "type": "Container", "max": { "cpu": "1" } }] } });
    tenant.admin.create(&range).await?;
    let rule = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": tenant.name }, "spec": { "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"] }] },
            "validations": [{ "expression": "!has(object.metadata.labels.app) || object.metadata.labels.app != 'seed'",
                "message": "no seeds are sown here" }] } });
    tenant.admin.create(&rule).await?;
    let binding = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": tenant.name }, "spec": { "policyName": tenant.name, "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": tenant.name } } } } });
    tenant.admin.create(&binding).await?;
    until_refused(&tenant, &pod("seed")).await?;
    let mut store = stateful_set("store", 1);
    store["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": "2" }, "limits": { "cpu": "2" } });
    tenant.create(owned_by(&db, store)).await?;
    tenant.create(owned_by(&db, job("seed"))).await?;
    let both = [
        "Job seed stuck",
        "no seeds are sown here",
        "StatefulSet store stuck",
        "maximum cpu usage per Container is",
    ];
    until_stuck(&tenant, &both).await?;
    Ok(())
}
