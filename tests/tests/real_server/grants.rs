//! Rights that the service grants itself, within the roles that the administrator lists.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::caller::{ApiCaller, code_of, version_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, gone, has, mentions, says, there};
use acceptance::groups::TenantGroups as _;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// A policy over Deployments for each of these kinds of parents, of which the first has a ClusterRole that is approved and
/// bound to nobody; and the name of that role.
pub(crate) async fn approved(word: &str, parents: &[&str]) -> Result<(TestTenant, String)> {
    let tenant = TestTenant::start(word).await?;
    for parent in parents {
        tenant.crd(&CrdBuilder::new(parent)).await?;
        let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
        tenant.policy(&parent.to_lowercase(), parent, spec).await?;
    }
    let name = tenant.policy_name(&parents[0].to_lowercase());
    let policies = tenant.policies().await?;
    let first: Vec<Value> =
        policies.into_iter().filter(|policy| policy["metadata"]["name"] == *name).collect();
    let file = tenant.policies_file(&first)?;
    let printed = rollcall(&["rbac", "-f", &file.to_string_lossy(), "--aggregate-to", "approved"])?;
    let roles = tenant.folder.join("approved.yaml");
    std::fs::write(&roles, printed)?;
    tenant.plane.kubectl(&["apply", "--validate=false", "-f", &roles.to_string_lossy()])?;
    Ok((tenant, format!("rollcall-policy-{name}")))
}

/// The binding that the service makes of a role.
fn binding(tenant: &TestTenant, role: &str) -> ObjectAddress {
    cluster_scoped(tenant, "ClusterRoleBinding", &format!("rollcall:{}:rollcall:{role}", tenant.name))
}

pub(crate) fn cluster_scoped(tenant: &TestTenant, kind: &str, name: &str) -> ObjectAddress {
    ObjectAddress { kind: tenant.kind(kind), namespace: String::new(), name: name.to_owned() }
}

/// All that the service of this tenant has made.
async fn bindings(tenant: &TestTenant) -> Result<Vec<String>> {
    let made = "labelSelector=app.kubernetes.io/managed-by=rollcall";
    let (found, _) = tenant.admin.list(&tenant.kind("ClusterRoleBinding"), "", made).await?;
    let names = found.iter().filter_map(|found| found["metadata"]["name"].as_str());
    let prefix = format!("rollcall:{}:", tenant.name);
    Ok(names.filter(|name| name.starts_with(&prefix)).map(str::to_owned).collect())
}

pub(crate) async fn ready_site(tenant: &TestTenant) -> Result<()> {
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_policy_needs_is_granted_by_a_listed_role_and_goes_with_the_policy() -> Result<()> {
    let (tenant, role) = approved("granted", &["Site"]).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    ready_site(&tenant).await?;
    let policy = policy_address(&tenant, "site")?;
    tenant.until_at(&policy, &says("Watching", "True").and(says("Ready", "True"))).await?;
    let bound = tenant.admin.get(&binding(&tenant, &role)).await?.context("no binding")?;
    assert_eq!(bound["metadata"]["annotations"]["rollcall.dev/granted-for"], *tenant.policy_name("site"));
    assert_eq!(bound["roleRef"]["name"], *role);
    assert_eq!(bindings(&tenant).await?.len(), 1);
    running.until_printed("bound a listed ClusterRole that policies need").await?;
    let created = running.metric("rollcall_role_bindings_total", &["outcome=\"created\""]).await?;
    assert!((created - 1.0).abs() < f64::EPSILON, "{created}");
    let told =
        format!("fieldSelector=reason=RightsGranted,involvedObject.name={}", tenant.policy_name("site"));
    tenant.until_listed("Event", "default", &told).await?;

    // The entries go first: the right to remove them stays until they are gone.
    tenant.admin.delete(&policy).await?;
    tenant.until("Site/one", has("Ready", false)).await?;
    tenant.until_at(&binding(&tenant, &role), &gone()).await?;
    running.until_metric("rollcall_role_bindings_total", &["outcome=\"deleted\""], |n| n > 0.5).await?;
    let account = format!("system:serviceaccount:{}:rollcall", tenant.name);
    let question = ["auth", "can-i", "list", &format!("sites.{}", tenant.group), "-A", "--as", &account];
    let answer = tenant.plane.kubectl_command()?.args(question).output()?;
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "no");
    Ok(())
}

