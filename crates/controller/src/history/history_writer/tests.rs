//! Upload of transitions, as sentences.

mod google;
mod stores;

use super::*;
use crate::history::batch::tests::transition;
use crate::history::read::{HistoryEntries, HistoryLineKind};
use crate::kind_tasks::ResolvedKinds;
use crate::metrics::Metrics;
use crate::transitions::TransitionHub;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use rollcall_core::Transition;
use std::sync::atomic::{AtomicU32, Ordering};

/// Failure mode of a misbehaving store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StoreFailureMode {
    Well,
    Refuses,
    /// Never responds.
    Hangs,
    /// The object is stored, its response is lost.
    Forgets,
    CannotCompare,
}

/// In-memory store that misbehaves for the first few writes.
#[derive(Debug)]
struct FailingStore {
    inner: InMemory,
    mood: StoreFailureMode,
    left: AtomicU32,
    puts: AtomicU32,
}

impl std::fmt::Display for FailingStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("moody")
    }
}

#[async_trait::async_trait]
impl ObjectStore for FailingStore {
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
            StoreFailureMode::Refuses if in_mood => {
                Err(Error::PermissionDenied { path: at.to_string(), source: "403 Forbidden".into() })
            }
            StoreFailureMode::Hangs if in_mood => std::future::pending().await,
            StoreFailureMode::Forgets if in_mood => {
                self.inner.put_opts(at, body, options).await?;
                Err(Error::Generic { store: "moody", source: "connection reset".into() })
            }
            StoreFailureMode::CannotCompare if options.mode == PutMode::Create => {
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

struct HistoryHarness {
    moody: Arc<FailingStore>,
    store: HistoryStore,
    transitions: TransitionHub,
    metrics: Metrics,
    clock: LocalClock,
    told: CancellationToken,
}

impl HistoryHarness {
    fn set(mood: StoreFailureMode, left: u32) -> HistoryHarness {
        let moody = Arc::new(FailingStore {
            inner: InMemory::new(),
            mood,
            left: left.into(),
            puts: AtomicU32::new(0),
        });
        let store =
            HistoryStore { objects: moody.clone(), prefix: Path::from("h"), url: "moody://h".to_owned() };
        let metrics = Metrics::new(1).unwrap();
        let transitions = TransitionHub::new(ResolvedKinds::default(), metrics.dropped.clone());
        HistoryHarness {
            moody,
            store,
            transitions,
            metrics,
            clock: LocalClock::start(),
            told: CancellationToken::new(),
        }
    }

    fn begin(&self, every: Duration) -> tokio::task::JoinHandle<()> {
        self.begin_watched(every).0
    }

    /// Starts the task, with a receiver of its `/readyz` text.
    fn begin_watched(
        &self,
        every: Duration,
    ) -> (tokio::task::JoinHandle<()>, watch::Receiver<Option<String>>) {
        let (trouble, shown) = watch::channel(None);
        let keep = HistoryWriter {
            store: self.store.clone(),
            transitions: self.transitions.subscribe("history"),
            rollouts: mpsc::channel(1).1,
            clock: self.clock,
            leadership: Leadership::permanent(self.clock),
            meters: self.metrics.history.clone(),
            trouble,
            flush_interval: every,
            // No time is spent on a store that never accepts anything.
            final_flush_timeout: if self.moody.left.load(Ordering::SeqCst) > 1_000 {
                Duration::from_millis(100)
            } else {
                Duration::from_secs(60)
            },
            instance: "pod".to_owned(),
            seed: Seed(1),
        };
        (tokio::spawn(keep.run(self.told.clone())), shown)
    }

    fn tell(&self, count: usize) {
        let told = |at: usize| Transition::clone(&transition(self.clock.now(), &format!("message {at}")));
        self.transitions.publish_transitions((0..count).map(told).collect());
    }

    async fn messages(&self) -> Vec<String> {
        let now = self.clock.now();
        let since = Time(now.0 - 3_600_000);
        let found =
            HistoryEntries::read_range(&self.store, HistoryLineKind::Transitions, (since, now), |_| true)
                .await
                .unwrap();
        assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
        found.entries.into_iter().map(|line| line.message).collect()
    }

    fn dropped(&self) -> u64 {
        self.metrics.dropped.with_label_values(&["history"]).get()
    }

    /// Number of transitions that are waiting, stored, or dropped.
    fn heard(&self) -> u64 {
        let history = &self.metrics.history;
        u64::try_from(history.waiting.get()).unwrap() + history.written.get() + self.dropped()
    }

    /// Publishes `count` transitions, expects all of them to be stored, and ends the task.
    async fn keeps(&self, count: usize) {
        let task = self.begin(Duration::ZERO);
        self.tell(count);
        self.until_written(count as u64).await;
        self.told.cancel();
        task.await.unwrap();
    }

    async fn until_written(&self, count: u64) {
        until("all of it is written", || self.metrics.history.written.get() >= count).await;
    }
}

/// Waits at most two minutes for a condition. Counters, and a server on another task, send no notification, so the
/// condition is polled.
async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let all = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_mins(2), all).await.is_ok(), "in two minutes not: {what}");
}

