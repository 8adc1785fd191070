//! Rights of policies: they add up, are taken away one by one, and what lacks is named with the command that grants it.

use std::process::Command;

use acceptance::crd::CrdBuilder;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, job, owned_by};
use acceptance::places;
use acceptance::rollcall::policy_address;
use acceptance::scene::TestTenant;
use acceptance::wish::{StateExpectation, because, mentions, says};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A policy over Deployments for each of these kinds of parents.
async fn policies_over(word: &str, parents: &[&str]) -> Result<TestTenant> {
    let scene = TestTenant::set(word).await?;
    for parent in parents {
        scene.crd(&CrdBuilder::new(parent)).await?;
        let spec = json!({ "children": [scene.child("Deployment")], "settle": "100ms" });
        scene.policy(&parent.to_lowercase(), parent, spec).await?;
    }
    Ok(scene)
}

/// `rollcall rbac` with these arguments, as the administrator; its exit code and what it prints.
fn rbac(scene: &TestTenant, args: &[&str]) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(places::rollcall()?);
    command.args(["rbac", "--kubeconfig", &scene.plane.kubeconfig().to_string_lossy()]).args(args);
    let output = command.args(["-n", &scene.name, "--aggregate-to", &scene.name]).output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
}

fn no_rights_missing() -> StateExpectation {
    StateExpectation::new("no rights missing", |policy: &Value| {
        policy["status"]["missingRights"].as_array().is_none_or(Vec::is_empty)
    })
}