#[tokio::test]
async fn a_role_that_it_may_not_bind_is_refused_by_the_server_and_the_policy_says_so() -> Result<()> {
    let (tenant, role) = approved("unbindable", &["Site"]).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let own = cluster_scoped(&tenant, "ClusterRole", &format!("{0}-{0}-grant", tenant.name));
    let granted = tenant.admin.get(&own).await?.context("no role")?["rules"].clone();
    let mut lower = granted.clone();
    lower[0]["verbs"] = json!(["get"]);
    tenant.admin.merge(&own, "", &json!({ "rules": lower })).await?;
    let aggregated = cluster_scoped(&tenant, "ClusterRole", &format!("{0}-{0}", tenant.name));
    let lowered =
        StateExpectation::new("without bind", |role| !role["rules"].to_string().contains("\"bind\""));
    tenant.until_at(&aggregated, &lowered).await?;

    let running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    let policy = policy_address(&tenant, "site")?;
    let refused = format!("the API server refused to bind the listed ClusterRole {role}");
    let named = mentions("Watching", &refused).and(mentions("Watching", &format!("sites.{}", tenant.group)));
    tenant.until_at(&policy, &because("Watching", "Forbidden").and(named)).await?;
    running.until_metric("rollcall_role_bindings_total", &["outcome=\"forbidden\""], |n| n > 0.5).await?;
    assert_eq!(bindings(&tenant).await?, [""; 0]);

    tenant.admin.merge(&own, "", &json!({ "rules": granted })).await?;
    ready_site(&tenant).await?;
    Ok(())
}

#[tokio::test]
async fn nothing_is_granted_for_a_group_which_says_itself_what_it_does_not_see() -> Result<()> {
    let (tenant, role) = approved("grantgroup", &["Site"]).await?;
    tenant.admin.delete(&policy_address(&tenant, "site")?).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    let kinds = json!([{ "group": "apps", "kind": "Deployment" }]);
    tenant
        .readiness_group("web", json!({ "members": [{ "kinds": kinds, "labels": { "app": "web" } }] }))
        .await?;
    let unseen = because("Ready", "KindNotVisible").and(mentions("Ready", "Deployment"));
    tenant.until("ReadinessGroup/web", unseen).await.with_context(|| running.output())?;
    // With a policy that needs the same it is granted, and the group sees by it.
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    assert_eq!(bindings(&tenant).await?, [""; 0]);
    tenant.policy("site", "Site", spec).await?;
    tenant.until_at(&binding(&tenant, &role), &there()).await?;
    tenant.until("ReadinessGroup/web", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

#[tokio::test]
async fn without_the_flag_nothing_is_granted() -> Result<()> {
    let (tenant, role) = approved("not-granted", &["Site"]).await?;
    tenant.apply_rights(&[&format!("--grant-roles={role}")])?;
    let running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let policy = policy_address(&tenant, "site")?;
    let told = tenant
        .until_at(&policy, &because("Watching", "Forbidden").and(mentions("Watching", "rollcall rbac")))
        .await?;
    ensure!(!told["status"].to_string().contains("listed"), "{told}");
    // It has asked for its rights several times by then.
    running.until_printed("rights are missing").await?;
    assert_eq!(bindings(&tenant).await?, [""; 0]);
    let all = running.metric("rollcall_role_bindings_total", &[]).await?;
    assert!(all < 0.5, "{all}");
    Ok(())
}

#[tokio::test]
async fn whoever_writes_policies_gets_no_more_than_the_list_and_the_server_keeps_the_service_to_it()
-> Result<()> {
    let (tenant, role) = approved("ceiling", &["Site", "Store"]).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    let store = policy_address(&tenant, "store")?;
    let lacks = mentions("Watching", &format!("get,list,watch stores.{}", tenant.group));
    let said = lacks.and(mentions("Watching", "no listed role grants it"));
    tenant.until_at(&store, &because("Watching", "Forbidden").and(said)).await?;
    ready_site(&tenant).await?;
    assert_eq!(bindings(&tenant).await?, [format!("rollcall:{}:rollcall:{role}", tenant.name)]);

    // Whatever its code did: this is all that its token is good for.
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let made = |name: &str, role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": "rollcall", "namespace": tenant.name }],
        })
    };
    let other = format!("{}-other", tenant.name);
    for role in ["cluster-admin", "edit", "system:node"] {
        let refused = own.create(&made(&other, role)).await.expect_err(role);
        assert_eq!(code_of(&refused), Some(403), "{refused:#}");
    }
    let foreign = tenant.admin.create(&made(&other, "view")).await?;
    let refused =
        own.delete(&ObjectAddress::of(&foreign)?).await.expect_err("it may not delete what is not its own");
    assert_eq!(code_of(&refused), Some(403), "{refused:#}");
    let wider = json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
    let listed_role = cluster_scoped(&tenant, "ClusterRole", &role);
    let refused = own.merge(&listed_role, "", &wider).await.expect_err("it may not change a listed role");
    assert_eq!(code_of(&refused), Some(403), "{refused:#}");
    Ok(())
}

