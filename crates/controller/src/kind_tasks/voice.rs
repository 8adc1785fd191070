//! Who speaks for a kind.

use std::sync::{Arc, Mutex, PoisonError};

use aggregator::KindId;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;
use watcher::ApiFailureCause;

use super::KindEvent;

/// What one task of a kind says to the loop, until it is stopped.
///
/// **Invariant:** nothing that a stopped task says comes after what its successor says: a list that was completed for the
/// one before must not count as the list that its successor has only begun.
#[derive(Clone, Debug)]
pub(crate) struct KindVoice {
    kind: KindId,
    news: UnboundedSender<(KindId, KindEvent)>,
    /// Signals that the API server refused something for want of a right.
    refusals: Arc<Notify>,
    stop: CancellationToken,
    /// Held while something is said, and while it is stopped.
    speaking: Arc<Mutex<()>>,
}

impl KindVoice {
    pub(crate) fn new(
        kind: KindId,
        news: UnboundedSender<(KindId, KindEvent)>,
        refusals: Arc<Notify>,
    ) -> Self {
        KindVoice { kind, news, refusals, stop: CancellationToken::new(), speaking: Arc::default() }
    }

    /// Says it, unless it was stopped.
    pub(crate) fn say(&self, news: KindEvent) {
        if matches!(news, KindEvent::Failure(ApiFailureCause::Forbidden, _)) {
            self.refusals.notify_one();
        }
        let _speaking = self.speaking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.is_cancelled() {
            _ = self.news.send((self.kind, news));
        }
    }

    /// It says nothing from now on.
    pub(crate) fn cancel(&self) {
        let _speaking = self.speaking.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.cancel();
    }

    /// What its task runs by.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }
}
