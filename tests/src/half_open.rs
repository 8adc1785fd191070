//! A TCP proxy whose connections can die without a word: their bytes are swallowed, nobody is told, and new ones work. It
//! can also reset them, which both ends are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tokio::io::{copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the connections that there are end.
#[derive(Clone, Copy)]
enum ConnectionEnd {
    /// Nothing goes over them any more, and nobody is told.
    Swallowed,
    /// Both ends get a RST.
    Reset,
}

/// A listening proxy; closed when dropped, with everything that goes through it.
pub struct HalfOpenProxy {
    /// URL for clients.
    pub url: String,
    end: watch::Sender<ConnectionEnd>,
    carried: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl HalfOpenProxy {
    /// Opens a proxy before the server of this URL, which is `scheme://address:port`.
    pub async fn open(url: &str) -> Result<Self> {
        let (scheme, address) = url.split_once("://").context("a URL without a scheme")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let own = format!("{scheme}://{}", listener.local_addr()?);
        let (end, dying) = watch::channel(ConnectionEnd::Swallowed);
        let carried = Arc::new(AtomicUsize::new(0));
        let (address, count) = (address.to_owned(), carried.clone());
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(&address).await {
                    count.fetch_add(1, Ordering::Relaxed);
                    connections.spawn(carry(client, server, dying.clone()));
                }
            }
        });
        Ok(Self { url: own, end, carried, accepting })
    }

    /// From now on, nothing goes over the connections that there are.
    pub fn swallow_existing(&self) {
        self.end.send_replace(ConnectionEnd::Swallowed);
    }

    /// Resets the connections that there are.
    pub fn reset_existing(&self) {
        self.end.send_replace(ConnectionEnd::Reset);
    }

    /// Number of connections so far.
    pub fn count_connections(&self) -> usize {
        self.carried.load(Ordering::Relaxed)
    }
}

impl Drop for HalfOpenProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, mut dying: watch::Receiver<ConnectionEnd>) {
    dying.mark_unchanged();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    tokio::select! {
        // Either end closed its side: the other is closed too.
        _ = copy(&mut from_client, &mut to_server) => return,
        _ = copy(&mut from_server, &mut to_client) => return,
        changed = dying.changed() => if changed.is_err() {
            return;
        },
    }
    if let ConnectionEnd::Reset = *dying.borrow() {
        for end in [&client, &server] {
            // Closed so, a socket sends a RST. Where it cannot be set, a FIN is sent, and the test notices nothing else.
            _ = end.set_zero_linger();
        }
        return;
    }
    // Bytes are taken from both ends and go nowhere; both ends stay open until each closes its own.
    let (mut nowhere, mut nowhere_else) = (sink(), sink());
    _ = tokio::join!(copy(&mut from_client, &mut nowhere), copy(&mut from_server, &mut nowhere_else));
}
