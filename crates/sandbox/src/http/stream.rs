//! The body of a watch: lines as they happen, and what faults make of them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame};
use tokio::sync::mpsc;

use super::Shared;
use super::address::Address;
use super::faults::{self, Act};
use super::replay;
use super::serve::Body;
use crate::store::{Cursor, WatchLine};

/// How many lines are taken under one lock.
const BATCH: usize = 256;

/// So that the half of a line that was sent is on the wire before the connection is torn down.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// A watch that was opened, and the fault it opened with.
pub(super) struct Lines {
    pub(super) shared: Arc<Shared>,
    pub(super) cursor: Cursor,
    pub(super) address: Address,
    pub(super) act: Option<Act>,
}

/// Chunks from a task: what it sends is the body, an error tears the connection down.
pub(super) struct Chunks(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

/// A chunked answer of 200, and where to send its chunks.
pub(super) fn chunked() -> (mpsc::Sender<io::Result<Bytes>>, hyper::Response<Body>) {
    let (sender, receiver) = mpsc::channel(16);
    let body = Chunks(receiver);
    debug_assert!(!body.is_end_stream());
    let response =
        hyper::Response::builder().header("content-type", "application/json").body(body.boxed_unsync());
    (sender, response.unwrap_or_else(|_| replay::empty()))
}

pub(super) fn response(lines: Lines) -> hyper::Response<Body> {
    let (sender, response) = chunked();
    // It ends with its connection: then sending fails, or `closed` resolves.
    tokio::spawn(Sending { sender, lines, sent: 0, held: None }.run());
    response
}

/// The reader is gone, or a fault ended the stream.
struct Over;

struct Sending {
    sender: mpsc::Sender<io::Result<Bytes>>,
    lines: Lines,
    sent: u32,
    /// An event that waits for its successor.
    held: Option<WatchLine>,
}

impl Sending {
    async fn run(mut self) {
        let _ = self.tell().await;
    }

    async fn tell(&mut self) -> Result<(), Over> {
        match self.lines.act.clone() {
            Some(Act::EndWatch) => return Err(Over),
            Some(Act::ErrorEvent(code)) => {
                let line = format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", faults::status(code, None));
                self.send(line.into_bytes()).await?;
                return Err(Over);
            }
            Some(Act::RawLine(bytes)) => self.send(bytes).await?,
            _ => {}
        }
        let mut revision = self.lines.shared.cluster.revision.subscribe();
        let mut epoch = self.lines.shared.epoch.subscribe();
        loop {
            revision.borrow_and_update();
            let batch = self.batch();
            let full = batch.len() == BATCH;
            self.tell_batch(batch).await?;
            if self.lines.cursor.ended() {
                return Ok(());
            }
            if full {
                continue;
            }
            tokio::select! {
                _ = revision.changed() => {}
                _ = epoch.changed() => return Ok(()),
                () = self.sender.closed() => return Err(Over),
                () = tokio::time::sleep(self.until_wake()) => {}
            }
        }
    }

    /// Until a bookmark or the end is due; looked at every second, because the clock need not be the system's.
    fn until_wake(&self) -> Duration {
        let wake = self.lines.cursor.wake().map_or(1_000, |wake| wake - (self.lines.shared.clock)());
        Duration::from_millis(wake.clamp(1, 1_000) as u64)
    }

    fn batch(&mut self) -> Vec<WatchLine> {
        let Lines { shared, cursor, address, .. } = &mut self.lines;
        let limit = shared.faults.lag(address).unwrap_or(u64::MAX);
        let now = (shared.clock)();
        let store = shared.lock();
        std::iter::from_fn(|| store.next_until(now, cursor, limit)).take(BATCH).collect()
    }

    async fn tell_batch(&mut self, batch: Vec<WatchLine>) -> Result<(), Over> {
        let mut out = Vec::new();
        for line in batch {
            match self.lines.shared.faults.on_line(&self.lines.address, &line) {
                Some(Act::DropEvent) => continue,
                Some(Act::SwapEvent) if self.held.is_none() => {
                    self.held = Some(line);
                    continue;
                }
                Some(Act::DuplicateEvent) => self.put(&mut out, &line).await?,
                Some(Act::DelayEvent(by)) => {
                    self.send(std::mem::take(&mut out)).await?;
                    tokio::time::sleep(by).await;
                }
                _ => {}
            }
            self.put(&mut out, &line).await?;
            if let Some(held) = self.held.take() {
                self.put(&mut out, &held).await?;
            }
        }
        self.send(out).await
    }

    /// Adds a line to what is sent next, unless the stream is to break here.
    async fn put(&mut self, out: &mut Vec<u8>, line: &WatchLine) -> Result<(), Over> {
        let bytes = line.to_bytes();
        match self.lines.act {
            Some(Act::CutAfter(lines)) if self.sent >= lines => {
                out.extend_from_slice(&bytes[..bytes.len() / 2]);
                self.send(std::mem::take(out)).await?;
                tokio::time::sleep(BEFORE_CUT).await;
                let _ = self.sender.send(Err(io::ErrorKind::ConnectionReset.into())).await;
                Err(Over)
            }
            Some(Act::StallAfter(lines)) if self.sent >= lines => {
                self.send(std::mem::take(out)).await?;
                self.sender.closed().await;
                Err(Over)
            }
            _ => {
                out.extend_from_slice(&bytes);
                self.sent += 1;
                Ok(())
            }
        }
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<(), Over> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sender.send(Ok(bytes.into())).await.map_err(|_| Over)
    }
}
