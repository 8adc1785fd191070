//! Reading the lines of a watch.

use std::io;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// Longest time until the next line of a watch must arrive. 10 s.
const NEXT_LINE_TIMEOUT: Duration = Duration::from_secs(10);

/// Formats a watch event as cases write it.
pub(super) fn describe_line(line: &Value) -> String {
    let kind = line["type"].as_str().unwrap_or_default();
    match kind {
        "ERROR" => format!("ERROR {}", line["object"]["code"]),
        "ADDED" | "MODIFIED" | "DELETED" => {
            format!("{kind} {}", line["object"]["metadata"]["name"].as_str().unwrap_or_default())
        }
        other => other.to_owned(),
    }
}

/// Reader of the lines of an open watch.
pub(super) struct WatchLineReader {
    body: Incoming,
    unread: Vec<u8>,
}

impl WatchLineReader {
    pub(super) fn from_body(body: Incoming) -> WatchLineReader {
        WatchLineReader { body, unread: Vec::new() }
    }

    /// Returns the next line; an error if the watch ended or nothing arrived in time.
    pub(super) async fn next_line(&mut self) -> io::Result<Value> {
        loop {
            if let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=at).collect();
                return serde_json::from_slice(&line).map_err(io::Error::other);
            }
            let frame = tokio::time::timeout(NEXT_LINE_TIMEOUT, self.body.frame()).await?;
            let frame = frame.ok_or(io::ErrorKind::UnexpectedEof)?.map_err(io::Error::other)?;
            self.unread.extend(frame.into_data().unwrap_or_default());
        }
    }
}
