//! The task that puts transitions away. A store that refuses, is slow or is gone delays nobody: it is told and counted.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload};
use readiness::Time;
use timer::{Backoff, Seed};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::Store;
use super::batch::{Batch, Buffer};
use crate::clock::Clock;
use crate::lease::Mandate;
use crate::metrics::Meters;
use crate::transitions::{Heard, Subscription};

/// One attempt takes no longer.
const PATIENCE: Duration = Duration::from_secs(60);
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
    /// Transitions wait no longer than this, as long as the store answers.
    pub(crate) every: Duration,
    /// So long is tried at the end.
    pub(crate) last: Duration,
    /// This process, among all that ever write here.
    pub(crate) instance: String,
    pub(crate) seed: Seed,
}

/// What became of it.
struct Sent {
    batch: Arc<Batch>,
    outcome: &'static str,
    detail: String,
}

/// The task's own state.
struct Keeper {
    store: Store,
    mandate: Mandate,
    meters: Meters,
    instance: String,
    seed: Seed,
    buffer: Buffer,
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
        let Keep { store, mut transitions, clock, mandate, meters, every, last, instance, seed } = self;
        info!(url = store.url(), "history");
        let mut keeper = Keeper {
            store,
            mandate,
            meters,
            instance,
            seed,
            buffer: Buffer::default(),
            number: 0,
            again: None,
            not_before: clock.now(),
            failures: 0,
        };
        let mut sending: Option<BoxFuture<'static, Sent>> = None;
        loop {
            if sending.is_none() && keeper.due(every).is_some_and(|at| at <= clock.now()) {
                sending = keeper.send();
            }
            let wait = keeper.due(every).filter(|_| sending.is_none()).map(|at| at - clock.now());
            tokio::select! { biased;
                () = told.cancelled() => break,
                sent = under_way(&mut sending) => {
                    sending = None;
                    keeper.settle(sent, clock.now());
                }
                heard = transitions.next() => match heard {
                    Some(heard) => keeper.hear(&transitions, heard),
                    None => break,
                },
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
        while let Some(heard) = transitions.take() {
            keeper.hear(&transitions, heard);
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
    fn hear(&mut self, transitions: &Subscription, heard: Heard) {
        // What was lost on the way was counted there.
        let Heard::Told(transition) = heard else { return };
        if !self.mandate.holds() {
            return;
        }
        let lost = self.buffer.push(transition);
        if lost > 0 {
            transitions.drop_some(lost);
        }
        self.meters.waiting.set(self.waiting() as i64);
    }

    fn waiting(&self) -> usize {
        self.buffer.len() + self.again.as_ref().map_or(0, |batch| batch.transitions.len())
    }

    fn due(&self, every: Duration) -> Option<Time> {
        let due = if self.again.is_some() { Some(self.not_before) } else { self.buffer.due(every) };
        due.map(|at| at.max(self.not_before))
    }

    /// The next attempt: what failed first.
    fn send(&mut self) -> Option<BoxFuture<'static, Sent>> {
        if self.again.is_none() {
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
            self.meters.written.inc_by(batch.transitions.len() as u64);
            self.meters.last.set(now.0 as f64 / 1_000.0);
            if std::mem::take(&mut self.failures) > 0 {
                info!(url = self.store.url(), "the history takes transitions again");
            }
        } else {
            self.failures += 1;
            self.not_before = now + BACKOFF.after(self.failures, self.seed, self.number);
            // Said when it begins, and then once in a while: an outage is one message, not thousands.
            if self.failures == 1 || self.failures.is_multiple_of(20) {
                warn!(
                    url = self.store.url(),
                    key = batch.key,
                    outcome,
                    detail,
                    failures = self.failures,
                    "the history does not take transitions; they wait"
                );
            }
        }
        self.meters.waiting.set(self.waiting() as i64);
    }

    /// Puts everything away that is left.
    async fn finish(&mut self, mut sending: Option<BoxFuture<'static, Sent>>, clock: Clock) {
        loop {
            if sending.is_none() {
                sending = self.send();
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

async fn put(objects: Arc<dyn ObjectStore>, at: object_store::path::Path, batch: Arc<Batch>) -> Sent {
    let packed = batch.clone();
    let body = tokio::task::spawn_blocking(move || packed.encoded()).await;
    let body = match body {
        Ok(Ok(body)) => PutPayload::from(body),
        Ok(Err(error)) => return Sent { batch, outcome: "failed", detail: error.to_string() },
        Err(error) => return Sent { batch, outcome: "failed", detail: error.to_string() },
    };
    let write = |mode: PutMode| {
        let options = PutOptions { mode, ..PutOptions::default() };
        tokio::time::timeout(PATIENCE, objects.put_opts(&at, body.clone(), options))
    };
    let mut done = write(PutMode::Create).await;
    // Some stores cannot make sure that a key is new. Ours are, so that is not needed to be right.
    if let Ok(Err(Error::NotImplemented { .. } | Error::NotSupported { .. })) = done {
        done = write(PutMode::Overwrite).await;
    }
    let (outcome, detail) = match done {
        // Already there: an attempt of ours whose answer was lost.
        Ok(Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => {
            ("written", String::new())
        }
        Ok(Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }))) => {
            ("refused", error.to_string())
        }
        Ok(Err(error)) => ("failed", error.to_string()),
        Err(_) => ("timeout", "no answer".to_owned()),
    };
    Sent { batch, outcome, detail }
}

#[cfg(test)]
mod tests;
