//! Credentials that a real API server refuses: what is wrong with them is named, with the way out.

use std::path::Path;
use std::process::Command;

use acceptance::tenant::TestTenant;
use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

/// What each command says with this kubeconfig: exit code 2, nothing on standard output, and the same words.
async fn refused(kubeconfig: &Path) -> Result<String> {
    let mut said = Vec::new();
    for args in [&["doctor"][..], &["tree"], &["tree", "pod/a"], &["wait", "pod/a"], &["explain", "pod/a"]] {
        let mut command = Command::new(acceptance::places::rollcall()?);
        command.args(args).args(["--kubeconfig", &kubeconfig.to_string_lossy()]);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {err}");
        said.push(err);
    }
    assert!(said.iter().all(|words| *words == said[0]), "{said:#?}");
    Ok(said.swap_remove(0))
}

#[tokio::test]
async fn an_expired_client_certificate_is_named_with_the_moment() -> Result<()> {
    let tenant = TestTenant::start("certificates").await?;
    let file = tenant.folder.join("kubeconfig");
    tenant.plane.kubeconfig_by_certificate(&file, "late", "20260102030405Z")?;
    let said = refused(&file).await?;
    let expected = "(401): the client certificate of the kubeconfig expired at 2026-01-02T03:04:05Z; ask for a new client certificate";
    assert!(
        said.contains(expected) && said.contains(tenant.plane.url()) && said.contains("--context"),
        "{said}"
    );
    // One that has not expired is somebody, who may do little: that is named, and is no end.
    tenant.plane.kubeconfig_by_certificate(&file, "early", "20491231235959Z")?;
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["tree", "deployment/web", "--kubeconfig", &file.to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not read: Deployment.apps: you may not list it"), "{said}");
    assert!(!said.contains("401"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_token_that_has_expired_or_is_nobodys_is_named_as_such() -> Result<()> {
    let tenant = TestTenant::start("tokens").await?;
    let file = tenant.folder.join("kubeconfig");
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({ "iss": "https://kubernetes.default.svc", "exp": 1_767_225_600,
        "aud": ["https://kubernetes.default.svc"], "sub": "system:serviceaccount:default:default" });
    let token = format!("{}.{}.{}", part(json!({ "alg": "ES256", "kid": "x" })), part(claims), "c2ln");
    tenant.plane.kubeconfig_as(&file, &json!({ "token": token }))?;
    let said = refused(&file).await?;
    let expected = "(401): the token of the kubeconfig expired at 2026-01-01T00:00:00Z; log in again";
    assert!(said.contains(expected) && !said.contains(&token), "{said}");
    tenant.plane.kubeconfig_as(&file, &json!({ "token": "of-nobody" }))?;
    let said = refused(&file).await?;
    assert!(
        said.contains(
            "does not accept these credentials (401): they are wrong or have expired; log in again"
        ),
        "{said}"
    );
    // A program that gives what the server does not take.
    let gives = json!({ "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": "of-nobody" } });
    let plugin = json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "args": [gives.to_string()], "interactiveMode": "Never" } });
    tenant.plane.kubeconfig_as(&file, &plugin)?;
    let said = refused(&file).await?;
    assert!(
        said.contains("(401): they are wrong or have expired; log in again with echo, which provided them"),
        "{said}"
    );
    // Another cluster's authority: the server is not who it should be.
    tenant.plane.kubeconfig_as(&file, &json!({ "token": "of-nobody" }))?;
    let text = std::fs::read_to_string(&file)?;
    let other = tenant.folder.join("other.pem");
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-subj",
            "/CN=other",
            "-keyout",
            "/dev/null",
            "-out",
        ])
        .arg(&other)
        .output()?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut value: serde_json::Value = serde_json::from_str(&text)?;
    value["clusters"][0]["cluster"]["certificate-authority"] = json!(other);
    std::fs::write(&file, value.to_string())?;
    let said = refused(&file).await?;
    assert!(
        said.contains("no safe connection to https://") && said.contains("certificate-authority"),
        "{said}"
    );
    Ok(())
}
