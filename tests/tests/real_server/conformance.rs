//! The sandbox tells the truth about a real server: both are asked the same and have to answer the same.

use acceptance::control_plane::{self, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::has;
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use sandbox::conformance::{
    CaseOutcome, ConformanceCase, ServerEndpoint, all_cases, find_differences, run_cases,
};
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sandbox_answers_as_the_real_server_does() -> Result<()> {
    let plane = control_plane::shared().await?;
    let sandbox = SandboxServer::start(SandboxOptions::default()).await?;
    let alike = ServerEndpoint { url: sandbox.url(), ..ServerEndpoint::default() };
    let mut cases = all_cases();
    let first = find_differing(&endpoint(&plane)?, &alike, &cases).await?;
    println!("{}", first.iter().map(|(_, said)| said.as_str()).collect::<Vec<_>>().join("\n"));
    // What differs because the machine stood still for a moment does not differ again.
    cases.retain(|case| first.iter().any(|(step, _)| step.starts_with(&case.name)));
    let wrong = find_differing(&endpoint(&plane)?, &alike, &cases).await?;
    let wrong: Vec<_> = wrong.into_iter().map(|(_, said)| said).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Plays cases on both servers. Returns what failed or differs, each with the step where it did: the name of the case comes first.
async fn find_differing(
    real: &ServerEndpoint,
    alike: &ServerEndpoint,
    cases: &[ConformanceCase],
) -> Result<Vec<(String, String)>> {
    let real = run_cases(real, cases).await?;
    let ours = run_cases(alike, cases).await?;
    let failures = |server: &'static str, outcome: &CaseOutcome| -> Vec<(String, String)> {
        let told =
            |failure: &String| (outcome.name.clone(), format!("{server}: {}: {failure}", outcome.name));
        outcome.failures.iter().map(told).collect()
    };
    let mut wrong: Vec<_> = real.iter().flat_map(|outcome| failures("real", outcome)).collect();
    wrong.extend(ours.iter().flat_map(|outcome| failures("sandbox", outcome)));
    let differ = find_differences(&real, &ours);
    let differ = differ.iter().filter(|found| found.allowed_reason().is_none());
    wrong.extend(differ.map(|found| (found.step.clone(), found.to_string())));
    Ok(wrong)
}

const OBJECTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: prices, namespace: shop }
data: { tea: "1 < 2" }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  selector: { matchLabels: { a: b } }
  template:
    metadata: { labels: { a: b } }
    spec: { containers: [{ name: c, image: "i:1" }] }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works_with_the_sandbox() -> Result<()> {
    let sandbox = SandboxServer::start(SandboxOptions::default()).await?;
    let folder = places::run_folder()?.join("kubectl-and-sandbox");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("objects.yaml").display().to_string();
    std::fs::write(&file, OBJECTS)?;
    let kubectl = |words: &str| -> Result<String> {
        let mut command = std::process::Command::new(places::program("kubectl")?);
        command.args(["--server", &sandbox.url(), "--cache-dir"]).arg(folder.join("cache"));
        let words = words.split_whitespace().map(|word| if word == "FILE" { &file } else { word });
        let output = command.args(words).output()?;
        Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    };
    let available = r#"{"status":{"readyReplicas":1,"conditions":[{"type":"Available","status":"True"}]}}"#;
    let patch = format!("patch deploy web -n shop --subresource=status --type=merge -p {available}");
    let cases = [
        ("apply -f FILE", "deployment.apps/web created"),
        ("apply -f FILE", "deployment.apps/web unchanged"),
        ("get ns shop", "NAME   STATUS   AGE\nshop   Active"),
        ("get deploy -n shop", "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    0/1     0            0"),
        ("get cm -n shop prices -o jsonpath={.data.tea}", "1 < 2"),
        ("describe deploy web -n shop", "Replicas:               1 desired"),
        (&patch, "deployment.apps/web patched"),
        (
            "wait deploy web -n shop --for=condition=Available --timeout=30s",
            "deployment.apps/web condition met",
        ),
        ("get deploy -n shop --no-headers", "web   1/1"),
        ("label cm prices -n shop x=y", "configmap/prices labeled"),
        ("get cm -A -l x=y --no-headers", "prices"),
        ("apply --server-side -f FILE", "the sandbox does not implement server-side apply"),
        ("delete deploy web -n shop", "deployment.apps \"web\" deleted"),
        ("delete ns shop --timeout=30s", "namespace \"shop\" deleted"),
        ("get cm prices -n shop", "(NotFound)"),
    ];
    for (words, wanted) in cases {
        let said = kubectl(words)?;
        assert!(said.contains(wanted), "kubectl {words} should say {wanted:?}, says: {said}");
    }
    Ok(())
}

/// The server compares texts in a guard, and escapes these characters in its own: a guard that spells them plainly
/// never holds.
#[tokio::test]
async fn a_neighbour_may_use_characters_that_json_may_escape() -> Result<()> {
    let tenant = TestTenant::start("escaped").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    tenant.create(tenant.custom("Database", "db")).await?;
    let odd = json!({ "type": "Odd", "status": "True", "message": "1 < 2 & \"3\" > 2, é \u{2028} /" });
    tenant.change_status("Database/db", json!({ "conditions": [odd] })).await?;
    tenant.policy("db", "Database", json!({ "children": [tenant.child("Shard")] })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.until("Database/db", has("Ready", true)).await?;
    let db = tenant.get("Database/db").await?;
    assert_eq!(db["status"]["conditions"][0], odd, "the neighbour's word stays as it was");
    Ok(())
}

/// The administrator's way to the server.
fn endpoint(plane: &ControlPlane) -> Result<ServerEndpoint> {
    let config: serde_json::Value = serde_json::from_slice(&std::fs::read(plane.kubeconfig())?)?;
    let at = |pointer: &str| {
        let text = config.pointer(pointer).and_then(serde_json::Value::as_str);
        text.map(str::to_owned).with_context(|| format!("a kubeconfig without {pointer}"))
    };
    let ca = std::fs::read(at("/clusters/0/cluster/certificate-authority")?)?;
    Ok(ServerEndpoint {
        url: at("/clusters/0/cluster/server")?,
        token: Some(at("/users/0/user/token")?),
        ca: Some(ca),
    })
}
