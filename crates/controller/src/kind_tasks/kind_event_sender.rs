//! Sender of the events of one kind to the event loop.

use std::sync::{Arc, Mutex, PoisonError};

use aggregator::KindId;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use watcher::ApiFailureCause;

use super::KindEvent;

/// Sends the events of one task of a kind to the event loop, until the task is stopped.
///
/// **Invariant:** no event of a stopped task arrives after an event of its successor: a list that was completed for the
/// stopped task must not count as the list that its successor has only begun.
#[derive(Clone, Debug)]
pub(crate) struct KindEventSender {
    kind: KindId,
    queue: UnboundedSender<(KindId, KindEvent)>,
    /// Signals that the API server refused something for want of a right.
    refusals: Arc<Notify>,
    stop: CancellationToken,
    /// Held while an event is sent, and while the sender is stopped.
    send_lock: Arc<Mutex<()>>,
}

impl KindEventSender {
    pub(crate) fn new(
        kind: KindId,
        queue: UnboundedSender<(KindId, KindEvent)>,
        refusals: Arc<Notify>,
    ) -> Self {
        KindEventSender { kind, queue, refusals, stop: CancellationToken::new(), send_lock: Arc::default() }
    }

    /// Sends an event, unless the sender was stopped.
    pub(crate) fn send(&self, event: KindEvent) {
        if matches!(event, KindEvent::Failure(ApiFailureCause::Forbidden, _)) {
            self.refusals.notify_one();
        }
        let _sending = self.send_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.is_cancelled() {
            _ = self.queue.send((self.kind, event));
        }
    }

    /// Stops the sender and the task: no event is sent from now on.
    pub(crate) fn cancel(&self) {
        let _sending = self.send_lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.cancel();
    }

    /// Returns the token that stops the task.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }
}
