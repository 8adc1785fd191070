//! Recorded answers at wire speed: bytes that were rendered before, so that a benchmark measures its client alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::serve::{Body, whole};
use super::stream;

/// How much of a watch is sent at a time.
const CHUNK: usize = 128 * 1024;

/// What to serve: for each path its list pages and its watch lines.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    lists: BTreeMap<String, Vec<Bytes>>,
    watches: BTreeMap<String, Bytes>,
    others: BTreeMap<String, Bytes>,
}

impl Replay {
    /// A list under this path, `/api/v1/pods` say: items as JSON, paged. Page `n` goes by the continue token `n`.
    pub fn list(
        mut self,
        path: &str,
        api_version: &str,
        kind: &str,
        revision: u64,
        items: &[Vec<u8>],
        page: usize,
    ) -> Replay {
        let chunks: Vec<&[Vec<u8>]> = items.chunks(page.max(1)).collect();
        let count = chunks.len().max(1);
        let rendered = (0..count).map(|at| {
            let next = if at + 1 < count { format!(",\"continue\":\"{}\"", at + 1) } else { String::new() };
            let head = format!(
                "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{api_version}\",\"metadata\":{{\"resourceVersion\":\"{revision}\"{next}}},\"items\":["
            );
            let mut page = head.into_bytes();
            page.extend(chunks.get(at).map(|items| items.join(&b","[..])).unwrap_or_default());
            page.extend_from_slice(b"]}");
            Bytes::from(page)
        });
        self.lists.insert(path.into(), rendered.collect());
        self
    }

    /// The lines of a watch on this path, each with its newline.
    pub fn watch(mut self, path: &str, lines: impl IntoIterator<Item = Vec<u8>>) -> Replay {
        let lines: Vec<u8> = lines.into_iter().flatten().collect();
        self.watches.insert(path.into(), lines.into());
        self
    }

    /// Any other answer, for discovery.
    pub fn answer(mut self, path: &str, body: impl Into<Bytes>) -> Replay {
        self.others.insert(path.into(), body.into());
        self
    }

    fn page(&self, path: &str, query: &str) -> Option<&Bytes> {
        let token = query.split('&').find_map(|pair| pair.strip_prefix("continue=")).unwrap_or_default();
        self.lists.get(path)?.get(token.parse::<usize>().unwrap_or(0))
    }
}

/// Serves a [`Replay`]. Watches open at once and tell their lines when released; then they stay open.
pub struct ReplayServer {
    addr: SocketAddr,
    released: watch::Sender<bool>,
    accepting: AbortHandle,
}

impl ReplayServer {
    /// Starts on a free port of loopback.
    pub async fn start(replay: Replay) -> io::Result<ReplayServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let released = watch::Sender::new(false);
        let accepting = tokio::spawn(accept(listener, Arc::new(replay), released.clone())).abort_handle();
        Ok(ReplayServer { addr, released, accepting })
    }

    /// Its address as clients want it.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Lets the watches, open or still to be opened, tell their lines.
    pub fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, replay: Arc<Replay>, released: watch::Sender<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                connections.spawn(connection(socket, replay.clone(), released.subscribe()));
            }
            Some(_) = connections.join_next() => {}
            else => {}
        }
    }
}

async fn connection(socket: TcpStream, replay: Arc<Replay>, released: watch::Receiver<bool>) {
    // Where it cannot be set, it is only slower.
    let _ = socket.set_nodelay(true);
    let service = hyper::service::service_fn(|request| {
        let response = answer(&replay, &released, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    // A client that went away is no error of the server's.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

fn answer(
    replay: &Arc<Replay>,
    released: &watch::Receiver<bool>,
    request: &hyper::Request<Incoming>,
) -> hyper::Response<Body> {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    if query.split('&').any(|pair| matches!(pair, "watch=1" | "watch=true" | "watch")) {
        let lines = replay.watches.get(path).cloned().unwrap_or_default();
        return tell(lines, released.clone());
    }
    let body = replay.page(path, query).or_else(|| replay.others.get(path));
    match body {
        Some(body) => whole(200, JSON, body.clone()),
        None => whole(404, &[], "404 page not found\n"),
    }
}

fn tell(mut lines: Bytes, mut released: watch::Receiver<bool>) -> hyper::Response<Body> {
    let (sender, response) = stream::chunked();
    tokio::spawn(async move {
        if released.wait_for(|released| *released).await.is_err() {
            return;
        }
        while !lines.is_empty() {
            let chunk = lines.split_to(lines.len().min(CHUNK));
            if sender.send(Ok(chunk)).await.is_err() {
                return;
            }
        }
        sender.closed().await;
    });
    response
}

/// An answer with nothing in it: what is left where a header was no header.
pub(super) fn empty() -> hyper::Response<Body> {
    hyper::Response::new(Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync())
}
