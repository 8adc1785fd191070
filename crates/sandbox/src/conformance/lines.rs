//! Reading what a watch tells.

use std::io;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// How long the next line of a watch may take.
const NEXT_LINE: Duration = Duration::from_secs(10);

/// A line in the words of cases.
pub(super) fn told(line: &Value) -> String {
    let kind = line["type"].as_str().unwrap_or_default();
    match kind {
        "ERROR" => format!("ERROR {}", line["object"]["code"]),
        "ADDED" | "MODIFIED" | "DELETED" => {
            format!("{kind} {}", line["object"]["metadata"]["name"].as_str().unwrap_or_default())
        }
        other => other.to_owned(),
    }
}

/// The lines of an open watch.
pub(super) struct Lines {
    body: Incoming,
    unread: Vec<u8>,
}

impl Lines {
    pub(super) fn of(body: Incoming) -> Lines {
        Lines { body, unread: Vec::new() }
    }

    /// The next line; an error when the watch ended or nothing came.
    pub(super) async fn line(&mut self) -> io::Result<Value> {
        loop {
            if let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=at).collect();
                return serde_json::from_slice(&line).map_err(io::Error::other);
            }
            let frame = tokio::time::timeout(NEXT_LINE, self.body.frame()).await?;
            let frame = frame.ok_or(io::ErrorKind::UnexpectedEof)?.map_err(io::Error::other)?;
            self.unread.extend(frame.into_data().unwrap_or_default());
        }
    }
}
