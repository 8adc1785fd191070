//! The body of a watch: lines as the changes happen, subject to faults.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::faults::{self, FaultAction};
use super::request_info::RequestInfo;
use super::response::{ResponseBody, chunked_response};
use super::server_state::ServerState;
use crate::store::{WatchCursor, WatchLine};

/// Largest number of lines taken under one lock.
const MAX_LINES_PER_LOCK: usize = 256;

/// Delay before a connection is torn down, so that the half of a line that was sent reaches the wire first.
const CUT_FLUSH_DELAY: Duration = Duration::from_millis(20);

/// An open watch, and the fault it opened with.
pub(super) struct WatchStream {
    pub(super) shared: Arc<ServerState>,
    pub(super) cursor: WatchCursor,
    pub(super) address: RequestInfo,
    pub(super) action: Option<FaultAction>,
}

pub(super) fn watch_response(lines: WatchStream) -> hyper::Response<ResponseBody> {
    let (sender, response) = chunked_response();
    // The task ends with its connection: then sending fails, or `closed` resolves.
    tokio::spawn(WatchSender { sender, lines, sent: 0, held: None }.run());
    response
}

/// The client has disconnected, or a fault ended the stream.
struct StreamOver;

struct WatchSender {
    sender: mpsc::Sender<io::Result<Bytes>>,
    lines: WatchStream,
    sent: u32,
    /// A swapped event that is held back until the next one is sent.
    held: Option<WatchLine>,
}

impl WatchSender {
    async fn run(mut self) {
        let _ = self.send_lines().await;
    }

    async fn send_lines(&mut self) -> Result<(), StreamOver> {
        match self.lines.action.clone() {
            Some(FaultAction::EndWatch) => return Err(StreamOver),
            Some(FaultAction::ErrorEvent(code)) => {
                let line =
                    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", faults::injected_status(code, None));
                self.send_bytes(line.into_bytes()).await?;
                return Err(StreamOver);
            }
            Some(FaultAction::RawLine(bytes)) => self.send_bytes(bytes).await?,
            _ => {}
        }
        let mut revision = self.lines.shared.cluster.revision.subscribe();
        let mut epoch = self.lines.shared.epoch.subscribe();
        loop {
            revision.borrow_and_update();
            let batch = self.take_batch();
            let full = batch.len() == MAX_LINES_PER_LOCK;
            self.send_batch(batch).await?;
            if self.lines.cursor.has_ended() {
                return Ok(());
            }
            if full {
                continue;
            }
            tokio::select! {
                _ = revision.changed() => {}
                _ = epoch.changed() => return Ok(()),
                () = self.sender.closed() => return Err(StreamOver),
                () = tokio::time::sleep(self.time_until_wake()) => {}
            }
        }
    }

    /// Time until a bookmark or the end of the watch is due. At most one second, because the clock need not be the
    /// system's.
    fn time_until_wake(&self) -> Duration {
        let wake = self.lines.cursor.wake_at().map_or(1_000, |wake| wake - (self.lines.shared.clock)());
        Duration::from_millis(wake.clamp(1, 1_000).unsigned_abs())
    }

    fn take_batch(&mut self) -> Vec<WatchLine> {
        let WatchStream { shared, cursor, address, .. } = &mut self.lines;
        let limit = shared.faults.lag_revision(address).unwrap_or(u64::MAX);
        let now = (shared.clock)();
        let store = shared.lock_store();
        std::iter::from_fn(|| store.next_line_until(now, cursor, limit)).take(MAX_LINES_PER_LOCK).collect()
    }

    async fn send_batch(&mut self, batch: Vec<WatchLine>) -> Result<(), StreamOver> {
        let mut out = Vec::new();
        for line in batch {
            match self.lines.shared.faults.on_line(&self.lines.address, &line) {
                Some(FaultAction::DropEvent) => continue,
                Some(FaultAction::SwapEvent) if self.held.is_none() => {
                    self.held = Some(line);
                    continue;
                }
                Some(FaultAction::DuplicateEvent) => self.push_line(&mut out, &line).await?,
                Some(FaultAction::DelayEvent(by)) => {
                    self.send_bytes(std::mem::take(&mut out)).await?;
                    tokio::time::sleep(by).await;
                }
                _ => {}
            }
            self.push_line(&mut out, &line).await?;
            if let Some(held) = self.held.take() {
                self.push_line(&mut out, &held).await?;
            }
        }
        self.send_bytes(out).await
    }

    /// Appends a line to the bytes sent next, unless a fault breaks the stream here.
    async fn push_line(&mut self, out: &mut Vec<u8>, line: &WatchLine) -> Result<(), StreamOver> {
        let bytes = line.to_bytes();
        match self.lines.action {
            Some(FaultAction::CutAfter(lines)) if self.sent >= lines => {
                out.extend_from_slice(&bytes[..bytes.len() / 2]);
                self.send_bytes(std::mem::take(out)).await?;
                tokio::time::sleep(CUT_FLUSH_DELAY).await;
                let _ = self.sender.send(Err(io::ErrorKind::ConnectionReset.into())).await;
                Err(StreamOver)
            }
            Some(FaultAction::StallAfter(lines)) if self.sent >= lines => {
                self.send_bytes(std::mem::take(out)).await?;
                self.sender.closed().await;
                Err(StreamOver)
            }
            _ => {
                out.extend_from_slice(&bytes);
                self.sent += 1;
                Ok(())
            }
        }
    }

    async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<(), StreamOver> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sender.send(Ok(bytes.into())).await.map_err(|_| StreamOver)
    }
}
