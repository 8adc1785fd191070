//! With exactly the rights that it prints, and with fewer.

use acceptance::crd::CrdBuilder;
use acceptance::objects::{deployment, owned_by, stateful_set};
use acceptance::rollcall::policy_address;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, because, mentions, says};
use anyhow::Result;
use serde_json::json;

/// Two policies: one over Deployments, one over StatefulSets.
async fn two_policies(word: &str) -> Result<TestTenant> {
    let scene = TestTenant::set(word).await?;
    for (parent, child) in [("Site", "Deployment"), ("Store", "StatefulSet")] {
        scene.crd(&CrdBuilder::new(parent)).await?;
        let spec = json!({ "children": [scene.child(child)], "settle": "100ms" });
        scene.policy(&parent.to_lowercase(), parent, spec).await?;
    }
    Ok(scene)
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_leaves_its_parents_unknown_and_others_go_on() -> Result<()> {
    let scene = two_policies("forbidden").await?;
    let policies = scene.policies().await?;
    let sites: Vec<_> = policies.iter().filter(|p| p["spec"]["parent"]["kind"] == "Site").cloned().collect();
    scene.grant_for(&sites)?;
    let running = scene.rollcall_at(scene.plane.url(), &[]).await?;
    let site = scene.create(scene.custom("Site", "one")).await?;
    scene.create(owned_by(&site, deployment("web", 1))).await?;
    scene.until("Site/one", says("Ready", "True")).await?;
    let store_policy = policy_address(&scene, "store")?;
    let rule = mentions("Watching", "stores").and(mentions("Watching", "statefulsets"));
    scene
        .until_at(&store_policy, &says("Watching", "False").and(because("Watching", "Forbidden")).and(rule))
        .await?;

    let store = scene.create(scene.custom("Store", "one")).await?;
    scene.create(owned_by(&store, stateful_set("db", 1))).await?;
    scene.grant().await?;
    scene.until("Store/one", says("Ready", "True")).await?;
    scene.until_at(&store_policy, &says("Watching", "True")).await?;
    drop(running);
    Ok(())
}

#[tokio::test]
async fn a_right_to_read_children_that_is_taken_away_ends_in_unknown() -> Result<()> {
    let scene = two_policies("revoked").await?;
    let running = scene.rollcall(&[]).await?;
    let site = scene.create(scene.custom("Site", "one")).await?;
    scene.create(owned_by(&site, deployment("web", 1))).await?;
    let store = scene.create(scene.custom("Store", "one")).await?;
    scene.create(owned_by(&store, stateful_set("db", 1))).await?;
    scene.until("Site/one", says("Ready", "True")).await?;
    scene.until("Store/one", says("Ready", "True")).await?;
    drop(running);
    // A running watch outlives its right until the server ends it; a new process has no such grace.
    revoke(&scene, "statefulsets").await?;
    let _running = scene.rollcall_at(scene.plane.url(), &[]).await?;
    scene.until("Store/one", says("Ready", "Unknown").and(because("Ready", "KindNotVisible"))).await?;
    scene.until("Site/one", says("Ready", "True")).await?;
    scene.grant().await?;
    scene.until("Store/one", says("Ready", "True")).await?;
    Ok(())
}

/// Takes one resource out of all the roles of a scene.
pub(crate) async fn revoke(scene: &TestTenant, resource: &str) -> Result<()> {
    let mut aggregated = Vec::new();
    for word in ["ClusterRole", "Role"] {
        let kind = scene.kind(word);
        let (roles, _) = scene.admin.list(&kind, &scene.name, "").await?;
        for mut role in roles {
            let own = role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&scene.name));
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
            scene.admin.merge(&place, "", &json!({ "rules": kept })).await?;
        }
    }
    let word = format!("\"{resource}\"");
    for role in aggregated {
        let word = word.clone();
        let gone = StateExpectation::new("without that resource", move |role| {
            !role["rules"].to_string().contains(&word)
        });
        scene.until_at(&role, &gone).await?;
    }
    Ok(())
}

#[tokio::test]
async fn within_namespaces_roles_are_enough() -> Result<()> {
    let scene = TestTenant::set("roles").await?;
    scene.crd(&CrdBuilder::new("Site")).await?;
    let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
    let policy = scene.policy("site", "Site", spec).await?;
    // Policies live in the cluster, where a Role grants nothing: they come from a file.
    let file = scene.policies_file(&[policy])?;
    let (namespaces, policies) =
        (format!("--namespaces={}", scene.name), format!("--policies={}", file.display()));
    scene.apply_rights(&["-f", &file.to_string_lossy(), &namespaces])?;
    let running = scene.rollcall_at(scene.plane.url(), &[&namespaces, &policies]).await?;
    running.until_ready().await?;
    let site = scene.create(scene.custom("Site", "one")).await?;
    scene.create(owned_by(&site, deployment("web", 1))).await?;
    scene.until("Site/one", says("Ready", "True")).await?;

    let (kind, name) = (scene.kind("Deployment"), format!("system:serviceaccount:{}:rollcall", scene.name));
    let question = ["auth", "can-i", "list", "deployments.apps", "-A", "--as", &name];
    let answer = scene.plane.kubectl_command()?.args(question).output()?;
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "no", "{kind:?} is readable everywhere");
    Ok(())
}

#[tokio::test]
async fn it_has_no_right_to_change_anything_but_status() -> Result<()> {
    let scene = two_policies("least").await?;
    scene.grant().await?;
    let token = scene.plane.token_of(&scene.name, "rollcall").await?;
    let file = scene.folder.join("check.kubeconfig");
    scene.plane.kubeconfig_for(&file, scene.plane.url(), &token, &scene.name)?;
    let sites = format!("sites.{}", scene.group);
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
        let answer = scene
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
        let answer = scene
            .plane
            .kubectl_command()?
            .args(["--kubeconfig", &file.to_string_lossy()])
            .args(["auth", "can-i", verb, "events.events.k8s.io"])
            .output()?;
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), answers, "may {verb} Events");
    }
    let status = scene
        .plane
        .kubectl_command()?
        .args(["--kubeconfig", &file.to_string_lossy()])
        .args(["auth", "can-i", "patch", &sites, "--subresource=status"])
        .output()?;
    assert_eq!(String::from_utf8_lossy(&status.stdout).trim(), "yes");
    Ok(())
}
