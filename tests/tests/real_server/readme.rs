//! What the README says to type, typed: its own lines, its own policy, a cluster that has seen neither.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use acceptance::control_plane::{ClusterParts, ControlPlane, free_ports};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, says};
use acceptance::guide::{Asked, InlineCommands};
use acceptance::objects::{condition, deployment, owned_by, stateful_set};
use acceptance::places;
use acceptance::process::LoggedProcess;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::json;

/// The lines of the README's code block that begins with this one.
fn block(first: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(places::repository().join("README.md"))?;
    let lines: Vec<_> = text.lines().skip_while(|line| *line != first).collect();
    ensure!(!lines.is_empty(), "the README has no line {first:?}");
    Ok(lines.into_iter().take_while(|line| !line.starts_with("```")).map(str::to_owned).collect())
}

/// The environment of a user who has `rollcall` and `kubectl` at hand, and is an administrator.
fn user(tenant: &TestTenant) -> Result<Vec<(String, String)>> {
    let folder = |program: &Path| program.parent().unwrap_or(program).display().to_string();
    let (rollcall, kubectl) = (folder(&places::rollcall()?), folder(&places::program("kubectl")?));
    let path = format!("{rollcall}:{kubectl}:{}", std::env::var("PATH")?);
    let listen = format!("127.0.0.1:{}", free_ports(1)?[0]);
    let kubeconfig = tenant.plane.kubeconfig().display().to_string();
    let pairs = [("PATH", path), ("ROLLCALL_LISTEN", listen), ("KUBECONFIG", kubeconfig)];
    Ok(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// A folder as the README assumes it: the policy beside the repository's `deploy`.
fn folder(tenant: &TestTenant) -> Result<()> {
    let policy = block("apiVersion: rollcall.dev/v1alpha1")?.join("\n");
    std::fs::write(tenant.folder.join("policy.yaml"), policy)?;
    Ok(std::os::unix::fs::symlink(places::repository().join("deploy"), tenant.folder.join("deploy"))?)
}

fn type_in(tenant: &TestTenant, line: &str) -> Result<()> {
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", line]).current_dir(&tenant.folder).envs(user(tenant)?);
    let done = shell.output().context("failed to run bash")?;
    ensure!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

#[tokio::test]
async fn the_readme_leads_to_a_verdict() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let mut tenant = TestTenant::start_on(plane, "readme").await?;
    "example.com".clone_into(&mut tenant.group);
    "default".clone_into(&mut tenant.name);
    folder(&tenant)?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    for line in block("kubectl apply --server-side -k deploy/kustomize")? {
        type_in(&tenant, &line)?;
    }
    let mut local = block("rollcall crd | kubectl apply -f -")?;
    ensure!(local.pop().as_deref() == Some("rollcall run"), "the last line runs the service");
    for line in &local {
        type_in(&tenant, line)?;
    }
    let args = ["-c", "cd \"$0\" && exec rollcall run", &tenant.folder.to_string_lossy()].map(str::to_owned);
    let log = tenant.folder.join("rollcall.log");
    let mut service = LoggedProcess::start("rollcall", Path::new("/bin/bash"), &args, &user(&tenant)?, &log)?;
    let policy = tenant.address("ReadinessPolicy/databases")?;
    let accepted =
        tenant.until_at(&policy, &says("Accepted", "True").and(because("Accepted", "Shadow"))).await;
    accepted.with_context(|| service.tail(40))?;
    // When it is right: without `mode: shadow`, as the README says.
    tenant.change("ReadinessPolicy/databases", json!({ "spec": { "mode": null } })).await?;
    let db = tenant.create(tenant.custom("Database", "orders")).await?;
    tenant.create(owned_by(&db, deployment("beside", 1))).await?;
    let missing = because("Ready", "ChildrenMissing");
    tenant.until("Database/orders", missing).await.with_context(|| service.tail(40))?;
    tenant.create(owned_by(&db, stateful_set("orders", 1))).await?;
    let well = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "currentRevision": "1", "updateRevision": "1",
    });
    tenant.change_status("StatefulSet/orders", well).await?;
    tenant.until("Database/orders", says("Ready", "True")).await.with_context(|| service.tail(40))?;
    what_it_says_at_a_glance(&tenant)?;
    service.terminate()?;
    ensure!(service.end(Duration::from_secs(20)).await?.success(), "{}", service.tail(40));
    InlineCommands::of("README.md")?.type_in(&tenant, "rollcall release", &[])?;
    ensure!(condition(&tenant.get("Database/orders").await?, "Ready").is_none(), "it was not released");
    Ok(())
}

/// The commands of the README's sentences, each with a reader's own words and some of the answer.
fn what_it_says_at_a_glance(tenant: &TestTenant) -> Result<()> {
    let crd = CrdBuilder::new("Database").manifest("example.com");
    std::fs::write(tenant.folder.join("crd.yaml"), crd.to_string())?;
    let plugins = tenant.folder.join("bin");
    std::fs::create_dir_all(&plugins)?;
    std::os::unix::fs::symlink(places::rollcall()?, plugins.join("kubectl-rollcall"))?;
    let asked: [Asked; 18] = [
        ("kubectl explain readinesspolicies.spec", &[], "settle"),
        ("kubectl get readinesspolicies", &[], "databases"),
        ("kubectl wait --for=condition=Ready", &[("wait", "wait database/orders")], "condition met"),
        ("rollcall tree database/orders", &[], "StatefulSet"),
        ("kubectl rollcall tree …", &[("…", "database/orders")], "StatefulSet"),
        ("rollcall explain database/orders", &[], "orders"),
        ("rollcall explain database/orders --slow", &[], "after generation 1 was written"),
        ("rollcall wait database/orders --timeout 10m", &[], ""),
        ("rollcall suggest", &[], "# left out: policy databases names it already"),
        ("rollcall install -f policy.yaml", &[], "rollcall-dashboard-fleet"),
        ("rollcall doctor", &[], ""),
        ("rollcall history database/orders", &[], "ChildrenMissing"),
        ("rollcall completion", &[("completion", "completion bash")], "_rollcall"),
        ("rollcall crd-defaults -f CRD", &[("CRD", "crd.yaml")], "ChildrenPending"),
        ("rollcall health-lua", &[], "AllChildrenReady"),
        ("rollcall help", &[], "explain"),
        ("rollcall run --help", &[], "--listen"),
        ("rollcall demo", &[("demo", "demo --help")], "--once"),
    ];
    InlineCommands::of("README.md")?.ask(tenant, &asked)
}
