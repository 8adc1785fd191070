//! The front over TLS, as a client speaks it that trusts one certificate alone.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use acceptance::certificates::self_signed;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::json;

/// What the listener at this address answers to a client that trusts this certificate and no other; `None` if it presents
/// another one, or does not listen yet.
fn ask(address: &str, trusted: &Path, path: &str) -> Result<Option<String>> {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-connect", address, "-CAfile"])
        .arg(trusted)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to run openssl")?;
    let mut to = client.stdin.take().context("no standard input")?;
    // Who has been shown the wrong certificate no longer reads.
    _ = write!(to, "GET {path} HTTP/1.1\r\nHost: rollcall\r\nConnection: close\r\n\r\n");
    let output = client.wait_with_output()?;
    drop(to);
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Some(answer).filter(|answer| answer.starts_with("HTTP/1.1 ")))
}

async fn until_answered(address: &str, trusted: &Path, path: &str) -> Result<String> {
    loop {
        if let Some(answer) = ask(address, trusted, path)? {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn the_front_speaks_tls_and_presents_a_renewed_certificate_without_a_restart() -> Result<()> {
    let tenant = TestTenant::start("tls").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.policy("db", "Database", json!({ "children": [tenant.child("Deployment")] })).await?;
    tenant.apply_rights(&[])?;
    let (first, first_key) = self_signed(&tenant.folder, "first")?;
    let (second, second_key) = self_signed(&tenant.folder, "second")?;
    let (shown, key) = (tenant.folder.join("tls.crt"), tenant.folder.join("tls.key"));
    fs::copy(&first, &shown)?;
    fs::copy(&first_key, &key)?;
    let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
    let options = [
        format!("--listen={address}"),
        format!("--tls-cert-file={}", shown.display()),
        format!("--tls-key-file={}", key.display()),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut running = tenant.rollcall_at(tenant.plane.url(), &options).await?;
    let answer = until_answered(&address, &first, "/metrics").await?;
    ensure!(answer.starts_with("HTTP/1.1 200") && answer.contains("\nrollcall_"), "{answer}");
    ensure!(ask(&address, &second, "/metrics")?.is_none(), "it has not changed yet");
    ensure!(running.http("/metrics").await.is_err(), "it speaks nothing but TLS");

    // A key that does not fit leaves what is there; with its certificate it is presented.
    fs::copy(&second_key, &key)?;
    running.until_printed("the changed certificate cannot be used; the one before is kept").await?;
    ensure!(ask(&address, &first, "/livez")?.is_some(), "the one before is kept");
    fs::copy(&second, &shown)?;
    let answer = until_answered(&address, &second, "/livez").await?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    ensure!(ask(&address, &first, "/livez")?.is_none(), "the former one is presented no more");
    ensure!(running.terminate().await?.success());
    Ok(())
}
