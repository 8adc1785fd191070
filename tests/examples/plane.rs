//! The real control plane of the tests, until Ctrl-C, for whoever wants to try something by hand:
//! `tests/run --build-only && cargo run -p acceptance --example plane`.

#![allow(clippy::print_stdout, reason = "what it prints is for a shell to read")]

use acceptance::control_plane::{ClusterParts, ControlPlane};
use anyhow::Result;

#[tokio::main]
async fn main() -> Result<()> {
    eprintln!("starting etcd, API server, controllers, scheduler and kwok");
    let plane = ControlPlane::start(ClusterParts::Everything).await?;
    println!("export KUBECONFIG={}", plane.kubeconfig().display());
    eprintln!("Pods become ready by themselves; Ctrl-C ends it all");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
