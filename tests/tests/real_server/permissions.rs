//! With exactly the rights that it prints, and with fewer.

use acceptance::caller::{ApiCaller, version_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::objects::{deployment, owned_by, stateful_set};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode};
use serde_json::json;

/// Two policies: one over Deployments, one over StatefulSets.
async fn two_policies(word: &str) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    for (parent, child) in [("Site", "Deployment"), ("Store", "StatefulSet")] {
        tenant.crd(&CrdBuilder::new(parent)).await?;
        let spec = json!({ "children": [tenant.child(child)], "settle": "100ms" });
        tenant.policy(&parent.to_lowercase(), parent, spec).await?;
    }
    Ok(tenant)
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_leaves_its_parents_unknown_and_others_go_on() -> Result<()> {
    let tenant = two_policies("forbidden").await?;
    let policies = tenant.policies().await?;
    let sites: Vec<_> = policies.iter().filter(|p| p["spec"]["parent"]["kind"] == "Site").cloned().collect();
    tenant.grant_for(&sites)?;
    let running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    let store_policy = policy_address(&tenant, "store")?;
    let rule = mentions("Watching", "stores").and(mentions("Watching", "statefulsets"));
    tenant
        .until_at(&store_policy, &says("Watching", "False").and(because("Watching", "Forbidden")).and(rule))
        .await?;

    let store = tenant.create(tenant.custom("Store", "one")).await?;
    tenant.create(owned_by(&store, stateful_set("db", 1))).await?;
    tenant.grant().await?;
    tenant.until("Store/one", says("Ready", "True")).await?;
    tenant.until_at(&store_policy, &says("Watching", "True")).await?;
    drop(running);
    Ok(())
}

