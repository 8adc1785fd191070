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
use crate::drive::Clock;
use crate::lease::Mandate;
use crate::metrics::Meters;
use crate::transitions::{Heard, Subscription};

/// How an attempt to put a batch away may end, as `rollcall_history_batches_total{outcome}` has it.
const OUTCOMES: [&str; 4] = ["written", "refused", "failed", "timeout"];
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
        for outcome in OUTCOMES {
            meters.batches.with_label_values(&[outcome]);
        }
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
mod tests {
    use super::*;
    use crate::core::Transition;
    use crate::history::batch::tests::transition;
    use crate::kinds::Known;
    use crate::metrics::Metrics;
    use crate::transitions::Transitions;
    use futures::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions,
        PutResult,
    };
    use std::sync::atomic::{AtomicU32, Ordering};

    /// How a store that misbehaves answers.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Mood {
        Well,
        Refuses,
        /// Never answers.
        Hangs,
        /// The object arrives, its answer does not.
        Forgets,
        CannotCompare,
    }

    /// A store in memory that misbehaves for the first few writes.
    #[derive(Debug)]
    struct Moody {
        inner: InMemory,
        mood: Mood,
        left: AtomicU32,
        puts: AtomicU32,
    }

    impl std::fmt::Display for Moody {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("moody")
        }
    }

    #[async_trait::async_trait]
    impl ObjectStore for Moody {
        async fn put_opts(
            &self,
            at: &Path,
            body: PutPayload,
            options: PutOptions,
        ) -> object_store::Result<PutResult> {
            self.puts.fetch_add(1, Ordering::SeqCst);
            let in_mood =
                self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
            match self.mood {
                Mood::Refuses if in_mood => {
                    Err(Error::PermissionDenied { path: at.to_string(), source: "403 Forbidden".into() })
                }
                Mood::Hangs if in_mood => std::future::pending().await,
                Mood::Forgets if in_mood => {
                    self.inner.put_opts(at, body, options).await?;
                    Err(Error::Generic { store: "moody", source: "connection reset".into() })
                }
                Mood::CannotCompare if options.mode == PutMode::Create => {
                    Err(Error::NotImplemented { operation: "put".into(), implementer: "moody".into() })
                }
                _ => self.inner.put_opts(at, body, options).await,
            }
        }

        async fn put_multipart_opts(
            &self,
            at: &Path,
            options: PutMultipartOptions,
        ) -> object_store::Result<Box<dyn MultipartUpload>> {
            self.inner.put_multipart_opts(at, options).await
        }

        async fn get_opts(&self, at: &Path, options: GetOptions) -> object_store::Result<GetResult> {
            self.inner.get_opts(at, options).await
        }

        fn delete_stream(
            &self,
            at: BoxStream<'static, object_store::Result<Path>>,
        ) -> BoxStream<'static, object_store::Result<Path>> {
            self.inner.delete_stream(at)
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
            self.inner.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
            self.inner.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
            self.inner.copy_opts(from, to, options).await
        }
    }

    struct Stage {
        moody: Arc<Moody>,
        store: Store,
        transitions: Transitions,
        metrics: Metrics,
        clock: Clock,
        told: CancellationToken,
    }

    impl Stage {
        fn set(mood: Mood, left: u32) -> Stage {
            let moody =
                Arc::new(Moody { inner: InMemory::new(), mood, left: left.into(), puts: AtomicU32::new(0) });
            let store =
                Store { objects: moody.clone(), prefix: Path::from("h"), url: "moody://h".to_owned() };
            let metrics = Metrics::new(1).unwrap();
            let transitions = Transitions::new(Known::default(), metrics.dropped.clone());
            Stage {
                moody,
                store,
                transitions,
                metrics,
                clock: Clock::start(),
                told: CancellationToken::new(),
            }
        }

        fn begin(&self, every: Duration) -> tokio::task::JoinHandle<()> {
            let keep = Keep {
                store: self.store.clone(),
                transitions: self.transitions.subscribe("history"),
                clock: self.clock,
                mandate: Mandate::always(self.clock),
                meters: self.metrics.history.clone(),
                every,
                // A store that never takes anything is not waited for.
                last: if self.moody.left.load(Ordering::SeqCst) > 1_000 {
                    Duration::from_millis(100)
                } else {
                    Duration::from_secs(60)
                },
                instance: "pod".to_owned(),
                seed: Seed(1),
            };
            tokio::spawn(keep.run(self.told.clone()))
        }

        fn tell(&self, count: usize) {
            let told = |at: usize| Transition::clone(&transition(self.clock.now(), &format!("message {at}")));
            self.transitions.tell((0..count).map(told).collect());
        }

        async fn messages(&self) -> Vec<String> {
            let now = self.clock.now();
            let since = Time(now.0 - 3_600_000);
            let found = self.store.read(since, now, |_| true).await.unwrap();
            assert!(found.unread.is_empty(), "{:?}", found.unread);
            found.lines.into_iter().map(|line| line.message).collect()
        }

        fn dropped(&self) -> u64 {
            self.metrics.dropped.with_label_values(&["history"]).get()
        }

        async fn until_written(&self, count: u64) {
            while self.metrics.history.written.get() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    #[tokio::test]
    async fn what_was_told_before_the_end_is_put_away_at_the_end() {
        let stage = Stage::set(Mood::Well, 0);
        let task = stage.begin(Duration::from_hours(1));
        stage.tell(5_000);
        stage.told.cancel();
        task.await.unwrap();
        assert_eq!(stage.messages().await.len(), 5_000);
        // By number two full batches at least, and none of one transition each.
        let puts = stage.moody.puts.load(Ordering::SeqCst);
        assert!((3..=4).contains(&puts), "{puts} batches");
        assert_eq!((stage.dropped(), stage.metrics.history.waiting.get()), (0, 0));
    }

    #[tokio::test]
    async fn they_are_put_away_when_they_are_old_enough() {
        let stage = Stage::set(Mood::Well, 0);
        let task = stage.begin(Duration::from_millis(50));
        stage.tell(3);
        stage.until_written(3).await;
        assert_eq!(stage.messages().await, ["message 0", "message 1", "message 2"]);
        assert!(stage.metrics.history.last.get() > 0.0);
        stage.told.cancel();
        task.await.unwrap();
    }

    #[tokio::test]
    async fn a_store_that_refuses_is_told_and_loses_nothing_that_fits() {
        let stage = Stage::set(Mood::Refuses, 1);
        let task = stage.begin(Duration::ZERO);
        stage.tell(10);
        stage.until_written(10).await;
        assert_eq!(stage.metrics.history.batches.with_label_values(&["refused"]).get(), 1);
        assert_eq!(stage.messages().await.len(), 10);
        stage.told.cancel();
        task.await.unwrap();
        assert_eq!(stage.dropped(), 0);
    }

    #[tokio::test]
    async fn a_batch_whose_answer_was_lost_is_not_there_twice() {
        let stage = Stage::set(Mood::Forgets, 1);
        let task = stage.begin(Duration::ZERO);
        stage.tell(10);
        stage.until_written(10).await;
        stage.told.cancel();
        task.await.unwrap();
        assert_eq!(stage.messages().await.len(), 10);
        assert_eq!(stage.metrics.history.batches.with_label_values(&["failed"]).get(), 1);
    }

    #[tokio::test]
    async fn a_store_that_cannot_tell_whether_a_key_is_new_is_written_all_the_same() {
        let stage = Stage::set(Mood::CannotCompare, 0);
        let task = stage.begin(Duration::ZERO);
        stage.tell(4);
        stage.told.cancel();
        task.await.unwrap();
        assert_eq!(stage.messages().await.len(), 4);
    }

    #[tokio::test]
    async fn what_is_told_is_either_put_away_or_counted_as_lost_however_much_it_is() {
        let stage = Stage::set(Mood::Hangs, u32::MAX);
        let task = stage.begin(Duration::ZERO);
        for _ in 0..70 {
            stage.tell(1_000);
            tokio::task::yield_now().await;
        }
        let seen = || stage.dropped() + stage.metrics.history.waiting.get() as u64;
        let all = async {
            while seen() < 70_000 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
        let waiting = stage.metrics.history.waiting.get() as usize;
        assert!(waiting <= crate::history::batch::WAITING + crate::history::batch::BATCH, "{waiting}");
        stage.told.cancel();
        task.await.unwrap();
        assert_eq!(stage.dropped(), 70_000);
        assert!(stage.messages().await.is_empty());
    }

    #[tokio::test]
    async fn what_the_store_never_took_is_counted_at_the_end() {
        let stage = Stage::set(Mood::Refuses, u32::MAX);
        let task = stage.begin(Duration::from_hours(1));
        stage.tell(7);
        stage.told.cancel();
        task.await.unwrap();
        assert_eq!(stage.dropped(), 7);
    }
}
