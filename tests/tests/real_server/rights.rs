//! Rights of policies: they add up, are taken away one by one, and what lacks is named with the command that grants it.

use std::process::Command;
use std::time::Duration;

use acceptance::caller::ApiCaller;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, mentions, says};
use acceptance::gate::{ApiGate, GateRule};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, job, owned_by};
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recovery::{RecoveryTimes, rounds};
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::permissions::revoke;

/// Longest time until the policy says that a right lacks, from the end of the watch that outlived it, and that it is back.
const NAMED_BOUND: Duration = Duration::from_secs(90);

/// A policy over Deployments for each of these kinds of parents.
async fn policies_over(word: &str, parents: &[&str]) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    for parent in parents {
        tenant.crd(&CrdBuilder::new(parent)).await?;
        let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
        tenant.policy(&parent.to_lowercase(), parent, spec).await?;
    }
    Ok(tenant)
}

/// `rollcall rbac` with these arguments, as the administrator; its exit code and what it prints.
pub(crate) fn rbac(tenant: &TestTenant, args: &[&str]) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(places::rollcall()?);
    command.args(["rbac", "--kubeconfig", &tenant.plane.kubeconfig().to_string_lossy()]).args(args);
    let output = command.args(["-n", &tenant.name, "--aggregate-to", &tenant.name]).output()?;
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
    let tenant = policies_over("rights", &["Site", "Store"]).await?;
    let policies = tenant.policies().await?;
    // One after the other, as guides teach it; each prints its own policy's alone.
    for policy in &policies {
        tenant.grant_for(std::slice::from_ref(policy))?;
    }
    let running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    for (parent, name) in [("Site", "a"), ("Store", "b")] {
        let created = tenant.create(tenant.custom(parent, name)).await?;
        tenant.create(owned_by(&created, deployment(name, 1))).await?;
        tenant.until(&format!("{parent}/{name}"), says("Ready", "True")).await?;
        let policy = policy_address(&tenant, &parent.to_lowercase())?;
        tenant.until_at(&policy, &says("Ready", "True").and(no_rights_missing())).await?;
    }
    drop(running);
    let role = format!("{}-rollcall-policy-{}", tenant.name, tenant.policy_name("store"));
    tenant.plane.kubectl(&["delete", "clusterrole", &role])?;
    let aggregated = ObjectAddress {
        kind: tenant.kind("ClusterRole"),
        namespace: String::new(),
        name: format!("{0}-{0}", tenant.name),
    };
    let gone = StateExpectation::new("without stores", |role: &Value| {
        !role["rules"].to_string().contains("\"stores\"")
    });
    tenant.until_at(&aggregated, &gone).await?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let store = policy_address(&tenant, "store")?;
    let named = says("Watching", "False").and(because("Watching", "Forbidden"));
    tenant.until_at(&store, &named.and(mentions("Watching", "stores"))).await?;
    tenant.until("Site/a", says("Ready", "True")).await?;
    tenant.until_at(&policy_address(&tenant, "site")?, &says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn what_lacks_is_named_with_the_command_that_grants_it() -> Result<()> {
    let tenant = policies_over("lacking", &["Site"]).await?;
    tenant.apply_rights(&[])?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &["--aggregate-to", &tenant.name]).await?;
    let (policy, name) = (policy_address(&tenant, "site")?, tenant.policy_name("site"));
    let sites = format!("get,list,watch sites.{}: the parents of the policy", tenant.group);
    let named = because("Watching", "Forbidden").and(mentions("Watching", &sites));
    let command =
        format!("`rollcall rbac {name} -n {0} --aggregate-to {0} | kubectl apply -f -`", tenant.name);
    let told = tenant.until_at(&policy, &named.and(mentions("Watching", &command))).await?;
    let missing = told["status"]["missingRights"].to_string();
    for right in [&*sites, "patch sites/status", "create,patch events.events.k8s.io"] {
        ensure!(missing.contains(right), "{right} is not in {missing}");
    }
    let (code, said) = rbac(&tenant, &[&name, "--check"])?;
    ensure!(code == Some(1), "{said}");
    ensure!(
        said.contains(&format!(
            "lacks patch sites/status.{}: conditions of the parents (policy {name})",
            tenant.group
        )),
        "{said}"
    );
    ensure!(said.contains(&format!("rollcall rbac {name} -n {}", tenant.name)), "{said}");

    // Who plans a change of it is told the same.
    let planned = lacking_by_plan(&tenant).await?;
    let right = format!("patch sites/status.{}: conditions of the parents", tenant.group);
    ensure!(planned.iter().any(|line| line.contains(&right)), "{right} is not in {planned:?}");

    let file = tenant.folder.join("printed.yaml");
    let (code, printed) = rbac(&tenant, &[&name])?;
    ensure!(code == Some(0), "{printed}");
    std::fs::write(&file, printed)?;
    tenant.plane.kubectl(&["apply", "-f", &file.to_string_lossy()])?;
    tenant
        .until_at(&policy, &says("Watching", "True").and(says("Ready", "True")).and(no_rights_missing()))
        .await?;
    let (code, said) = rbac(&tenant, &[&name, "--check"])?;
    ensure!(code == Some(0) && said.contains(" 0 lack"), "{said}");
    let (code, said) = rbac(&tenant, &[&name, "--check=self"])?;
    ensure!(code == Some(0), "an administrator lacks nothing: {said}");
    let planned = lacking_by_plan(&tenant).await?;
    ensure!(planned.is_empty(), "nothing lacks any more: {planned:?}");
    Ok(())
}

