//! Serves recorded answers at wire speed: bytes rendered in advance, so that a benchmark measures its client alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::response::{ResponseBody, chunked_response, whole_response};

/// Bytes of a watch that are sent at a time.
const WATCH_CHUNK_BYTES: usize = 128 * 1024;

/// Recorded answers: the list pages and watch lines of each path.
#[derive(Clone, Debug, Default)]
pub struct ReplayScript {
    lists: BTreeMap<String, Vec<Bytes>>,
    watches: BTreeMap<String, Bytes>,
    others: BTreeMap<String, Bytes>,
}

impl ReplayScript {
    /// Adds a list under this path, for example `/api/v1/pods`: items as JSON, paged. The continue token of page `n` is
    /// `n`.
    pub fn with_list(
        mut self,
        path: &str,
        api_version: &str,
        kind: &str,
        revision: u64,
        items: &[Vec<u8>],
        page: usize,
    ) -> ReplayScript {
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

    /// Adds the lines of a watch on this path, each with its newline.
    pub fn with_watch(mut self, path: &str, lines: impl IntoIterator<Item = Vec<u8>>) -> ReplayScript {
        let lines: Vec<u8> = lines.into_iter().flatten().collect();
        self.watches.insert(path.into(), lines.into());
        self
    }

    /// Adds any other answer, for discovery.
    pub fn with_answer(mut self, path: &str, body: impl Into<Bytes>) -> ReplayScript {
        self.others.insert(path.into(), body.into());
        self
    }

    fn list_page(&self, path: &str, query: &str) -> Option<&Bytes> {
        let token = query.split('&').find_map(|pair| pair.strip_prefix("continue=")).unwrap_or_default();
        self.lists.get(path)?.get(token.parse::<usize>().unwrap_or(0))
    }
}

/// Serves a [`ReplayScript`]. Watches open at once, send their lines when released, and then stay open.
pub struct ReplayServer {
    addr: SocketAddr,
    released: watch::Sender<bool>,
    accepting: AbortHandle,
}

impl ReplayServer {
    /// Starts on a free loopback port.
    pub async fn start(replay: ReplayScript) -> io::Result<ReplayServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let released = watch::Sender::new(false);
        let accepting =
            tokio::spawn(accept_connections(listener, Arc::new(replay), released.clone())).abort_handle();
        Ok(ReplayServer { addr, released, accepting })
    }

    /// Base URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Lets the watches, open or still to be opened, send their lines.
    pub fn release_watches(&self) {
        self.released.send_replace(true);
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept_connections(listener: TcpListener, replay: Arc<ReplayScript>, released: watch::Sender<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                connections.spawn(serve_connection(socket, replay.clone(), released.subscribe()));
            }
            Some(_) = connections.join_next() => {}
            else => {}
        }
    }
}

async fn serve_connection(socket: TcpStream, replay: Arc<ReplayScript>, released: watch::Receiver<bool>) {
    // If the option cannot be set, the server is only slower.
    let _ = socket.set_nodelay(true);
    let service = hyper::service::service_fn(|request| {
        let response = answer_request(&replay, &released, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    // A disconnected client is not an error of the server.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

fn answer_request(
    replay: &Arc<ReplayScript>,
    released: &watch::Receiver<bool>,
    request: &hyper::Request<Incoming>,
) -> hyper::Response<ResponseBody> {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    if query.split('&').any(|pair| matches!(pair, "watch=1" | "watch=true" | "watch")) {
        let lines = replay.watches.get(path).cloned().unwrap_or_default();
        return stream_watch_lines(lines, released.clone());
    }
    let body = replay.list_page(path, query).or_else(|| replay.others.get(path));
    match body {
        Some(body) => whole_response(200, JSON, body.clone()),
        None => whole_response(404, &[], "404 page not found\n"),
    }
}

fn stream_watch_lines(
    mut lines: Bytes,
    mut released: watch::Receiver<bool>,
) -> hyper::Response<ResponseBody> {
    let (sender, response) = chunked_response();
    tokio::spawn(async move {
        if released.wait_for(|released| *released).await.is_err() {
            return;
        }
        while !lines.is_empty() {
            let chunk = lines.split_to(lines.len().min(WATCH_CHUNK_BYTES));
            if sender.send(Ok(chunk)).await.is_err() {
                return;
            }
        }
        sender.closed().await;
    });
    response
}
