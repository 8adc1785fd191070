//! An HTTP proxy that tunnels, as companies have it between their people and their clusters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A proxy on loopback that opens tunnels for who has its credentials; it ends with its owner.
pub struct ConnectProxy {
    address: String,
    tunnels: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl ConnectProxy {
    /// Starts it. `credentials` is the header that it asks for, such as `Basic bWU6c2VjcmV0`.
    pub async fn start(credentials: &'static str) -> Result<ConnectProxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let tunnels = Arc::new(AtomicUsize::new(0));
        let counted = tunnels.clone();
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(tunnel(client, credentials, counted.clone()));
            }
        });
        Ok(ConnectProxy { address, tunnels, serving })
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Number of tunnels that were opened.
    pub fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }
}

impl Drop for ConnectProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn tunnel(client: TcpStream, credentials: &str, opened: Arc<AtomicUsize>) -> Result<()> {
    let mut client = BufReader::new(client);
    let (mut first, mut is_known) = (String::new(), false);
    client.read_line(&mut first).await?;
    loop {
        let mut line = String::new();
        client.read_line(&mut line).await?;
        let header = line.trim_end().split_once(": ");
        is_known |= header.is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("proxy-authorization") && value == credentials
        });
        if line.trim_end().is_empty() {
            break;
        }
    }
    if !is_known {
        client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await?;
        return Ok(());
    }
    let target = first.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    let mut server = TcpStream::connect(target.context("it does nothing but tunnel")?).await?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    opened.fetch_add(1, Ordering::Relaxed);
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
