//! Rollouts that the event loop says have ended.

use std::sync::Arc;

use prometheus::IntCounter;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Maximum number of rollouts that wait to be read.
const MAX_WAITING: usize = 32;

/// A generation of a parent that was told Ready for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndedRollout {
    /// The parent's uid.
    pub(crate) uid: Arc<str>,
    /// Name of the policy that said it.
    pub(crate) policy: String,
}

/// Where the event loop names them. It never waits.
#[derive(Clone)]
pub(crate) struct RolloutSender {
    waiting: Sender<EndedRollout>,
    skipped: IntCounter,
}

impl RolloutSender {
    /// A sender, and what it sends; `skipped` counts those for which there is no room.
    pub(crate) fn new(skipped: IntCounter) -> (RolloutSender, Receiver<EndedRollout>) {
        let (waiting, received) = mpsc::channel(MAX_WAITING);
        (RolloutSender { waiting, skipped }, received)
    }

    /// This rollout has ended.
    pub(crate) fn send(&self, ended: EndedRollout) {
        if self.waiting.try_send(ended).is_err() {
            self.skipped.inc();
        }
    }
}