#[tokio::test]
async fn a_right_to_read_children_that_is_taken_away_ends_in_unknown() -> Result<()> {
    let tenant = two_policies("revoked").await?;
    let running = tenant.rollcall(&[]).await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    let store = tenant.create(tenant.custom("Store", "one")).await?;
    tenant.create(owned_by(&store, stateful_set("db", 1))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    tenant.until("Store/one", says("Ready", "True")).await?;
    drop(running);
    // A running watch outlives its right until the server ends it; a new process has no such grace.
    revoke(&tenant, "statefulsets").await?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    tenant.until("Store/one", says("Ready", "Unknown").and(because("Ready", "KindNotVisible"))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    tenant.grant().await?;
    tenant.until("Store/one", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_right_to_read_children_that_goes_while_it_runs_is_named_first_and_makes_their_parents_unknown_then()
-> Result<()> {
    let tenant = two_policies("blinded").await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let _running = tenant.rollcall_at(&gate.url, &[]).await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    let store = tenant.create(tenant.custom("Store", "one")).await?;
    tenant.create(owned_by(&store, stateful_set("db", 1))).await?;
    for name in ["Site/one", "Store/one"] {
        tenant.until(name, says("Ready", "True")).await?;
    }
    let recorder = StateRecorder::start(&tenant, &["Site", "Store"]).await?;
    let goes = async {
        revoke(&tenant, "statefulsets").await?;
        // A watch outlives its right until it ends.
        gate.set(GateRule::Down);
        gate.caught().await?;
        gate.set(GateRule::Pass);
        // Nobody sees it.
        tenant.play("db", Some("crash")).await
    };
    let named =
        because("Watching", "Forbidden").and(mentions("Watching", "statefulsets.apps: their children"));
    let named = tenant.until_after(goes, &policy_address(&tenant, "store")?, named).await?;
    tenant.until("Store/one", says("Ready", "Unknown").and(because("Ready", "KindNotVisible"))).await?;
    tenant.grant().await?;
    tenant.until("Store/one", says("Ready", "False").and(mentions("Ready", "StatefulSet db"))).await?;
    let recording = recorder.stop().await?;
    let said = recording.said(&tenant.address("Store/one")?, "Ready");
    let unknown = said.iter().find(|write| write.entry["status"] == "Unknown").context("never Unknown")?;
    ensure!(version_of(&named) < unknown.version, "the policy says it first");
    let of = |name: &str| anyhow::Ok(recording.statuses(&tenant.address(name)?, "Ready"));
    ensure!(of("Store/one")? == ["True", "Unknown", "False"], "{:?}", of("Store/one")?);
    ensure!(of("Site/one")? == ["True"], "{:?}", of("Site/one")?);
    Ok(())
}

/// A Store that says True, and a gate between Rollcall and the server.
async fn ready_store_behind_gate(word: &str) -> Result<(TestTenant, ApiGate, RollcallProcess)> {
    let tenant = two_policies(word).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let running = tenant.rollcall_at(&gate.url, &[]).await?;
    let store = tenant.create(tenant.custom("Store", "one")).await?;
    tenant.create(owned_by(&store, stateful_set("db", 1))).await?;
    tenant.until("Store/one", says("Ready", "True")).await?;
    Ok((tenant, gate, running))
}

#[tokio::test]
async fn a_policy_that_is_edited_while_its_parents_may_not_be_read_takes_their_true_back() -> Result<()> {
    let (tenant, gate, _running) = ready_store_behind_gate("unread").await?;
    revoke(&tenant, "stores").await?;
    gate.set(GateRule::Down);
    gate.caught().await?;
    gate.set(GateRule::Pass);
    let edited = json!({ "spec": { "settle": "300ms" } });
    tenant.admin.merge(&policy_address(&tenant, "store")?, "", &edited).await?;
    tenant.until("Store/one", says("Ready", "Unknown").and(because("Ready", "KindNotVisible"))).await?;
    // Its child can be seen.
    tenant.play("db", Some("crash")).await?;
    tenant.until("Store/one", says("Ready", "False").and(mentions("Ready", "StatefulSet db"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_that_is_edited_while_the_api_of_its_parents_cannot_be_found_takes_their_true_back()
-> Result<()> {
    let (tenant, gate, _running) = ready_store_behind_gate("unfound").await?;
    gate.set(GateRule::Answer(
        Method::GET,
        format!("/apis/{}", tenant.group),
        StatusCode::SERVICE_UNAVAILABLE,
    ));
    let edited = json!({ "spec": { "settle": "300ms" } });
    tenant.admin.merge(&policy_address(&tenant, "store")?, "", &edited).await?;
    tenant.until("Store/one", says("Ready", "Unknown").and(because("Ready", "WatchStale"))).await?;
    gate.set(GateRule::Pass);
    tenant.until("Store/one", says("Ready", "True")).await?;
    Ok(())
}

/// Takes one resource out of all the roles of a tenant.
pub(crate) async fn revoke(tenant: &TestTenant, resource: &str) -> Result<()> {
    let mut aggregated = Vec::new();
    for word in ["ClusterRole", "Role"] {
        let kind = tenant.kind(word);
        let (roles, _) = tenant.admin.list(&kind, &tenant.name, "").await?;
        for mut role in roles {
            let own = role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&tenant.name));
            if !own || !role["rules"].to_string().contains(resource) {
                continue;
            }
            if !role["aggregationRule"].is_null() {
                aggregated.push(acceptance::kind::ObjectAddress::of(&role)?);
                continue;
            }
            for rule in role["rules"].as_array_mut().into_iter().flatten() {
                if let Some(resources) = rule["resources"].as_array_mut() {
                    resources.retain(|name| name != resource);
                }
            }
            let rules: Vec<_> = role["rules"].as_array().into_iter().flatten().cloned().collect();
            let kept: Vec<_> = rules
                .into_iter()
                .filter(|rule| rule["resources"].as_array().is_none_or(|r| !r.is_empty()))
                .collect();
            let place = acceptance::kind::ObjectAddress::of(&role)?;
            tenant.admin.merge(&place, "", &json!({ "rules": kept })).await?;
        }
    }
    let word = format!("\"{resource}\"");
    for role in aggregated {
        let word = word.clone();
        let gone = StateExpectation::new("without that resource", move |role| {
            !role["rules"].to_string().contains(&word)
        });
        tenant.until_at(&role, &gone).await?;
    }
    Ok(())
}

#[tokio::test]
async fn within_namespaces_roles_are_enough() -> Result<()> {
    let tenant = TestTenant::start("roles").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let policy = tenant.policy("site", "Site", spec).await?;
    // Policies live in the cluster, where a Role grants nothing: they come from a file.
    let file = tenant.policies_file(&[policy])?;
    let (namespaces, policies) =
        (format!("--namespaces={}", tenant.name), format!("--policies={}", file.display()));
    tenant.apply_rights(&["-f", &file.to_string_lossy(), &namespaces])?;
    let running = tenant.rollcall_at(tenant.plane.url(), &[&namespaces, &policies]).await?;
    running.until_ready().await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;

    let (kind, name) = (tenant.kind("Deployment"), format!("system:serviceaccount:{}:rollcall", tenant.name));
    let question = ["auth", "can-i", "list", "deployments.apps", "-A", "--as", &name];
    let answer = tenant.plane.kubectl_command()?.args(question).output()?;
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "no", "{kind:?} is readable everywhere");
    Ok(())
}

#[tokio::test]
async fn it_has_no_right_to_change_anything_but_status() -> Result<()> {
    let tenant = two_policies("least").await?;
    tenant.grant().await?;
    let token = tenant.plane.token_of(&tenant.name, "rollcall").await?;
    let file = tenant.folder.join("check.kubeconfig");
    tenant.plane.kubeconfig_for(&file, tenant.plane.url(), &token, &tenant.name)?;
    let sites = format!("sites.{}", tenant.group);
    for (verb, resource) in [
        ("update", &*sites),
        ("delete", &*sites),
        ("patch", &*sites),
        ("patch", "deployments.apps"),
        ("get", "secrets"),
        ("get", "configmaps"),
        ("patch", "configmaps"),
        ("update", "configmaps/rollcall-inventory"),
        ("delete", "configmaps/rollcall-inventory"),
    ] {
        let answer = tenant
            .plane
            .kubectl_command()?
            .args(["--kubeconfig", &file.to_string_lossy()])
            .args(["auth", "can-i", verb, resource])
            .output()?;
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "no", "may {verb} {resource}");
    }
    for (verb, answers) in
        [("create", "yes"), ("patch", "yes"), ("update", "no"), ("delete", "no"), ("list", "no")]
    {
        let answer = tenant
            .plane
            .kubectl_command()?
            .args(["--kubeconfig", &file.to_string_lossy()])
            .args(["auth", "can-i", verb, "events.events.k8s.io"])
            .output()?;
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), answers, "may {verb} Events");
    }
    let status = tenant
        .plane
        .kubectl_command()?
        .args(["--kubeconfig", &file.to_string_lossy()])
        .args(["auth", "can-i", "patch", &sites, "--subresource=status"])
        .output()?;
    assert_eq!(String::from_utf8_lossy(&status.stdout).trim(), "yes");
    Ok(())
}
