//! Stores that are slow, full, overloaded or that refuse: a small server that implements PUT of S3.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use flate2::read::GzDecoder;
use object_store::aws::AmazonS3Builder;

use super::*;
use crate::history::batch::{MAX_BATCH_TRANSITIONS, MAX_WAITING_TRANSITIONS};
use crate::history::cloud::build_s3;
use crate::history::read::HistoryEntry;

/// Configuration and content of the server.
struct StoreServer {
    /// Error response while the server is failing; the body is S3's.
    answer: (u16, &'static str),
    well: AtomicBool,
    takes: Duration,
    requests: AtomicU32,
    /// Number of concurrent requests.
    open: AtomicU32,
    most_open: AtomicU32,
    objects: Mutex<Vec<(String, Bytes)>>,
}

async fn answer(
    State(shop): State<Arc<StoreServer>>,
    at: Uri,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1], String) {
    shop.requests.fetch_add(1, Ordering::SeqCst);
    let open = shop.open.fetch_add(1, Ordering::SeqCst) + 1;
    shop.most_open.fetch_max(open, Ordering::SeqCst);
    tokio::time::sleep(shop.takes).await;
    shop.open.fetch_sub(1, Ordering::SeqCst);
    if shop.well.load(Ordering::SeqCst) {
        shop.objects.lock().unwrap().push((at.path().to_owned(), body));
        return (StatusCode::OK, [("etag", "\"1\"")], String::new());
    }
    let (code, word) = shop.answer;
    let error = format!("<?xml version=\"1.0\"?><Error><Code>{word}</Code><Message>no</Message></Error>");
    (StatusCode::from_u16(code).unwrap(), [("x-amz-request-id", "1")], error)
}

/// Everything logged on this thread.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    fn begin(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || log.clone()).with_ansi(false).finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn count(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock().unwrap()).matches(words).count()
    }
}

/// A stage whose store is the server, behind the client and the transport used in production.
async fn set(
    answer_with: (u16, &'static str),
    well: bool,
    takes: Duration,
) -> (HistoryHarness, Arc<StoreServer>) {
    let shop = Arc::new(StoreServer {
        answer: answer_with,
        well: well.into(),
        takes,
        requests: AtomicU32::new(0),
        open: AtomicU32::new(0),
        most_open: AtomicU32::new(0),
        objects: Mutex::default(),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(shop.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let builder = AmazonS3Builder::new().with_endpoint(endpoint).with_allow_http(true);
    let builder = builder.with_access_key_id("key").with_secret_access_key("secret");
    let mut stage = HistoryHarness::set(StoreFailureMode::Well, 0);
    stage.store.objects = build_s3(builder, "s3://bucket/h").unwrap();
    (stage, shop)
}

impl StoreServer {
    /// Messages of every stored line, batch by batch.
    fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        for (_, body) in &*self.objects.lock().unwrap() {
            let lines =
                serde_json::Deserializer::from_reader(GzDecoder::new(&**body)).into_iter::<HistoryEntry>();
            messages.extend(lines.map(|line| line.unwrap().message));
        }
        messages
    }

    fn keys(&self) -> std::collections::BTreeSet<String> {
        self.objects.lock().unwrap().iter().map(|(key, _)| key.clone()).collect()
    }
}

/// Publishes in chunks, so that no subscriber loses a transition on the way.
async fn tell_all(stage: &HistoryHarness, count: usize) {
    for begin in (0..count).step_by(1_000) {
        let told = |at| Transition::clone(&transition(stage.clock.now(), &format!("message {at}")));
        stage.transitions.publish_transitions((begin..count.min(begin + 1_000)).map(told).collect());
        until("what was told is heard", || stage.heard() >= count.min(begin + 1_000) as u64).await;
    }
}

async fn until_failed(stage: &HistoryHarness, outcome: &str, times: u64) {
    until("attempts fail", || stage.metrics.history.batches.with_label_values(&[outcome]).get() >= times)
        .await;
}

/// The store fails in this way for a while; then everything that was kept is stored exactly once.
async fn fails_for_a_while(answer_with: (u16, &'static str), outcome: &'static str, count: usize) {
    let log = CapturedLog::default();
    let _guard = log.begin();
    let (stage, shop) = set(answer_with, false, Duration::ZERO).await;
    let (task, trouble) = stage.begin_watched(Duration::ZERO);
    tell_all(&stage, count).await;
    until_failed(&stage, outcome, 3).await;
    let said = trouble.borrow().clone().unwrap();
    assert!(said.starts_with(&format!("history: {outcome} since 20")), "{said}");
    let waiting = usize::try_from(stage.metrics.history.waiting.get()).unwrap();
    assert!(waiting <= MAX_WAITING_TRANSITIONS + MAX_BATCH_TRANSITIONS, "{waiting}");
    assert_eq!(waiting + usize::try_from(stage.dropped()).unwrap(), count);
    // Attempts are paced: not one per transition, nor one per batch.
    assert!(shop.requests.load(Ordering::SeqCst) <= 3 * 4);
    shop.well.store(true, Ordering::SeqCst);
    stage.until_written(waiting as u64).await;
    stage.told.cancel();
    task.await.unwrap();
    assert_eq!(*trouble.borrow(), None);
    let (mut messages, dropped) = (shop.messages(), stage.dropped());
    assert_eq!(messages.len() as u64, count as u64 - dropped);
    assert_eq!(shop.keys().len(), shop.objects.lock().unwrap().len(), "a key was written twice");
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len() as u64 + dropped, count as u64, "one arrived twice");
    assert_eq!(dropped > 0, count > MAX_WAITING_TRANSITIONS + MAX_BATCH_TRANSITIONS);
    assert_eq!(log.count("failed to write transitions to the history store"), 1);
    assert_eq!(log.count("history store accepts transitions again"), 1);
    assert_eq!(log.count("the oldest are dropped"), usize::from(dropped > 0));
}

#[tokio::test]
async fn a_store_that_is_full_is_told_of_once_and_what_it_cannot_take_is_counted() {
    fails_for_a_while((507, "XMinioStorageFull"), "failed", 60_000).await;
}

#[tokio::test]
async fn a_store_that_asks_to_slow_down_is_asked_again_later_and_loses_nothing() {
    fails_for_a_while((503, "SlowDown"), "failed", 5_000).await;
}

#[tokio::test]
async fn a_store_that_refuses_is_told_apart_and_loses_nothing() {
    fails_for_a_while((403, "AccessDenied"), "refused", 5_000).await;
}

#[tokio::test]
async fn a_store_that_takes_five_seconds_gets_larger_batches_and_not_more_of_them_at_once() {
    let (stage, shop) = set((500, ""), true, Duration::from_secs(5)).await;
    let task = stage.begin(Duration::from_millis(10));
    tell_all(&stage, 10).await;
    until("the first batch is under way", || shop.open.load(Ordering::SeqCst) > 0).await;
    for round in 1..=100 {
        stage.tell(15);
        // No transition is lost on the way, and all arrive while the first batch is in flight.
        until("what was told is heard", || stage.heard() >= 10 + 15 * round).await;
    }
    stage.until_written(1_510).await;
    stage.told.cancel();
    task.await.unwrap();
    let objects = shop.objects.lock().unwrap().len();
    assert_eq!((objects, shop.most_open.load(Ordering::SeqCst)), (2, 1));
    assert_eq!((shop.messages().len(), stage.dropped()), (1_510, 0));
}
