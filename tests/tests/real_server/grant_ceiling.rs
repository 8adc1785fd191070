//! Who moves the ceiling of what the service may grant itself, and what that takes.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::expectation::{because, mentions, says};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::policy_address;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::grants::{approved, cluster_scoped, ready_site};
use super::users::TestUser;

const RBAC: &str = "rbac.authorization.k8s.io";
/// Label by which a listed role aggregates others here.
const LABEL: &str = "ceiling.test/of";

/// What a policy over Stores needs beside what one over Sites has.
fn of_stores(tenant: &TestTenant) -> [Value; 2] {
    [
        json!({ "apiGroups": [tenant.group], "resources": ["stores"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": [tenant.group], "resources": ["stores/status"], "verbs": ["patch"] }),
    ]
}

/// The rules of a ClusterRole.
async fn rules_of(tenant: &TestTenant, role: &str) -> Result<Vec<Value>> {
    let role = tenant.admin.get(&cluster_scoped(tenant, "ClusterRole", role)).await?.context("no role")?;
    Ok(role["rules"].as_array().cloned().unwrap_or_default())
}

/// The right to do this to ClusterRoles; to the one of this name, where one is given.
fn on_roles(verbs: &[&str], name: Option<&str>) -> Value {
    let names: Vec<_> = name.into_iter().collect();
    json!({ "apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": names, "verbs": verbs })
}

/// A patch that adds these rules.
fn adding(rules: &[Value]) -> String {
    let add = |rule| json!({ "op": "add", "path": "/rules/-", "value": rule });
    json!(rules.iter().map(add).collect::<Vec<_>>()).to_string()
}

async fn until_stores_lack(tenant: &TestTenant) -> Result<()> {
    let lacks = because("Watching", "Forbidden").and(mentions("Watching", "no listed role grants it"));
    tenant.until_at(&policy_address(tenant, "store")?, &lacks).await.map(drop)
}

/// The service writes what nobody who may write policies could let it write before.
async fn ready_store(tenant: &TestTenant) -> Result<()> {
    let store = tenant.create(tenant.custom("Store", "one")).await?;
    tenant.create(owned_by(&store, deployment("shelf", 1))).await?;
    tenant.until("Store/one", says("Ready", "True")).await.map(drop)
}

/// Waits until the service account of the tenant may do this.
async fn until_service_may(tenant: &TestTenant, verb: &str, resource: &str) -> Result<()> {
    let account = format!("system:serviceaccount:{}:rollcall", tenant.name);
    let question = ["auth", "can-i", verb, resource, "-A", "--as", &account];
    let may = async {
        while !tenant.plane.kubectl_command()?.args(question).output()?.status.success() {
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    timeout(TEST_TIMEOUT, may).await.with_context(|| format!("it may not {verb} {resource}"))?
}

#[tokio::test]
async fn who_changes_a_listed_role_moves_the_ceiling_with_all_that_it_then_grants_or_by_escalate()
-> Result<()> {
    let (tenant, role) = approved("moved", &["Site", "Store"]).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    ready_site(&tenant).await?;
    until_stores_lack(&tenant).await?;

    // Who has what they add, and not the rest of the role, is refused like one who has nothing.
    let stores = of_stores(&tenant);
    let patch = adding(&stores);
    let change = ["patch", "clusterrole", &role, "--type=json", "-p", &patch];
    let keeper = TestUser::create(&tenant, "keeper", &[on_roles(&["get", "patch"], Some(&role))]).await?;
    keeper.until_withheld(&change).await?;
    keeper.grant("stores", &stores).await?;
    keeper.until_done(&["get", &format!("stores.{}", tenant.group), "-A"]).await?;
    keeper.until_withheld(&change).await?;
    keeper.grant("rest", &rules_of(&tenant, &role).await?).await?;
    keeper.until_done(&change).await?;
    ready_store(&tenant).await?;

    let secrets = adding(&[json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] })]);
    let change = ["patch", "clusterrole", &role, "--type=json", "-p", &secrets];
    keeper.until_withheld(&change).await?;
    let escalating = [on_roles(&["get", "patch", "escalate"], Some(&role))];
    let escalator = TestUser::create(&tenant, "escalator", &escalating).await?;
    escalator.until_done(&change).await?;
    until_service_may(&tenant, "get", "secrets").await
}

#[tokio::test]
async fn who_adds_to_a_role_that_aggregates_others_moves_the_ceiling_with_all_that_they_add() -> Result<()> {
    let (tenant, of_sites) = approved("aggregated", &["Site", "Store"]).await?;
    let role = format!("{}-ceiling", tenant.name);
    let selectors = json!([{ "matchLabels": { LABEL: tenant.name } }]);
    let aggregating = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": { "name": role }, "aggregationRule": { "clusterRoleSelectors": selectors }, "rules": [] });
    tenant.admin.create(&aggregating).await?;
    let labels = json!({ "metadata": { "labels": { LABEL: tenant.name } } });
    tenant.admin.merge(&cluster_scoped(&tenant, "ClusterRole", &of_sites), "", &labels).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    ready_site(&tenant).await?;
    until_stores_lack(&tenant).await?;

    let added = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": { "name": format!("{}-added", tenant.name), "labels": { LABEL: tenant.name } },
        "rules": of_stores(&tenant) });
    let file = tenant.folder.join("added.json");
    std::fs::write(&file, added.to_string())?;
    let file = file.to_string_lossy().into_owned();
    let add = ["create", "--validate=false", "-f", &file];
    let adder = TestUser::create(&tenant, "adder", &[on_roles(&["get", "create", "patch"], None)]).await?;
    adder.until_withheld(&add).await?;
    // Nor may they let it aggregate a role that there is.
    let label = format!("{LABEL}={}", tenant.name);
    adder.until_withheld(&["label", "clusterrole", "edit", &label]).await?;
    until_stores_lack(&tenant).await?;
    adder.grant("stores", &of_stores(&tenant)).await?;
    adder.until_done(&add).await?;
    ready_store(&tenant).await
}
