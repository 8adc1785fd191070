//! Serves an API server in memory until Ctrl-C: `cargo run -p sandbox --example serve -- 127.0.0.1:8001`, then `kubectl
//! --server http://127.0.0.1:8001 …`.

use std::io;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let addr = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8001".into());
    let addr = addr.parse().map_err(io::Error::other)?;
    let server =
        sandbox::SandboxServer::start(sandbox::SandboxOptions { addr, ..sandbox::SandboxOptions::default() })
            .await?;
    eprintln!("serving on {}", server.url());
    tokio::signal::ctrl_c().await
}