#[tokio::test]
async fn rights_of_policies_add_up_and_are_taken_away_one_by_one() -> Result<()> {
    let scene = policies_over("rights", &["Site", "Store"]).await?;
    let policies = scene.policies().await?;
    // One after the other, as guides teach it; each prints its own policy's alone.
    for policy in &policies {
        scene.grant_for(std::slice::from_ref(policy))?;
    }
    let running = scene.rollcall_at(scene.plane.url(), &[]).await?;
    for (parent, name) in [("Site", "a"), ("Store", "b")] {
        let created = scene.create(scene.custom(parent, name)).await?;
        scene.create(owned_by(&created, deployment(name, 1))).await?;
        scene.until(&format!("{parent}/{name}"), says("Ready", "True")).await?;
        let policy = policy_address(&scene, &parent.to_lowercase())?;
        scene.until_at(&policy, &says("Ready", "True").and(no_rights_missing())).await?;
    }
    drop(running);
    let role = format!("{}-rollcall-policy-{}", scene.name, scene.policy_name("store"));
    scene.plane.kubectl(&["delete", "clusterrole", &role])?;
    let aggregated = ObjectAddress {
        kind: scene.kind("ClusterRole"),
        namespace: String::new(),
        name: format!("{0}-{0}", scene.name),
    };
    let gone = StateExpectation::new("without stores", |role: &Value| {
        !role["rules"].to_string().contains("\"stores\"")
    });
    scene.until_at(&aggregated, &gone).await?;
    let _running = scene.rollcall_at(scene.plane.url(), &[]).await?;
    let store = policy_address(&scene, "store")?;
    let named = says("Watching", "False").and(because("Watching", "Forbidden"));
    scene.until_at(&store, &named.and(mentions("Watching", "stores"))).await?;
    scene.until("Site/a", says("Ready", "True")).await?;
    scene.until_at(&policy_address(&scene, "site")?, &says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn what_lacks_is_named_with_the_command_that_grants_it() -> Result<()> {
    let scene = policies_over("lacking", &["Site"]).await?;
    scene.apply_rights(&[])?;
    let _running = scene.rollcall_at(scene.plane.url(), &[]).await?;
    let (policy, name) = (policy_address(&scene, "site")?, scene.policy_name("site"));
    let sites = format!("get,list,watch sites.{}: the parents of the policy", scene.group);
    let named = because("Watching", "Forbidden").and(mentions("Watching", &sites));
    let command = format!("`rollcall rbac {name} -n {} | kubectl apply -f -`", scene.name);
    let told = scene.until_at(&policy, &named.and(mentions("Watching", &command))).await?;
    let missing = told["status"]["missingRights"].to_string();
    for right in [&*sites, "patch sites/status", "create,patch events.events.k8s.io"] {
        ensure!(missing.contains(right), "{right} is not in {missing}");
    }
    let (code, said) = rbac(&scene, &[&name, "--check"])?;
    ensure!(code == Some(1), "{said}");
    ensure!(
        said.contains(&format!(
            "lacks patch sites/status.{}: conditions of the parents (policy {name})",
            scene.group
        )),
        "{said}"
    );
    ensure!(said.contains(&format!("rollcall rbac {name} -n {}", scene.name)), "{said}");

    let file = scene.folder.join("printed.yaml");
    let (code, printed) = rbac(&scene, &[&name])?;
    ensure!(code == Some(0), "{printed}");
    std::fs::write(&file, printed)?;
    scene.plane.kubectl(&["apply", "-f", &file.to_string_lossy()])?;
    scene
        .until_at(&policy, &says("Watching", "True").and(says("Ready", "True")).and(no_rights_missing()))
        .await?;
    let (code, said) = rbac(&scene, &[&name, "--check"])?;
    ensure!(code == Some(0) && said.contains(" 0 lack"), "{said}");
    let (code, said) = rbac(&scene, &[&name, "--check=self"])?;
    ensure!(code == Some(0), "an administrator lacks nothing: {said}");
    Ok(())
}

#[tokio::test]
async fn a_status_that_may_not_be_written_is_named_and_the_policy_is_not_ready() -> Result<()> {
    let scene = policies_over("unwritten", &["Site"]).await?;
    let mut shadow = scene.policies().await?;
    shadow[0]["spec"]["mode"] = json!("shadow");
    scene.grant_for(&shadow)?;
    let _running = scene.rollcall_at(scene.plane.url(), &[]).await?;
    let policy = policy_address(&scene, "site")?;
    let named = says("Watching", "True").and(because("Ready", "Forbidden"));
    let right = format!("patch sites/status.{}: conditions of the parents", scene.group);
    scene.until_at(&policy, &named.and(mentions("Ready", &right))).await?;
    scene.grant().await?;
    scene.until_at(&policy, &says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_records_namespace_that_does_not_exist_is_a_reason_until_it_does() -> Result<()> {
    let scene = TestTenant::set("unkept").await?;
    scene.crd(&CrdBuilder::new("Database")).await?;
    let mut child = scene.child("Job");
    child["afterDeletion"] = json!("remember");
    scene.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    scene.apply_rights(&[])?;
    // Rights in a namespace that does not exist nobody can grant: it is they who have all that come here.
    let account = format!("--serviceaccount={}:rollcall", scene.name);
    let binding = format!("{}-everything", scene.name);
    scene.plane.kubectl(&[
        "create",
        "clusterrolebinding",
        &binding,
        "--clusterrole=cluster-admin",
        &account,
    ])?;
    let home = format!("{}-home", scene.name);
    let running = scene.rollcall_at(scene.plane.url(), &[&format!("--records-namespace={home}")]).await?;
    running.until_ready().await?;
    let db = scene.create(scene.custom("Database", "db")).await?;
    scene.create(owned_by(&db, job("migrate"))).await?;
    let policy = policy_address(&scene, "db")?;
    let command = format!("kubectl create namespace {home}");
    let named = says("Ready", "False").and(because("Ready", "RecordsNamespaceMissing"));
    scene.until_at(&policy, &named.and(mentions("Ready", &command))).await?;
    let readyz = running.http("/readyz").await?;
    ensure!(readyz.code == 200 && readyz.body.contains(&command), "{}", readyz.body);
    running.until_metric("rollcall_records_failing", &[], |failing| failing > 0.5).await?;
    scene.plane.kubectl(&["create", "namespace", &home])?;
    scene.until_at(&policy, &says("Ready", "True")).await?;
    running.until_metric("rollcall_records_failing", &[], |failing| failing < 0.5).await?;
    let (records, _) = scene.admin.list(&scene.kind("ReadinessRecord"), &home, "").await?;
    let record = records.first().context("no record")?;
    ensure!(record.to_string().contains("migrate"), "{record}");
    Ok(())
}
