//! A minimal client that shows the bytes on the wire, broken answers included.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io;
use std::time::Duration;

use sandbox::SandboxServer;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest time that a test waits for an expected answer. 20 s.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that a test listens for lines that must not arrive. 300 ms.
pub(crate) const SILENCE: Duration = Duration::from_millis(300);

/// A response as received.
#[derive(Debug)]
pub(crate) struct WireResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A connection and its bytes received but not yet read.
pub(crate) struct WireConnection {
    socket: TcpStream,
    unread: Vec<u8>,
}

/// Sends a request with `body` as JSON: an array in a PATCH is sent as a JSON patch, an object as a merge patch.
pub(crate) async fn ask(url: &str, method: &str, target: &str, body: &Value) -> io::Result<WireResponse> {
    tokio::time::timeout(TEST_TIMEOUT, async {
        let mut wire = WireConnection::send(url, method, target, body).await?;
        let head = wire.head().await?;
        wire.socket.read_to_end(&mut wire.unread).await?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let body = serde_json::from_slice(&wire.unread).unwrap_or_default();
        Ok(WireResponse { status, head, body })
    })
    .await?
}

/// GETs a path; the answer must arrive.
pub(crate) async fn get(server: &SandboxServer, target: &str) -> WireResponse {
    ask(&server.url(), "GET", target, &Value::Null).await.unwrap()
}

/// Opens a watch.
pub(crate) async fn watch(server: &SandboxServer, target: &str) -> WireConnection {
    WireConnection::open(&server.url(), target).await
}

impl WireConnection {
    /// Opens a watch.
    pub(crate) async fn open(url: &str, target: &str) -> WireConnection {
        let mut wire = WireConnection::send(url, "GET", target, &Value::Null).await.unwrap();
        let head = wire.head().await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        wire
    }

    async fn send(url: &str, method: &str, target: &str, body: &Value) -> io::Result<WireConnection> {
        let address = url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).await?;
        let kind = match (method, body) {
            ("PATCH", Value::Array(_)) => "application/json-patch+json",
            ("PATCH", _) => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await?;
        Ok(WireConnection { socket, unread: Vec::new() })
    }

    async fn head(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..at + 4).collect();
                return Ok(String::from_utf8_lossy(&head).into_owned());
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.socket.read_buf(&mut self.unread).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Returns the next chunk of the body; `None` after the last.
    async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|bytes| bytes == b"\r\n") {
                let size = String::from_utf8_lossy(&self.unread[..end]).into_owned();
                let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
                if self.unread.len() >= end + 2 + size + 2 {
                    let chunk = self.unread[end + 2..end + 2 + size].to_vec();
                    self.unread.drain(..end + 2 + size + 2);
                    return Ok((size > 0).then_some(chunk));
                }
            }
            self.more().await?;
        }
    }

    /// Returns the rest of the body until the body or the connection ends, and the error that ended it.
    pub(crate) async fn rest(&mut self) -> (String, io::Result<()>) {
        let mut text = Vec::new();
        let read = tokio::time::timeout(TEST_TIMEOUT, async {
            loop {
                match self.chunk().await {
                    Ok(Some(chunk)) => text.extend(chunk),
                    Ok(None) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        });
        let ended = read.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        (String::from_utf8_lossy(&text).into_owned(), ended)
    }

    /// Returns the next `count` lines, each as its type and the name of its object. All lines of one chunk are returned
    /// together.
    pub(crate) async fn tells(&mut self, count: usize) -> Vec<String> {
        let mut told = Vec::new();
        while told.len() < count {
            let chunk = tokio::time::timeout(TEST_TIMEOUT, self.chunk()).await.unwrap().unwrap();
            let text = String::from_utf8(chunk.unwrap_or_default()).unwrap();
            assert!(text.ends_with('\n'), "whole lines in {text:?}");
            told.extend(text.lines().map(line));
        }
        told
    }

    /// Returns the next `count` bytes of the body.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut read = Vec::new();
        while read.len() < count {
            let chunk = tokio::time::timeout(TEST_TIMEOUT, self.chunk()).await.unwrap().unwrap();
            read.extend(chunk.unwrap());
        }
        read
    }

    /// Returns `true` if nothing arrives within [`SILENCE`] although the connection is open.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(SILENCE, self.chunk()).await.is_err()
    }
}

fn line(text: &str) -> String {
    let line: Value = serde_json::from_str(text).unwrap();
    let kind = line["type"].as_str().unwrap_or_default();
    match kind {
        "ERROR" => format!("ERROR {}", line["object"]["code"]),
        "BOOKMARK" => kind.to_owned(),
        _ => format!("{kind} {}", line["object"]["metadata"]["name"].as_str().unwrap_or_default()),
    }
}
