//! The task that puts transitions away. A store that refuses, is slow or is gone delays nobody: it is told and counted.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use readiness::Time;
use timer::{Backoff, Seed};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Store;
use super::batch::{Batch, Buffer};
use super::outage::Outage;
use super::pace::Pace;
use super::put::{Sent, put};
use crate::clock::Clock;
use crate::lease::Mandate;
use crate::metrics::Meters;
use crate::transitions::{Heard, Subscription};

/// Between attempts.
const BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(60) };

/// See the module.
pub(crate) struct Keep {
    pub(crate) store: Store,
    pub(crate) transitions: Subscription,
    pub(crate) clock: Clock,
    /// Of several replicas one keeps it.
    pub(crate) mandate: Mandate,
    pub(crate) meters: Meters,
    /// What ails the store, for `/readyz`.
    pub(crate) trouble: watch::Sender<Option<String>>,
    /// Transitions wait no longer than this, as long as the store answers.
    pub(crate) every: Duration,
    /// So long is tried at the end.
    pub(crate) last: Duration,
    /// This process, among all that ever write here.
    pub(crate) instance: String,
    pub(crate) seed: Seed,
}

/// The task's own state.
struct Keeper {
    store: Store,
    mandate: Mandate,
    meters: Meters,
    instance: String,
    seed: Seed,
    buffer: Buffer,
    pace: Pace,
    outage: Outage,
    /// The next batch's number.
    number: u64,
    /// What is under way or has to be tried again, and not before when.
    again: Option<Arc<Batch>>,
    not_before: Time,
    failures: u32,
}

impl Keep {
    /// Until everything was told (`told` says so) and put away, or cannot be.
    pub(crate) async fn run(self, told: CancellationToken) {
        let Keep { store, mut transitions, clock, mandate, meters, trouble, every, last, instance, seed } =
            self;
        info!(url = store.url(), "history");
        let mut keeper = Keeper {
            store,
            mandate,
            meters,
            instance,
            seed,
            buffer: Buffer::default(),
            pace: Pace::new(every, clock.now()),
            outage: Outage::new(trouble),
            number: 0,
            again: None,
            not_before: clock.now(),
            failures: 0,
        };
        let mut sending: Option<BoxFuture<'static, Sent>> = None;
        loop {
            if sending.is_none() && keeper.due().is_some_and(|at| at <= clock.now()) {
                sending = keeper.send(clock.now());
            }
            let wait = keeper.due().filter(|_| sending.is_none()).map(|at| at - clock.now());
            tokio::select! { biased;
                () = told.cancelled() => break,
                sent = under_way(&mut sending) => {
                    sending = None;
                    keeper.settle(sent, clock.now());
                }
                heard = transitions.next() => match heard {
                    Some(heard) => keeper.hear(&transitions, heard, clock.now()),
                    None => break,
                },
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
        while let Some(heard) = transitions.take() {
            keeper.hear(&transitions, heard, clock.now());
        }
        _ = tokio::time::timeout(last, keeper.finish(sending, clock)).await;
        let lost = keeper.waiting();
        if lost > 0 {
            transitions.drop_some(lost as u64);
            warn!(lost, url = keeper.store.url(), "the history did not take the last transitions");
        }
    }
}

async fn under_way(sending: &mut Option<BoxFuture<'static, Sent>>) -> Sent {
    match sending {
        Some(sending) => sending.await,
        None => std::future::pending().await,
    }
}

impl Keeper {
    fn hear(&mut self, transitions: &Subscription, heard: Heard, now: Time) {
        // What was lost on the way was counted there.
        let Heard::Told(transition) = heard else { return };
        if !self.mandate.holds() {
            return;
        }
        let lost = self.buffer.push(transition, now);
        if lost > 0 {
            transitions.drop_some(lost);
            if self.outage.drops(now) {
                warn!(
                    url = self.store.url(),
                    "too many transitions wait for the history; the oldest are dropped"
                );
            }
        }
        self.meters.waiting.set(self.waiting() as i64);
    }

    fn waiting(&self) -> usize {
        self.buffer.len() + self.again.as_ref().map_or(0, |batch| batch.transitions.len())
    }

    fn due(&self) -> Option<Time> {
        let due = if self.again.is_some() { Some(self.not_before) } else { self.buffer.due(&self.pace) };
        due.map(|at| at.max(self.not_before))
    }

    /// The next attempt: what failed first.
    fn send(&mut self, now: Time) -> Option<BoxFuture<'static, Sent>> {
        if self.again.is_none() {
            if !self.buffer.is_full() {
                self.pace.spend(now);
            }
            self.again = self.buffer.take(&self.instance, self.number).map(Arc::new);
            self.number += u64::from(self.again.is_some());
        }
        let batch = self.again.clone()?;
        let (objects, at) = (self.store.objects.clone(), self.store.at(&batch.key));
        Some(async move { put(objects, at, batch).await }.boxed())
    }

    fn settle(&mut self, sent: Sent, now: Time) {
        let Sent { batch, outcome, detail } = sent;
        self.meters.batches.with_label_values(&[outcome]).inc();
        if outcome == "written" {
            self.again = None;
            self.failures = 0;
            self.meters.written.inc_by(batch.transitions.len() as u64);
            self.meters.last.set(now.0 as f64 / 1_000.0);
            if self.outage.ends() {
                info!(url = self.store.url(), "the history takes transitions again");
            }
        } else {
            self.failures += 1;
            self.not_before = now + BACKOFF.after(self.failures, self.seed, self.number);
            if self.outage.goes_on(outcome, now) {
                let (url, key) = (self.store.url(), &batch.key);
                warn!(url, key, outcome, detail, "the history does not take transitions; they wait");
            }
        }
        self.meters.waiting.set(self.waiting() as i64);
    }

    /// Puts everything away that is left.
    async fn finish(&mut self, mut sending: Option<BoxFuture<'static, Sent>>, clock: Clock) {
        loop {
            if sending.is_none() {
                sending = self.send(clock.now());
            }
            if sending.is_none() {
                return;
            }
            let sent = under_way(&mut sending).await;
            sending = None;
            self.settle(sent, clock.now());
            if self.failures > 0 {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
