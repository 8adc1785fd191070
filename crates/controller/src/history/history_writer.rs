//! Task that uploads transitions and rollouts to the history store. A store that fails, is slow or is gone delays nothing else: the
//! failure is logged and counted.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use readiness::Time;
use timer::{Backoff, Seed};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::HistoryStore;
use super::batch::{HistoryBatch, HistoryLine, LineBuffer};
use super::batch_pace::BatchPace;
use super::outage::StoreOutage;
use super::put::{BatchResult, put_batch};
use super::rollout_line::RolloutLine;
use crate::clock::LocalClock;
use crate::lease::Leadership;
use crate::metrics::HistoryMetrics;
use crate::transitions::{TransitionEvent, TransitionSubscription};

/// Backoff between attempts.
const BATCH_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

/// Uploads transitions; see the module.
pub(crate) struct HistoryWriter {
    pub(crate) store: HistoryStore,
    pub(crate) transitions: TransitionSubscription,
    /// Rollouts that ended.
    pub(crate) rollouts: mpsc::Receiver<RolloutLine>,
    pub(crate) clock: LocalClock,
    /// Leadership: one of several replicas writes the history.
    pub(crate) leadership: Leadership,
    pub(crate) meters: HistoryMetrics,
    /// Current error of the store, for `/readyz`.
    pub(crate) trouble: watch::Sender<Option<String>>,
    /// Longest time a transition waits while the store responds.
    pub(crate) flush_interval: Duration,
    /// Time limit of the final flush.
    pub(crate) final_flush_timeout: Duration,
    /// Identity of this process, unique among all that ever write to this store.
    pub(crate) instance: String,
    pub(crate) seed: Seed,
}

/// State of the task.
struct HistoryWriterState {
    store: HistoryStore,
    leadership: Leadership,
    meters: HistoryMetrics,
    instance: String,
    seed: Seed,
    buffer: LineBuffer,
    pace: BatchPace,
    outage: StoreOutage,
    /// Number of the next batch.
    number: u64,
    /// Batch in flight or to be retried, and the earliest time of the retry.
    in_flight: Option<Arc<HistoryBatch>>,
    not_before: Time,
    failures: u32,
}

impl HistoryWriter {
    /// Runs until all transitions have been published (`told` is cancelled then) and uploaded, or cannot be.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let HistoryWriter {
            store,
            mut transitions,
            mut rollouts,
            clock,
            leadership,
            meters,
            trouble,
            flush_interval: every,
            final_flush_timeout: last,
            instance,
            seed,
        } = self;
        info!(url = store.url(), "history store opened");
        let mut keeper = HistoryWriterState {
            store,
            leadership,
            meters,
            instance,
            seed,
            buffer: LineBuffer::default(),
            pace: BatchPace::new(every, clock.now()),
            outage: StoreOutage::new(trouble),
            number: 0,
            in_flight: None,
            not_before: clock.now(),
            failures: 0,
        };
        let mut sending: Option<BoxFuture<'static, BatchResult>> = None;
        loop {
            if sending.is_none() && keeper.next_due().is_some_and(|at| at <= clock.now()) {
                sending = keeper.start_batch(clock.now());
            }
            let wait = keeper.next_due().filter(|_| sending.is_none()).map(|at| at - clock.now());
            tokio::select! { biased;
                () = stop.cancelled() => break,
                sent = next_sent(&mut sending) => {
                    sending = None;
                    keeper.settle_batch(sent, clock.now());
                }
                event = transitions.next() => match event {
                    Some(event) => keeper.on_transition(&transitions, event, clock.now()),
                    None => break,
                },
                Some(rollout) = rollouts.recv() => keeper.on_rollout(&transitions, rollout, clock.now()),
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
        while let Some(event) = transitions.try_next() {
            keeper.on_transition(&transitions, event, clock.now());
        }
        while let Ok(rollout) = rollouts.try_recv() {
            keeper.on_rollout(&transitions, rollout, clock.now());
        }
        _ = tokio::time::timeout(last, keeper.flush_all(sending, clock)).await;
        keeper.count_lost(&transitions);
    }
}