/// The rights that `rollcall plan` says the service lacks for a changed policy.
async fn lacking_by_plan(tenant: &TestTenant) -> Result<Vec<String>> {
    let mut changed = tenant.policies().await?;
    changed[0]["spec"]["hold"] = json!("5s");
    let file = tenant.policies_file(&changed)?;
    let mut command = Command::new(places::rollcall()?);
    command.args(["plan", "-o", "json", "--service-account"]);
    command.arg(format!("{}/rollcall", tenant.name)).arg("-f").arg(file);
    command.arg("--kubeconfig").arg(tenant.plane.kubeconfig());
    let output = command.output()?;
    let plan: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let lacking = plan["lackingRights"].as_array().context("no list of rights")?;
    Ok(lacking.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[tokio::test]
async fn a_right_that_is_taken_away_while_it_runs_is_named_before_any_answer_is_taken_back() -> Result<()> {
    let tenant = policies_over("withdrawn", &["Site", "Store"]).await?;
    tenant.grant().await?;
    let own = ApiCaller::from_kubeconfig(&tenant.kubeconfig(tenant.plane.url()).await?).await?;
    let gate = ApiGate::open(&own).await?;
    let _running = tenant.rollcall_at(&gate.url, &[]).await?;
    let mut before = Vec::new();
    for (parent, name) in [("Site", "a"), ("Store", "b")] {
        let created = tenant.create(tenant.custom(parent, name)).await?;
        tenant.create(owned_by(&created, deployment(name, 1))).await?;
        before.push(tenant.until(&format!("{parent}/{name}"), says("Ready", "True")).await?);
    }
    let (site, store) = (policy_address(&tenant, "site")?, policy_address(&tenant, "store")?);
    tenant.until_at(&store, &says("Watching", "True").and(no_rights_missing())).await?;
    let mut named = RecoveryTimes::new("right taken away, named", NAMED_BOUND);
    let mut watched = RecoveryTimes::new("right granted again, watched", NAMED_BOUND);
    for _ in 0..rounds(1) {
        named.add(withdraw_stores(&tenant, &gate).await?)?;
        // Two minutes are not over: the status was not what everybody had to wait for.
        ensure!(tenant.get("Store/b").await? == before[1], "nothing was written");
        tenant.until_at(&site, &says("Watching", "True").and(no_rights_missing())).await?;

        tenant.grant().await?;
        let granted = Instant::now();
        tenant
            .until_at(&store, &says("Watching", "True").and(says("Ready", "True")).and(no_rights_missing()))
            .await?;
        watched.add(granted.elapsed())?;
        for (place, before) in ["Site/a", "Store/b"].into_iter().zip(&before) {
            ensure!(tenant.get(place).await? == *before, "nothing was written on {place}");
        }
    }
    println!("{named}\n{watched}");
    Ok(())
}

/// Takes the rights on stores away. Returns how long it took until the policy said so, in the words of `rollcall rbac --check`.
async fn withdraw_stores(tenant: &TestTenant, gate: &ApiGate) -> Result<Duration> {
    revoke(tenant, "stores").await?;
    // A watch outlives its right until it ends, and brings what there is till then.
    gate.set(GateRule::Down);
    gate.caught().await?;
    gate.set(GateRule::Pass);
    let ended = Instant::now();
    let policy = tenant.policy_name("store");
    let parents = format!("stores.{}: the parents of the policy", tenant.group);
    let right = format!("get,list,watch {parents}");
    let command = format!("`rollcall rbac {policy} -n {} | kubectl apply -f -`", tenant.name);
    let named = says("Watching", "False").and(because("Watching", "Forbidden"));
    let words = mentions("Watching", &right).and(mentions("Watching", &command));
    let told = tenant.until_at(&policy_address(tenant, "store")?, &named.and(words)).await?;
    let took = ended.elapsed();
    ensure!(told["status"]["missingRights"].to_string().contains(&right), "{told}");
    let (code, said) = rbac(tenant, &[&policy, "--check"])?;
    let lacks = |verb: &&str| said.contains(&format!("lacks {verb} {parents}"));
    ensure!(code == Some(1) && ["get", "list", "watch"].iter().all(lacks), "in the same words: {said}");
    Ok(took)
}

#[tokio::test]
async fn a_status_that_may_not_be_written_is_named_and_the_policy_is_not_ready() -> Result<()> {
    let tenant = policies_over("unwritten", &["Site"]).await?;
    let mut shadow = tenant.policies().await?;
    shadow[0]["spec"]["mode"] = json!("shadow");
    tenant.grant_for(&shadow)?;
    let _running = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let policy = policy_address(&tenant, "site")?;
    let named = says("Watching", "True").and(because("Ready", "Forbidden"));
    let right = format!("patch sites/status.{}: conditions of the parents", tenant.group);
    tenant.until_at(&policy, &named.and(mentions("Ready", &right))).await?;
    tenant.grant().await?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_records_namespace_that_does_not_exist_is_a_reason_until_it_does() -> Result<()> {
    let tenant = TestTenant::start("unkept").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut child = tenant.child("Job");
    child["afterDeletion"] = json!("remember");
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    tenant.apply_rights(&[])?;
    // Rights in a namespace that does not exist nobody can grant: it is they who have all that come here.
    let account = format!("--serviceaccount={}:rollcall", tenant.name);
    let binding = format!("{}-everything", tenant.name);
    tenant.plane.kubectl(&[
        "create",
        "clusterrolebinding",
        &binding,
        "--clusterrole=cluster-admin",
        &account,
    ])?;
    let home = format!("{}-home", tenant.name);
    let running = tenant.rollcall_at(tenant.plane.url(), &[&format!("--records-namespace={home}")]).await?;
    running.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, job("migrate"))).await?;
    let policy = policy_address(&tenant, "db")?;
    let command = format!("kubectl create namespace {home}");
    let named = says("Ready", "False").and(because("Ready", "RecordsNamespaceMissing"));
    tenant.until_at(&policy, &named.and(mentions("Ready", &command))).await?;
    let readyz = running.http("/readyz").await?;
    ensure!(readyz.code == 200 && readyz.body.contains(&command), "{}", readyz.body);
    running.until_metric("rollcall_records_failing", &[], |failing| failing > 0.5).await?;
    tenant.plane.kubectl(&["create", "namespace", &home])?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    running.until_metric("rollcall_records_failing", &[], |failing| failing < 0.5).await?;
    let (records, _) = tenant.admin.list(&tenant.kind("ReadinessRecord"), &home, "").await?;
    let record = records.first().context("no record")?;
    ensure!(record.to_string().contains("migrate"), "{record}");
    Ok(())
}
