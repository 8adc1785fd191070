//! Finds transitions again.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use anyhow::Context;
use flate2::read::MultiGzDecoder;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use readiness::Time;
use serde::{Deserialize, Serialize};
use watcher::status::time;

use super::Store;
use super::batch::day;

/// So many batches are read at once.
const AT_ONCE: usize = 8;
/// No batch of ours is larger, unpacked.
const LARGEST: u64 = 64 << 20;
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What an answer said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// `Ready`, `Failed`, …
    pub verdict: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// `AllChildrenReady`, …
    pub reason: String,
}

/// One transition as it was put away. What a line lacks, is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// When, RFC 3339.
    pub at: String,
    /// The policy.
    pub policy: String,
    /// API group of the parent.
    pub group: String,
    /// Version of the parent.
    pub version: String,
    /// Kind of the parent.
    pub kind: String,
    /// Namespace of the parent; empty for cluster-scoped ones.
    pub namespace: String,
    /// Name of the parent.
    pub name: String,
    /// Uid of the parent.
    pub uid: String,
    /// `metadata.generation` of the parent.
    pub generation: Option<i64>,
    /// What was said before.
    pub from: Option<Said>,
    /// What was said from then on.
    pub to: Said,
    /// The message.
    pub message: String,
    /// Root causes, as they were written.
    pub causes: Vec<serde_json::Value>,
    /// Nothing of it was written.
    pub shadow: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Oldest first.
    pub lines: Vec<Line>,
    /// Batches that could not be read, or not to their end, and why.
    pub unread: Vec<(String, String)>,
}

impl Store {
    /// Every transition from `since` to `until` for which `wanted` holds.
    pub async fn read(
        &self,
        since: Time,
        until: Time,
        wanted: impl Fn(&Line) -> bool,
    ) -> anyhow::Result<Found> {
        let mut keys = Vec::new();
        let mut at = since;
        // A day more: the end of the last one may lie beyond `until` by a clock that is not ours.
        while day(at) <= day(until + DAY) {
            keys.extend(self.keys(&day(at), since).await?);
            at = at + DAY;
        }
        let mut found = Found::default();
        let mut batches = futures::stream::iter(keys)
            .map(|key| async move { (self.batch(&key).await, key) })
            .buffer_unordered(AT_ONCE);
        let from = time::precise(since);
        while let Some((batch, key)) = batches.next().await {
            let unread = match batch {
                Ok(bytes) => lines(&bytes, |line| {
                    if line.at >= from && wanted(&line) {
                        found.lines.push(line);
                    }
                }),
                Err(error) => Some(format!("{error:#}")),
            };
            found.unread.extend(unread.map(|why| (key.to_string(), why)));
        }
        found.lines.sort_by(|a, b| a.at.cmp(&b.at));
        found.unread.sort();
        Ok(found)
    }

    /// The batches of a day whose last transition is not before `since`.
    async fn keys(&self, day: &str, since: Time) -> anyhow::Result<Vec<Path>> {
        let folder = self.at(&format!("date={day}"));
        let first = self.at(&format!("date={}/{}", self::day(since), hour(since)));
        let listed = self.objects.list_with_offset(Some(&folder), &first);
        let keys = listed
            .try_filter_map(|object| {
                let ours = object.location.as_ref().ends_with(".ndjson.gz");
                async move { Ok(ours.then_some(object.location)) }
            })
            .try_collect()
            .await;
        keys.with_context(|| format!("failed to list the history at {}", self.url))
    }

    async fn batch(&self, key: &Path) -> anyhow::Result<bytes::Bytes> {
        Ok(self.objects.get(key).await?.bytes().await?)
    }
}

/// `134502`; a second earlier, because the store lists what comes after it.
fn hour(at: Time) -> String {
    time::format(Time(at.0 - 1_000)).get(11..19).unwrap_or_default().replace(':', "")
}