async fn next_sent(sending: &mut Option<BoxFuture<'static, BatchResult>>) -> BatchResult {
    match sending {
        Some(sending) => sending.await,
        None => std::future::pending().await,
    }
}

impl HistoryWriterState {
    /// Counts what could not be written before the end.
    fn count_lost(&self, transitions: &TransitionSubscription) {
        let lost = self.waiting_count();
        if lost > 0 {
            transitions.count_dropped(lost as u64);
            warn!(lost, url = self.store.url(), "failed to write the last transitions to the history store");
        }
    }

    fn on_transition(&mut self, transitions: &TransitionSubscription, event: TransitionEvent, now: Time) {
        // Transitions lost on the way were counted at the sender.
        let TransitionEvent::Received(transition) = event else { return };
        self.add_line(transitions, HistoryLine::Transition(transition), now);
    }

    fn on_rollout(&mut self, transitions: &TransitionSubscription, rollout: RolloutLine, now: Time) {
        self.add_line(transitions, HistoryLine::Rollout(Arc::new(rollout)), now);
    }

    fn add_line(&mut self, transitions: &TransitionSubscription, line: HistoryLine, now: Time) {
        if !self.leadership.may_write() {
            return;
        }
        let lost = self.buffer.push(line, now);
        if lost > 0 {
            transitions.count_dropped(lost);
            if self.outage.record_drop(now) {
                warn!(
                    url = self.store.url(),
                    "too many transitions are waiting for the history store; the oldest are dropped"
                );
            }
        }
        self.meters.waiting.set(i64::try_from(self.waiting_count()).unwrap_or(i64::MAX));
    }

    fn waiting_count(&self) -> usize {
        self.buffer.len() + self.in_flight.as_ref().map_or(0, |batch| batch.lines.len())
    }

    fn next_due(&self) -> Option<Time> {
        let due =
            if self.in_flight.is_some() { Some(self.not_before) } else { self.buffer.batch_due(&self.pace) };
        due.map(|at| at.max(self.not_before))
    }

    /// Starts the next upload; a failed batch precedes new ones.
    fn start_batch(&mut self, now: Time) -> Option<BoxFuture<'static, BatchResult>> {
        if self.in_flight.is_none() {
            if !self.buffer.is_full() {
                self.pace.record_batch(now);
            }
            self.in_flight = self.buffer.take_batch(&self.instance, self.number).map(Arc::new);
            self.number += u64::from(self.in_flight.is_some());
        }
        let batch = self.in_flight.clone()?;
        let (objects, at) = (self.store.objects.clone(), self.store.object_path(&batch.key));
        Some(async move { put_batch(objects, at, batch).await }.boxed())
    }

    fn settle_batch(&mut self, sent: BatchResult, now: Time) {
        let BatchResult { batch, outcome, detail } = sent;
        self.meters.batches.with_label_values(&[outcome]).inc();
        if outcome == "written" {
            self.in_flight = None;
            self.failures = 0;
            self.meters.written.inc_by(batch.lines.len() as u64);
            self.meters.last.set(readiness::millis_to_seconds(now.0));
            if self.outage.record_success() {
                info!(url = self.store.url(), "history store accepts transitions again");
            }
        } else {
            self.failures += 1;
            self.not_before = now + BATCH_BACKOFF.delay_after(self.failures, self.seed, self.number);
            if self.outage.record_failure(outcome, now) {
                let (url, key) = (self.store.url(), &batch.key);
                warn!(
                    url,
                    key, outcome, detail, "failed to write transitions to the history store; will retry"
                );
            }
        }
        self.meters.waiting.set(i64::try_from(self.waiting_count()).unwrap_or(i64::MAX));
    }

    /// Uploads everything that is left.
    async fn flush_all(&mut self, mut sending: Option<BoxFuture<'static, BatchResult>>, clock: LocalClock) {
        loop {
            if sending.is_none() {
                sending = self.start_batch(clock.now());
            }
            if sending.is_none() {
                return;
            }
            let sent = next_sent(&mut sending).await;
            sending = None;
            self.settle_batch(sent, clock.now());
            if self.failures > 0 {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
