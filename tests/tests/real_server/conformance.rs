//! The sandbox tells the truth about a real server: both are asked the same and have to answer the same.

use acceptance::control_plane::{self, ControlPlane};
use anyhow::{Context, Result};
use sandbox::conformance::{Endpoint, Outcome, cases, differences, run};
use sandbox::{Options, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sandbox_answers_as_the_real_server_does() -> Result<()> {
    let plane = control_plane::shared().await?;
    let sandbox = Server::start(Options::default()).await?;
    let alike = Endpoint { url: sandbox.url(), ..Endpoint::default() };
    let real = run(&endpoint(&plane)?, &cases()).await?;
    let ours = run(&alike, &cases()).await?;
    let failures = |server: &str, outcomes: &[Outcome]| -> Vec<String> {
        let of = |outcome: &Outcome| {
            let told = |failure: &String| format!("{server}: {}: {failure}", outcome.name);
            outcome.failures.iter().map(told).collect::<Vec<_>>()
        };
        outcomes.iter().flat_map(of).collect()
    };
    let mut wrong = failures("real", &real);
    wrong.extend(failures("sandbox", &ours));
    let differ = differences(&real, &ours);
    wrong.extend(differ.iter().filter(|found| found.left_out().is_none()).map(ToString::to_string));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
