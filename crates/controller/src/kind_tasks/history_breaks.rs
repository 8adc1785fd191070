//! What is done where the server's history has gone back, as it does when etcd is restored from a backup: a watch that stands, or
//! goes on, waits for versions that come again much later, and nothing on it says so.

use std::sync::Mutex;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::info;

/// Shortest time between two breaks that are told: what is found within it is of the same one. 60 s.
const BREAK_INTERVAL: Duration = Duration::from_mins(1);

/// Tells those who follow kinds, and what no live read looks at, that the server's history has gone back.
#[derive(Clone, Debug)]
pub(crate) struct HistoryBreaks {
    told: watch::Sender<u64>,
    last: Arc<Mutex<Option<Instant>>>,
    /// A watch has failed, as all do when the server is restarted.
    failed: Arc<Notify>,
}

impl Default for HistoryBreaks {
    fn default() -> Self {
        HistoryBreaks { told: watch::channel(0).0, last: Arc::default(), failed: Arc::default() }
    }
}

impl HistoryBreaks {
    /// A read has found an older version than was known.
    pub(crate) fn on_older_version(&self) {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= BREAK_INTERVAL) {
            self.tell();
        }
    }

    /// Tells of a break that nobody has told of yet.
    pub(super) fn tell(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        info!("the API server's history has gone back; listing everything again");
        self.told.send_modify(|breaks| *breaks += 1);
    }

    /// A watch has failed: where the server was restored from a backup, nothing else may tell of it.
    pub(super) fn on_watch_failed(&self) {
        self.failed.notify_one();
    }

    /// Waits until a watch fails.
    pub(super) async fn watch_failed(&self) {
        self.failed.notified().await;
    }

    /// Those that come from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// The events of a stream, opened anew after each break.
    pub(crate) fn reopened_after<E: Send + 'static>(
        &self,
        open: impl Fn() -> BoxStream<'static, E> + Send + 'static,
    ) -> BoxStream<'static, E> {
        let state = ReopenedStream { events: open(), open, told: self.told.subscribe() };
        futures::stream::unfold(state, ReopenedStream::next).boxed()
    }
}

/// Stream that is opened anew after each break.
struct ReopenedStream<E, F> {
    events: BoxStream<'static, E>,
    open: F,
    told: watch::Receiver<u64>,
}

impl<E, F: Fn() -> BoxStream<'static, E>> ReopenedStream<E, F> {
    async fn next(mut self) -> Option<(E, Self)> {
        loop {
            tokio::select! { biased;
                Ok(()) = self.told.changed() => self.events = (self.open)(),
                event = self.events.next() => return event.map(|event| (event, self)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_waits_is_opened_anew_once_for_each_break() {
        let breaks = HistoryBreaks::default();
        let opened = Arc::new(AtomicUsize::new(0));
        let count = opened.clone();
        // Each says which it is, and nothing more.
        let mut events = breaks.reopened_after(move || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            futures::stream::iter([number]).chain(futures::stream::pending()).boxed()
        });
        assert_eq!(events.next().await, Some(0));
        let silent = tokio::time::timeout(Duration::from_secs(600), events.next()).await;
        assert!(silent.is_err());
        for number in 1..3 {
            (0..100).for_each(|_| breaks.on_older_version());
            assert_eq!(events.next().await, Some(number));
            tokio::time::advance(BREAK_INTERVAL).await;
        }
        assert_eq!(opened.load(Ordering::Relaxed), 3);
    }
}