#[tokio::test]
async fn what_was_told_before_the_end_is_put_away_at_the_end() {
    let stage = HistoryHarness::set(StoreFailureMode::Well, 0);
    let task = stage.begin(Duration::from_hours(1));
    stage.tell(5_000);
    stage.told.cancel();
    task.await.unwrap();
    assert_eq!(stage.messages().await.len(), 5_000);
    // At least two full batches by number, and no batch per transition.
    let puts = stage.moody.puts.load(Ordering::SeqCst);
    assert!((3..=4).contains(&puts), "{puts} batches");
    assert_eq!((stage.dropped(), stage.metrics.history.waiting.get()), (0, 0));
}

#[tokio::test]
async fn they_are_put_away_when_they_are_old_enough() {
    let stage = HistoryHarness::set(StoreFailureMode::Well, 0);
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
    let stage = HistoryHarness::set(StoreFailureMode::Refuses, 1);
    stage.keeps(10).await;
    assert_eq!(stage.metrics.history.batches.with_label_values(&["refused"]).get(), 1);
    assert_eq!((stage.messages().await.len(), stage.dropped()), (10, 0));
}

#[tokio::test]
async fn a_batch_whose_answer_was_lost_is_not_there_twice() {
    let stage = HistoryHarness::set(StoreFailureMode::Forgets, 1);
    stage.keeps(10).await;
    assert_eq!(stage.messages().await.len(), 10);
    assert_eq!(stage.metrics.history.batches.with_label_values(&["failed"]).get(), 1);
}

#[tokio::test]
async fn a_store_that_cannot_tell_whether_a_key_is_new_is_written_all_the_same() {
    let stage = HistoryHarness::set(StoreFailureMode::CannotCompare, 0);
    let task = stage.begin(Duration::ZERO);
    stage.tell(4);
    stage.told.cancel();
    task.await.unwrap();
    assert_eq!(stage.messages().await.len(), 4);
}

#[tokio::test]
async fn what_is_told_is_either_put_away_or_counted_as_lost_however_much_it_is() {
    let stage = HistoryHarness::set(StoreFailureMode::Hangs, u32::MAX);
    let task = stage.begin(Duration::ZERO);
    for _ in 0..70 {
        stage.tell(1_000);
        tokio::task::yield_now().await;
    }
    until("what was told is heard", || stage.heard() >= 70_000).await;
    let waiting = usize::try_from(stage.metrics.history.waiting.get()).unwrap();
    assert!(
        waiting
            <= crate::history::batch::MAX_WAITING_TRANSITIONS + crate::history::batch::MAX_BATCH_TRANSITIONS,
        "{waiting}"
    );
    stage.told.cancel();
    task.await.unwrap();
    assert_eq!(stage.dropped(), 70_000);
    assert!(stage.messages().await.is_empty());
}

#[tokio::test]
async fn what_the_store_never_took_is_counted_at_the_end() {
    let stage = HistoryHarness::set(StoreFailureMode::Refuses, u32::MAX);
    let task = stage.begin(Duration::from_hours(1));
    stage.tell(7);
    stage.told.cancel();
    task.await.unwrap();
    assert_eq!(stage.dropped(), 7);
}
