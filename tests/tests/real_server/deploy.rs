//! What `deploy/` installs, on the real server.

use std::process::Command;

use acceptance::caller::ApiCaller;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{says, there};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, owned_by};
use acceptance::places;
use acceptance::plain_http::get;
use acceptance::policies::TenantPolicies as _;
use acceptance::process::LoggedProcess;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::{TENANT_LABEL, TestTenant};
use anyhow::{Context, Result};
use serde_json::json;

const HOME: &str = "rollcall-system";

/// The base as it is, applied; nothing of it is changed for the test.
fn install(tenant: &TestTenant) -> Result<()> {
    let base = places::repository().join("deploy/kustomize");
    tenant.plane.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &base.to_string_lossy()])?;
    Ok(())
}

#[tokio::test]
async fn the_base_installs_and_its_service_account_is_enough() -> Result<()> {
    let tenant = TestTenant::start("deploy").await?;
    install(&tenant)?;
    // The namespace demands the restricted profile, and the pod is admitted.
    let place =
        ObjectAddress { kind: tenant.kind("Deployment"), namespace: HOME.into(), name: "rollcall".into() };
    tenant.until_at(&place, &says("Available", "True")).await?;

    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let policy = tenant.policy("db", "Database", spec).await?;
    let file = tenant.policies_file(&[policy])?;
    let rights = tenant.folder.join("rights.yaml");
    std::fs::write(&rights, rollcall(&["rbac", "-f", &file.to_string_lossy()])?)?;
    tenant.plane.kubectl(&["apply", "-f", &rights.to_string_lossy()])?;

    let token = tenant.plane.token_of(HOME, "rollcall").await?;
    let kubeconfig = tenant.folder.join("deployed.kubeconfig");
    tenant.plane.kubeconfig_for(&kubeconfig, tenant.plane.url(), &token, HOME)?;
    let ports = free_ports(2)?;
    let mut args = arguments(&tenant, &place).await?;
    args.retain(|arg| !arg.starts_with("--listen") && !arg.starts_with("--probe-listen"));
    args.extend([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--listen=127.0.0.1:{}", ports[0]),
        format!("--probe-listen=127.0.0.1:{}", ports[1]),
        format!("--policy-selector={TENANT_LABEL}={}", tenant.name),
    ]);
    let log = tenant.folder.join("deployed.log");
    let mut process = LoggedProcess::start("rollcall", &places::rollcall()?, &args, &[], &log)?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let ready = tenant.until("Database/db", says("Ready", "True")).await;
    ready.with_context(|| process.tail(40))?;
    // The probes are asked without TLS, the rest with it.
    let probes = format!("127.0.0.1:{}", ports[1]);
    assert_eq!(get(&probes, "/livez", "").await?.code, 200);
    assert_eq!(get(&probes, "/metrics", "").await?.code, 404);
    assert!(get(&format!("127.0.0.1:{}", ports[0]), "/livez", "").await.is_err(), "it speaks without TLS");
    process.terminate()?;
    assert!(process.end(std::time::Duration::from_secs(20)).await?.success());

    let own = ApiCaller::from_kubeconfig(&kubeconfig).await?;
    assert!(own.list(&tenant.kind("Secret"), "", "").await.is_err(), "it may read secrets");
    Ok(())
}

/// The arguments that the deployed container gets.
async fn arguments(tenant: &TestTenant, place: &ObjectAddress) -> Result<Vec<String>> {
    let deployed = tenant.until_at(place, &there()).await?;
    let container = &deployed["spec"]["template"]["spec"]["containers"][0];
    let args = container["args"].as_array().context("a container without arguments")?;
    Ok(args.iter().filter_map(|arg| Some(arg.as_str()?.to_owned())).collect())
}

#[tokio::test]
async fn every_example_is_a_valid_policy() -> Result<()> {
    let tenant = TestTenant::start("examples").await?;
    install(&tenant)?;
    let examples = places::repository().join("deploy/examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(&examples)? {
        let file = entry?.path();
        // A folder is a story of its own, with a test of its own.
        if file.is_dir() {
            continue;
        }
        let name = file.to_string_lossy();
        tenant.plane.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", &name])?;
        rollcall(&["check", "-f", &name])?;
        seen += 1;
    }
    assert!(seen >= 4, "{seen} examples");
    Ok(())
}

#[tokio::test]
async fn the_generated_crds_are_those_that_the_binary_prints() -> Result<()> {
    let file = places::repository().join("deploy/crds/rollcall.dev.yaml");
    assert_eq!(std::fs::read_to_string(file)?, rollcall(&["crd"])?);
    Ok(())
}

#[tokio::test]
async fn the_kustomization_builds_without_a_cluster() -> Result<()> {
    let base = places::repository().join("deploy/kustomize");
    let built = Command::new(places::program("kubectl")?).arg("kustomize").arg(&base).output()?;
    let text = String::from_utf8_lossy(&built.stdout);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for part in ["kind: Namespace", "kind: CustomResourceDefinition", "kind: Deployment", "path: /readyz"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    Ok(())
}
