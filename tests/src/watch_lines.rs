//! What a gate does to the lines of a watch: it passes them on, loses them, tells them late, or breaks off within one.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use futures::{StreamExt, stream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use crate::gate_rule::GateRule;

/// What has to be known of a gate to carry a watch through it.
pub(crate) struct WatchLines {
    pub(crate) rule: watch::Receiver<GateRule>,
    /// One permit for every line that was held up or cut.
    pub(crate) caught: Arc<Semaphore>,
    /// Bookmarks are passed on.
    pub(crate) bookmarks: bool,
}

/// When a line may be told, and the line; or that the connection breaks off.
type DatedLine = (Instant, io::Result<Vec<u8>>);

impl WatchLines {
    /// Returns the body that the client gets.
    pub(crate) fn carry(self, body: kube::client::Body) -> Body {
        let mut rule = self.rule.clone();
        let down = async move { rule.wait_for(|rule| *rule == GateRule::Down).await.is_ok() };
        let (told, heard) = unbounded_channel();
        // Beside the client, so that a line that is told late is dated by its coming.
        tokio::spawn(async move { self.hear(body, &told).await });
        let lines = stream::unfold(heard, |mut heard| async move {
            let (at, line): DatedLine = heard.recv().await?;
            sleep_until(at).await;
            Some((line, heard))
        });
        Body::from_stream(lines.take_until(Box::pin(down)))
    }

    async fn hear(&self, body: kube::client::Body, told: &UnboundedSender<DatedLine>) {
        let mut pieces = Body::new(body).into_data_stream();
        let mut begun = Vec::new();
        loop {
            let piece = tokio::select! {
                () = told.closed() => return,
                piece = pieces.next() => piece,
            };
            match piece {
                None => return,
                Some(Err(error)) => {
                    // An error means that the client is gone, here and below.
                    _ = told.send((Instant::now(), Err(io::Error::other(error))));
                    return;
                }
                Some(Ok(piece)) => begun.extend_from_slice(&piece),
            }
            while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
                let line = begun.drain(..=end).collect();
                if !self.tell(line, told) {
                    return;
                }
            }
        }
    }

    /// Tells a line as the rule demands; `false` if it was the last one.
    fn tell(&self, mut line: Vec<u8>, told: &UnboundedSender<DatedLine>) -> bool {
        if !self.bookmarks && is_bookmark(&line) {
            return true;
        }
        let now = Instant::now();
        match *self.rule.borrow() {
            GateRule::Mute => true,
            GateRule::Late(delay) => {
                self.caught.add_permits(1);
                told.send((now + delay, Ok(line))).is_ok()
            }
            GateRule::CutLines => {
                self.caught.add_permits(1);
                line.truncate(line.len() / 2);
                _ = told.send((now, Ok(line)));
                _ = told.send((now, Err(io::ErrorKind::ConnectionAborted.into())));
                false
            }
            _ => told.send((now, Ok(line))).is_ok(),
        }
    }
}

fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(br#"{"type":"BOOKMARK""#)
}