/// Hands on every line of a batch; says why, where it could not be read to its end.
fn lines(bytes: &[u8], mut take: impl FnMut(Line)) -> Option<String> {
    let mut broken = None;
    for line in BufReader::new(MultiGzDecoder::new(bytes).take(LARGEST)).split(b'\n') {
        let read = line.map_err(|error| error.to_string());
        match read.and_then(|line| serde_json::from_slice(&line).map_err(|error| error.to_string())) {
            Ok(line) => take(line),
            Err(error) => broken = Some(error),
        }
        if broken.is_some() {
            break;
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::batch::tests::{NOW, transition};
    use super::super::batch::{Batch, Buffer};
    use super::*;
    use object_store::memory::InMemory;
    use std::sync::Arc;

    fn store() -> Store {
        Store { objects: Arc::new(InMemory::new()), prefix: Path::from("a/b"), url: "memory".to_owned() }
    }

    async fn put(store: &Store, batch: &Batch) {
        let body = batch.encoded().unwrap();
        store.objects.put(&store.at(&batch.key), body.into()).await.unwrap();
    }

    async fn keep(store: &Store, messages: &[(u64, &str)]) {
        let mut buffer = Buffer::default();
        for (seconds, message) in messages {
            buffer.push(transition(NOW + Duration::from_secs(*seconds), message), NOW);
        }
        let mut number = 0;
        while let Some(batch) = buffer.take("pod", number) {
            put(store, &batch).await;
            number += 1;
        }
    }

    async fn messages(store: &Store, since: u64) -> Vec<String> {
        let since = NOW + Duration::from_secs(since);
        let found = store.read(since, NOW + Duration::from_secs(90_000), |_| true).await.unwrap();
        assert!(found.unread.is_empty(), "{:?}", found.unread);
        found.lines.into_iter().map(|line| line.message).collect()
    }

    #[tokio::test]
    async fn what_was_put_away_is_found_again_in_its_order_over_midnight() {
        let store = store();
        keep(&store, &[(0, "one"), (30, "two"), (90, "three"), (86_400, "four")]).await;
        assert_eq!(messages(&store, 0).await, ["one", "two", "three", "four"]);
        assert_eq!(messages(&store, 10).await, ["two", "three", "four"]);
        assert_eq!(messages(&store, 90).await, ["three", "four"]);
        assert_eq!(messages(&store, 91).await, ["four"]);
        let none = store.read(NOW, NOW, |line| line.name == "other").await.unwrap();
        assert!(none.lines.is_empty());
    }

    #[tokio::test]
    async fn a_line_is_read_as_it_was_written() {
        let store = store();
        keep(&store, &[(0, "1 of 3 not ready")]).await;
        let found = store.read(NOW, NOW, |line| line.kind == "Database").await.unwrap();
        let [line] = &found.lines[..] else { panic!("{found:?}") };
        let again = serde_json::to_value(line).unwrap();
        assert_eq!(again, serde_json::to_value(&*transition(NOW, "1 of 3 not ready")).unwrap());
    }

    #[tokio::test]
    async fn what_is_broken_is_named_and_the_rest_is_read() {
        let store = store();
        keep(&store, &[(0, "one")]).await;
        let mut cut =
            Batch { key: String::new(), transitions: vec![transition(NOW, "cut")] }.encoded().unwrap();
        cut.truncate(cut.len() / 2);
        for (key, bytes) in [("235901-x-1", cut), ("235902-x-1", b"no gzip".to_vec())] {
            let at = store.at(&format!("date=2026-11-21/{key}.ndjson.gz"));
            store.objects.put(&at, bytes.into()).await.unwrap();
        }
        let found = store.read(NOW, NOW, |_| true).await.unwrap();
        assert_eq!(found.lines.iter().map(|l| &*l.message).collect::<Vec<_>>(), ["one"]);
        assert_eq!(found.unread.len(), 2, "{:?}", found.unread);
    }

    #[test]
    fn what_unpacks_to_more_than_ever_was_packed_is_not_unpacked() {
        use std::io::Write;
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..80 {
            bomb.write_all(&zeros).unwrap();
        }
        let bomb = bomb.finish().unwrap();
        assert!(lines(&bomb, |_| panic!("there is no line in it")).is_some());
    }
}
