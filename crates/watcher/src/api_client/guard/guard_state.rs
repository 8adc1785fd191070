//! State and limits that the requests of one follow share.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use timer::Seed;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::pacer::RequestPacer;
use super::request::WatchPosition;
use super::retry_turns::RetryTurns;
use crate::event::FollowFailure;

/// Time limits of one follow.
#[derive(Clone, Debug)]
pub(crate) struct GuardLimits {
    /// Range of watch lengths; the seed chooses one for each watch.
    pub(crate) watch: Range<Duration>,
    /// Grace period for the server to end a watch.
    pub(crate) grace: Duration,
    /// Longest time for a response, or for the next part of a list.
    pub(crate) read: Duration,
    /// Shortest successful watch.
    pub(crate) brief: Duration,
    /// Time without a sign of life after which no watch is resumed.
    pub(crate) blind: Duration,
    /// Seed of watch lengths.
    pub(crate) seed: Seed,
}

/// Signals of the guard in addition to the responses.
#[derive(Debug)]
pub(crate) enum GuardSignal {
    /// The server has read a page out, or a watch of it stands, brings something or was ended by it.
    Alive,
    /// A failure that kube would not report.
    Failure(FollowFailure),
}

/// State shared by the requests of one follow. The guard writes it, and so does the follow when it knows better.
pub(crate) struct GuardState {
    pub(super) limits: GuardLimits,
    pub(super) pace: Mutex<RequestPacer>,
    /// Turns of requests that follow a failure, over all follows.
    pub(super) turns: Arc<RetryTurns>,
    pub(super) place: Mutex<WatchPosition>,
    pub(super) signals: mpsc::Sender<GuardSignal>,
}

impl GuardState {
    /// Sends a signal; a full channel drops it, because a consumer that does not read needs no heartbeat.
    fn send_signal(&self, signal: GuardSignal) {
        let _ = self.signals.try_send(signal);
    }

    pub(super) fn signal_alive(&self) {
        self.lock_pacer().prove(Instant::now());
        self.send_signal(GuardSignal::Alive);
    }

    pub(super) fn signal_failure(&self, trouble: FollowFailure) {
        self.send_signal(GuardSignal::Failure(trouble));
    }

    pub(super) fn is_brief(&self, lived: Duration) -> bool {
        lived < self.limits.brief
    }

    /// A watch brought nothing for as long as it may stand, and the server did not end it.
    pub(super) fn unproven(&self) {
        self.lock_pacer().disprove();
    }

    /// A list was read to its end: where something had failed before, the server has healed.
    pub(crate) fn on_listed(&self) {
        if self.lock_pacer().has_failed() {
            self.turns.note_healed(Instant::now());
        }
    }

    pub(super) fn lock_pacer(&self) -> MutexGuard<'_, RequestPacer> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn on_watch_ended(&self, lived: Duration) {
        self.lock_pacer().record_watch_end(Instant::now(), lived);
    }

    /// Records a request without a complete response.
    pub(crate) fn note_failure(&self) {
        self.lock_pacer().record_failure(Instant::now(), None);
    }

    /// Returns [`RequestPacer::count_stable_watches`].
    pub(crate) fn count_stable_watches(&self) -> u64 {
        self.lock_pacer().count_stable_watches()
    }

    /// Calls [`RequestPacer::record_unreadable_watch`].
    pub(crate) fn note_unreadable_watch(&self) {
        self.lock_pacer().record_unreadable_watch(Instant::now());
    }
}
