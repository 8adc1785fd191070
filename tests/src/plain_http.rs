//! One request over a connection of its own, as a client without a library sends it.

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::TEST_TIMEOUT;

/// A response.
pub struct HttpAnswer {
    /// The status code.
    pub code: u16,
    /// The body.
    pub body: String,
}

/// Sends a GET to this address, with a token, or with none.
pub async fn get(address: &str, path: &str, token: &str) -> Result<HttpAnswer> {
    let who = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{who}Connection: close\r\n\r\n")).await
}

/// Sends a POST of JSON to this address.
pub async fn post(address: &str, path: &str, body: &str) -> Result<HttpAnswer> {
    let what = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\n{what}Connection: close\r\n\r\n");
    send(address, &(head + body)).await
}

async fn send(address: &str, request: &str) -> Result<HttpAnswer> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    let all = async {
        while !is_complete(&bytes) && stream.read_buf(&mut bytes).await? > 0 {}
        anyhow::Ok(())
    };
    timeout(TEST_TIMEOUT, all).await??;
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("half an answer")?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status line")?;
    Ok(HttpAnswer { code, body: body.to_owned() })
}

/// Returns `true` if the response is complete according to its Content-Length: a proxy may keep a connection open that
/// the server closed.
fn is_complete(bytes: &[u8]) -> bool {
    let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let lines = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = lines.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| bytes.len() >= head + 4 + length)
}
