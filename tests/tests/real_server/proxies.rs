//! An API server that is reached through a proxy, by the service and by people.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use acceptance::connect_proxy::ConnectProxy;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::json;

/// `me:secret`.
const CREDENTIALS: &str = "Basic bWU6c2VjcmV0";

/// A tenant's kubeconfig whose cluster has this proxy.
async fn kubeconfig_through(tenant: &TestTenant, proxy: &str) -> Result<PathBuf> {
    let file = tenant.kubeconfig(tenant.plane.url()).await?;
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    text["clusters"][0]["cluster"]["proxy-url"] = json!(proxy);
    std::fs::write(&file, text.to_string())?;
    Ok(file)
}

/// Shows the tenant's Database with this kubeconfig and environment.
async fn show(tenant: &TestTenant, kubeconfig: &Path, variables: &[(&str, &str)]) -> Result<Output> {
    let mut command = Command::new(acceptance::places::rollcall()?);
    let database = format!("database.{}/orders", tenant.kind("Database").group());
    command.args(["tree", &database, "--kubeconfig", &kubeconfig.to_string_lossy()]);
    command.envs(variables.iter().copied());
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

#[tokio::test]
async fn service_and_commands_reach_the_server_through_the_proxy_of_the_kubeconfig() -> Result<()> {
    let tenant = TestTenant::start("proxied").await?;
    let proxy = ConnectProxy::start(CREDENTIALS).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({ "settle": "100ms" })).await?;
    tenant.grant().await?;
    let kubeconfig = kubeconfig_through(&tenant, &format!("http://me:secret@{}", proxy.address())).await?;
    let service = tenant.rollcall_with(&kubeconfig, &[]).await?;
    service.until_ready().await?;
    let db = tenant.create(tenant.custom("Database", "orders")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/orders", says("Ready", "True")).await?;
    let by_the_service = proxy.tunnels();
    assert!(by_the_service > 0);
    // Kinds of other tenants may not be read, which is said.
    let output = show(&tenant, &kubeconfig, &[]).await?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("orders"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(proxy.tunnels() > by_the_service);
    drop(service);

    for refused in [format!("http://me:wrong@{}", proxy.address()), "http://me:secret@127.0.0.1:9".to_owned()]
    {
        let kubeconfig = kubeconfig_through(&tenant, &refused).await?;
        let output = show(&tenant, &kubeconfig, &[]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        let (_, address) = refused.split_once('@').unwrap_or_default();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("through the proxy {address}, ")), "{said}");
        assert!(!said.contains("secret") && !said.contains("wrong"), "{said}");
    }
    let kubeconfig = kubeconfig_through(&tenant, "gopher://proxy").await?;
    let output = show(&tenant, &kubeconfig, &[]).await?;
    assert_eq!(output.status.code(), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_without_the_proxy_of_the_environment() -> Result<()> {
    let tenant = TestTenant::start("unproxied").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({})).await?;
    tenant.create(tenant.custom("Database", "orders")).await?;
    tenant.grant().await?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let nowhere = "http://127.0.0.1:9";
    let output = show(&tenant, &kubeconfig, &[("HTTPS_PROXY", nowhere), ("HTTP_PROXY", nowhere)]).await?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("orders"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