#[tokio::test]
async fn a_restart_and_a_handover_at_rest_leave_bindings_alone() -> Result<()> {
    let (tenant, role) = approved("grant-handover", &["Site"]).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let options = ["--leader-elect", "--audit=0s", &*listed];
    let mut first = tenant.rollcall_at(tenant.plane.url(), &options).await?;
    first.until_metric("rollcall_leader", &[], |leads| leads > 0.5).await?;
    let mut second = tenant.rollcall_at(tenant.plane.url(), &options).await?;
    ready_site(&tenant).await?;
    second.until_ready().await?;
    let bound = tenant.until_at(&binding(&tenant, &role), &there()).await?;
    let counts = async |one: &acceptance::rollcall::RollcallProcess| {
        one.metric("rollcall_role_bindings_total", &[]).await
    };
    assert!(counts(&second).await? < 0.5, "the standby granted something");

    // A restarted process becomes the standby of the one that takes over.
    assert!(first.terminate().await?.success());
    second.until_metric("rollcall_leader", &[], |leads| leads > 0.5).await?;
    first.again().await?;
    assert!(second.terminate().await?.success());
    first.until_metric("rollcall_leader", &[], |leads| leads > 0.5).await?;
    let policy = policy_address(&tenant, "site")?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    let now = tenant.admin.get(&binding(&tenant, &role)).await?.context("no binding")?;
    assert_eq!((version_of(&now), &now["metadata"]["uid"]), (version_of(&bound), &bound["metadata"]["uid"]));
    // The one that leads now looks after it: it goes with the policy, and that is the first thing that it writes.
    tenant.admin.delete(&policy).await?;
    tenant.until_at(&binding(&tenant, &role), &gone()).await?;
    first.until_metric("rollcall_role_bindings_total", &["outcome=\"deleted\""], |n| n > 0.5).await?;
    assert!((counts(&first).await? - 1.0).abs() < f64::EPSILON, "it wrote more");
    assert_eq!(tenant.admin.get(&binding(&tenant, &role)).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_binding_of_that_name_that_is_not_its_own_is_left_alone_and_named() -> Result<()> {
    let (tenant, role) = approved("not-its-own", &["Site"]).await?;
    let listed = format!("--grant-roles={role}");
    tenant.apply_rights(&[&listed])?;
    let name = binding(&tenant, &role).name;
    tenant.plane.kubectl(&[
        "create",
        "clusterrolebinding",
        &name,
        "--clusterrole=view",
        "--user=somebody",
    ])?;
    let before = tenant.admin.get(&binding(&tenant, &role)).await?.context("no binding")?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[&listed]).await?;
    let policy = policy_address(&tenant, "site")?;
    let said = format!("ClusterRoleBinding {name} is not as Rollcall makes it");
    tenant.until_at(&policy, &mentions("Watching", &said)).await?;
    assert_eq!(tenant.admin.get(&binding(&tenant, &role)).await?, Some(before));
    tenant.plane.kubectl(&["delete", "clusterrolebinding", &name])?;
    ready_site(&tenant).await?;
    Ok(())
}

#[tokio::test]
async fn who_has_its_token_hands_on_the_listed_roles_under_any_name_and_without_the_flag_none() -> Result<()>
{
    let (tenant, role) = approved("handed-on", &["Site"]).await?;
    tenant.apply_rights(&[])?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let handed = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{}-{name}", tenant.name) },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io" }],
        })
    };
    let refused = own.create(&handed("before")).await.expect_err("nothing is listed yet");
    assert_eq!(code_of(&refused), Some(403), "{refused:#}");

    tenant.apply_rights(&[&format!("--grant-roles={role}")])?;
    // The server takes up what is granted a moment later, and so below.
    let kept = async {
        while own.create(&handed("any-name")).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TEST_TIMEOUT, kept).await.context("it cannot hand on a listed role")?;
    let sites = format!("sites.{}", tenant.group);
    let question = ["auth", "can-i", "list", &sites, "-A", "--as", "mallory"];
    let has = async {
        while !tenant.plane.kubectl_command()?.args(question).output()?.status.success() {
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    timeout(TEST_TIMEOUT, has).await.context("it was not handed on")?
}
