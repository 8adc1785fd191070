//! Google's storage as far as its XML API is documented: no available emulator accepts an object that way.
//!
//! An object is created by PUT, with `x-goog-if-generation-match: 0` to require a new key, else 412; a bucket is listed
//! by version 2 of the list, after `start-after`. <https://cloud.google.com/storage/docs/xml-api/overview>

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as Place, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use object_store::ClientOptions;
use object_store::gcp::GoogleCloudStorageBuilder;

use super::*;
use crate::history::cloud::build_gcs;

const TOKEN: &str = "Bearer of-the-pod";

#[derive(Default)]
struct GoogleBucket {
    objects: Mutex<BTreeMap<String, Bytes>>,
    /// Number of objects that are stored although their response is lost.
    forgets: AtomicU32,
    /// Number of lists.
    lists: AtomicU32,
    /// Malformed requests.
    odd: Mutex<Vec<String>>,
}

type There = State<Arc<GoogleBucket>>;

/// Headers that every object has besides its content.
const MARKS: [(&str, &str); 3] =
    [("etag", "\"1\""), ("x-goog-generation", "7"), ("last-modified", "Sat, 21 Nov 2026 13:45:02 GMT")];

impl GoogleBucket {
    fn notes(&self, fine: bool, what: &str, headers: &HeaderMap) {
        if !fine || headers.get("authorization").is_none_or(|token| token != TOKEN) {
            self.odd.lock().unwrap().push(format!("{what} {headers:?}"));
        }
    }
}

async fn take(
    State(bucket): There,
    Place((name, key)): Place<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let new = headers.get("x-goog-if-generation-match").is_some_and(|generation| generation == "0");
    bucket.notes(new && name == "bucket", &key, &headers);
    if bucket.objects.lock().unwrap().contains_key(&key) {
        return StatusCode::PRECONDITION_FAILED.into_response();
    }
    bucket.objects.lock().unwrap().insert(key, body);
    if bucket.forgets.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    (MARKS, ()).into_response()
}

async fn give(
    State(bucket): There,
    Place((_, key)): Place<(String, String)>,
    headers: HeaderMap,
) -> Response {
    bucket.notes(true, &key, &headers);
    match bucket.objects.lock().unwrap().get(&key) {
        Some(body) => (MARKS, body.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn list(State(bucket): There, RawQuery(query): RawQuery, headers: HeaderMap) -> String {
    let query = query.unwrap_or_default();
    bucket.notes(query.contains("list-type=2"), &query, &headers);
    let asked: BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).collect();
    let of = |name: &str| asked.get(name).map(ToString::to_string).unwrap_or_default();
    let (prefix, after) = (of("prefix"), of("start-after"));
    bucket.lists.fetch_add(1, Ordering::SeqCst);
    let mut out = "<?xml version=\"1.0\"?><ListBucketResult>".to_owned();
    let mut folders = BTreeSet::new();
    for (key, body) in &*bucket.objects.lock().unwrap() {
        let below = key.strip_prefix(&prefix).and_then(|rest| rest.split_once('/'));
        if let Some((folder, _)) = below.filter(|_| of("delimiter") == "/") {
            folders.insert(format!("{prefix}{folder}/"));
        } else if key.starts_with(&prefix) && *key > after {
            let marks = "<LastModified>2026-11-21T13:45:02.000Z</LastModified><ETag>1</ETag>";
            _ = write!(out, "<Contents><Key>{key}</Key><Size>{}</Size>{marks}</Contents>", body.len());
        }
    }
    for folder in folders {
        _ = write!(out, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
    }
    out + "</ListBucketResult>"
}

async fn set(bucket: &Arc<GoogleBucket>) -> HistoryHarness {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let objects = Router::new().route("/{bucket}/{*key}", put(take).get(give));
    let router = objects.route("/{bucket}", get(list)).with_state(bucket.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let plain = ClientOptions::new().with_allow_http(true);
    let builder = GoogleCloudStorageBuilder::new().with_base_url(&endpoint).with_client_options(plain);
    let builder = builder.with_bearer_token(TOKEN.trim_start_matches("Bearer "));
    let mut stage = HistoryHarness::set(StoreFailureMode::Well, 0);
    stage.store.objects = build_gcs(builder, "gs://bucket/h").unwrap();
    stage
}

#[tokio::test]
async fn googles_storage_is_spoken_to_as_its_documentation_has_it_and_tells_the_same_again() {
    let bucket = Arc::new(GoogleBucket::default());
    let stage = set(&bucket).await;
    stage.keeps(10).await;
    assert!(bucket.objects.lock().unwrap().keys().all(|key| key.starts_with("h/date=20")));
    assert_eq!(stage.messages().await, (0..10).map(|at| format!("message {at}")).collect::<Vec<_>>());
    assert_eq!(*bucket.odd.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn an_object_that_google_has_already_is_not_there_twice() {
    let bucket = Arc::new(GoogleBucket { forgets: 1.into(), ..GoogleBucket::default() });
    let stage = set(&bucket).await;
    stage.keeps(10).await;
    assert_eq!(stage.messages().await.len(), 10);
    assert_eq!((stage.dropped(), bucket.forgets.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn however_far_one_looks_back_only_days_that_are_there_are_listed() {
    let bucket = Arc::new(GoogleBucket::default());
    let stage = set(&bucket).await;
    stage.keeps(10).await;
    bucket
        .objects
        .lock()
        .unwrap()
        .insert("h/date=1999-01-01/000000-a-000000.ndjson.gz".to_owned(), Bytes::new());
    bucket.objects.lock().unwrap().insert("h/notes/today.txt".to_owned(), Bytes::new());
    let now = stage.clock.now();
    for (years, days) in [(1, 1), (100, 2), (100_000_000, 2)] {
        bucket.lists.store(0, Ordering::SeqCst);
        let since = Time(now.0.saturating_sub(years * 365 * 86_400_000));
        let found =
            HistoryEntries::read_range(&stage.store, HistoryLineKind::Transitions, (since, now), |_| true)
                .await
                .unwrap();
        assert_eq!(found.entries.len(), 10);
        // Those of the last minute may be of two days.
        let asked = bucket.lists.load(Ordering::SeqCst);
        assert!(((1 + days)..=(2 + days)).contains(&asked), "{asked} lists for {years} years");
    }
}
