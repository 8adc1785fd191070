//! The sandbox tells the truth about a real server: both are asked the same and have to answer the same.

use acceptance::control_plane::{self, ControlPlane};
use anyhow::{Context, Result};
use sandbox::conformance::{Endpoint, cases, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_that_holds_on_the_sandbox_holds_here() -> Result<()> {
    let plane = control_plane::shared().await?;
    let outcomes = run(&endpoint(&plane)?, &cases()).await?;
    let failures: Vec<String> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.failures.iter().map(move |failure| format!("{}: {failure}", outcome.name))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// The administrator's way to the server.
fn endpoint(plane: &ControlPlane) -> Result<Endpoint> {
    let config: serde_json::Value = serde_json::from_slice(&std::fs::read(plane.kubeconfig())?)?;
    let at = |pointer: &str| {
        let text = config.pointer(pointer).and_then(serde_json::Value::as_str);
        text.map(str::to_owned).with_context(|| format!("a kubeconfig without {pointer}"))
    };
    let ca = std::fs::read(at("/clusters/0/cluster/certificate-authority")?)?;
    Ok(Endpoint {
        url: at("/clusters/0/cluster/server")?,
        token: Some(at("/users/0/user/token")?),
        ca: Some(ca),
    })
}
